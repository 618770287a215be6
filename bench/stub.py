"""AWS on loopback, over TLS: `python -m bench.stub CERTIFICATE SECRETS`, which prints its port.

It answers each request at once with the smallest answer that a client accepts, keeps connections
open and nothing else, and counts the requests by operation. It ends with its standard input.
"""

import asyncio
import json
import ssl
import sys
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

END: Final = b"\r\n\r\n"
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
TYPE: Final = "application/x-amz-json-1.0"
# Its GET returns the counts and clears them.
COUNTS: Final = b"GET /counts "
ID: Final = "0d1a26e6-7d8f-4eaf-9f6b-a5c57fc3c7d9"


class Requests(asyncio.Protocol):
    """One connection."""

    def __init__(self, reply: Callable[[bytes, bytes], bytes]) -> None:
        self._reply = reply
        self._received = bytearray()
        self._head: bytes | None = None
        self._length = 0
        self._chunked = False
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the transport."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - narrows the type
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answers each request that is complete."""
        self._received += data
        while self._head is not None or self._begins():
            # A body in chunks ends with a trailer, and its client waits for the answer then.
            end = len(self._received) if self._chunked else self._length
            if len(self._received) < end or (self._chunked and not self._received.endswith(END)):
                return
            body = bytes(self._received[:end])
            del self._received[:end]
            assert self._head is not None  # noqa: S101 - narrows the type
            self._transport.write(self._reply(self._head, body))
            self._head = None

    def _begins(self) -> bool:
        end = self._received.find(END)
        if end < 0:
            return False
        self._head = bytes(self._received[:end])
        del self._received[: end + 4]
        self._chunked = header(self._head, b"transfer-encoding") == b"chunked"
        self._length = int(header(self._head, b"content-length") or 0)
        if header(self._head, b"expect"):
            self._transport.write(CONTINUE)
        return True


def header(head: bytes, name: bytes) -> bytes:
    """Returns a header's value, b"" without one."""
    _, found, rest = head.lower().partition(b"\r\n" + name + b":")
    return rest.partition(b"\r\n")[0].strip() if found else b""


class Answers:
    """Makes and counts the answers."""

    def __init__(self, secrets: str) -> None:
        self._secrets = secrets
        self.counts = Counter[str]()

    def __call__(self, head: bytes, body: bytes) -> bytes:
        """Returns the answer to a request."""
        if head.startswith(COUNTS):
            counted = json.dumps(self.counts).encode()
            self.counts.clear()
            return _response(counted, "application/json")
        target = header(head, b"x-amz-target").decode().rpartition(".")[2]
        # Only S3 names its operation by method and path.
        operation = target or f"s3 {head.partition(b' ')[0].decode().lower()}"
        self.counts[operation] += 1
        if not target:
            return _response(b"", "application/xml", 'ETag: "0"\r\n')
        return _response(json.dumps(self._content(operation, body)).encode(), TYPE)

    def _content(self, operation: str, body: bytes) -> dict[str, Any]:
        match operation:
            case "sendmessage":
                return {"MessageId": ID, "MD5OfMessageBody": "0" * 32}
            case "sendmessagebatch":
                entries = json.loads(body)["Entries"]
                taken = [{"Id": entry["Id"], "MessageId": ID} for entry in entries]
                return {"Successful": taken, "Failed": []}
            case "getsecretvalue":
                return {"SecretString": self._secrets, "VersionId": ID}
            case "updateitem":
                return {"Attributes": {}}
            case "putevents":
                return {"FailedEntryCount": 0, "Entries": [{"EventId": ID}]}
            case _:
                return {}


def _response(content: bytes, kind: str, more: str = "") -> bytes:
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n"
        f"x-amzn-RequestId: {ID}\r\nx-amz-crc32: {zlib.crc32(content)}\r\n{more}\r\n"
    )
    return head.encode() + content


async def serve(certificate: str, secrets: str) -> None:
    """Serves until the standard input ends."""
    loop, answers = asyncio.get_running_loop(), Answers(secrets)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    server = await loop.create_server(lambda: Requests(answers), "127.0.0.1", 0, ssl=tls)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
