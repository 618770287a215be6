"""Records what moto answers to an invocation of the processor, and repeats it at once over HTTP."""

import asyncio
import base64
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import shake_128
from http import HTTPStatus
from importlib import import_module
from itertools import cycle
from threading import Event, Thread
from typing import Any, Final

from bench.stub import Requests, header

LIMIT: Final = 60.0  # seconds until the server listens
# A destination's answer, of a request that is no call of AWS.
ELSE: Final = b'{"id": "order-1"}'


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: the operation, the sort key of its row or "", its status and body in base64."""

    operation: str
    row: str
    status: int
    body: str


class Recorded:
    """Answers each operation on each row with what was recorded for it, in turn, in a cycle."""

    def __init__(self, answers: list[Answer]) -> None:
        by_call: dict[tuple[str, str], list[bytes]] = {}
        for each in answers:
            found = by_call.setdefault((each.operation.lower(), each.row), [])
            found.append(_response(each.status, base64.b64decode(each.body)))
        self._answers = {call: cycle(found) for call, found in by_call.items()}
        self.unknown: list[tuple[str, str]] = []

    def __call__(self, head: bytes, body: bytes) -> bytes:
        """Returns the bytes of the response; records a call that was not made before."""
        target = header(head, b"x-amz-target").decode()
        if not target:
            return _response(HTTPStatus.CREATED, ELSE)
        call = target.rpartition(".")[2], row_of(json.loads(body))
        if call not in self._answers:
            self.unknown.append(call)
            return _response(HTTPStatus.BAD_REQUEST, b'{"__type": "NotRecorded"}')
        return next(self._answers[call])


def row_of(parameters: Mapping[str, Any]) -> str:
    """Returns the sort key of the row that a call is about; "" for a query."""
    key = parameters.get("Key") or parameters.get("Item") or {}
    return str(key["sk"]["S"]) if "sk" in key else ""


def _response(status: int, body: bytes) -> bytes:
    reason = HTTPStatus(status).phrase
    head = f"HTTP/1.1 {status} {reason}\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Content-Type: application/x-amz-json-1.0\r\n\r\n".encode() + body


@contextmanager
def served(recorded: Recorded) -> Iterator[str]:
    """Serves the answers on loopback, in a thread; yields the base URL."""
    loop = asyncio.new_event_loop()
    started, port = Event(), 0

    def run() -> None:
        nonlocal port
        asyncio.set_event_loop(loop)
        server = loop.run_until_complete(
            loop.create_server(lambda: Requests(recorded), "127.0.0.1", 0)
        )
        port = server.sockets[0].getsockname()[1]
        started.set()
        loop.run_forever()
        server.close()

    thread = Thread(target=run, daemon=True)
    thread.start()
    if not started.wait(LIMIT):
        raise TimeoutError
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def record(function: str, event_type: str, handler: str) -> dict[str, Any]:
    """Invokes a function once for a new event of 1 KB; returns the invocation and the answers.

    The function's environment is this process's.
    """
    from moto import mock_aws  # noqa: PLC0415 - only the process that records needs it

    from tests.functions.account import open_account  # noqa: PLC0415
    from tests.functions.invocations import LambdaContext, sqs_event, sqs_record  # noqa: PLC0415
    from webhook_inbox.adapters.aws.clients import session  # noqa: PLC0415

    answers: list[Answer] = []
    calls: list[str] = []

    def note_call(params: Mapping[str, Any], **_: Any) -> None:
        body = json.loads(params["body"] or b"{}")
        calls.append(row_of(body))

    def note_answer(response_dict: Mapping[str, Any], event_name: str, **_: Any) -> None:
        body = base64.b64encode(response_dict["body"]).decode()
        operation = event_name.rpartition(".")[2]
        answers.append(Answer(operation, calls[-1], response_dict["status_code"], body))

    with mock_aws():
        account = open_account()
        os.environ.update(account.environment)
        account.send(_stored(account, event_type, handler))
        session().register("before-call.dynamodb.*", note_call)
        session().register("response-received.dynamodb.*", note_answer)
        event = sqs_event(map(sqs_record, account.receive()))
        answer = import_module(f"{function}.lambda_function").lambda_handler(
            event, LambdaContext(function)
        )
        run = account.run("acme", "evt-1", handler)
    if answer != {"batchItemFailures": []} or run is None or run.status != "done":
        raise SystemExit(f"the run of {handler} is not done: {answer} {run}")
    return {
        "event": event,
        "environment": account.environment,
        "answers": [asdict(each) for each in answers],
    }


def _stored(account: Any, event_type: str, handler: str) -> str:
    """Stores an event; returns the message of its run."""
    from webhook_inbox.domain.model import StoredEvent  # noqa: PLC0415
    from webhook_inbox.ledger import payloads  # noqa: PLC0415
    from webhook_inbox.ledger.schema import event_to  # noqa: PLC0415
    from webhook_inbox.queue.message import RunMessage  # noqa: PLC0415

    # Half of it is random, as ids in JSON are, so that it does not shrink to nothing.
    body = json.dumps({"type": event_type, "text": shake_128(b"text").hexdigest(490)}).encode()
    event = StoredEvent(
        source="acme",
        event_id="evt-1",
        type=event_type,
        received_at=datetime.now(UTC),
        body=body,
        fingerprint="0" * 64,
        headers={"content-type": "application/json"},
        runs=(handler,),
    )
    packed = payloads.pack_event(event)
    account.table.put({**event_to(event), **packed.attributes})
    return RunMessage.first(event, handler).encode()


if __name__ == "__main__":
    sys.stderr.write(json.dumps(record(*sys.argv[1:])))
