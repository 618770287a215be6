"""SnapStart starts many processes from one snapshot of ingest; its content must suit all of them.

All of them continue from the same memory, minutes or weeks later: without credentials, secrets,
connections or a state of random numbers.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.functions.account import Account
from tests.functions.bundles import FUNCTIONS
from tests.functions.inbox import SECRET
from tests.functions.invocations import http_event
from webhook_inbox import providers
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.provider import Sample

# Imports ingest, reports what the snapshot would hold, and answers each event that is written to
# it. After the snapshot Lambda's variables may have other values.
RUN = """
import gc, json, os, random, sys
touched = []
sys.addaudithook(lambda name, _: touched.append(name) if name.startswith("socket.") else None)
drawn = random.getstate()
from ingest.lambda_function import lambda_handler
import ssl
kept = [type(each).__name__ for each in gc.get_objects() if isinstance(each, ssl.SSLContext)]
print(json.dumps({"touched": touched, "kept": kept}), file=sys.stderr, flush=True)

class Context:
    aws_request_id = "id"

os.environ["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = "after the restore"
for line in sys.stdin:
    status = lambda_handler(json.loads(line), Context())["statusCode"]
    found = {"status": status, "drawn": random.getstate() != drawn}
    print(json.dumps(found), file=sys.stderr, flush=True)
"""
CREDENTIALS = {
    "AccessKeyId": "ASIA",
    "SecretAccessKey": "secret",
    "Token": "fetched",
    "Expiration": "2099-01-01T00:00:00Z",
}


class Lambda(BaseHTTPRequestHandler):
    """Lambda's endpoint of credentials, and AWS, whose table fails at the first call."""

    protocol_version = "HTTP/1.1"
    asked: list[tuple[str, str]]

    def do_GET(self) -> None:
        self.asked.append(("credentials", self.headers["authorization"]))
        self._answer(CREDENTIALS)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        operation = self.headers["x-amz-target"].rpartition(".")[2]
        failing = operation == "PutItem" and operation not in dict(self.asked)
        self.asked.append((operation, self.headers["x-amz-security-token"]))
        if operation == "GetSecretValue":
            self._answer({"SecretString": json.dumps({"acme": SECRET})})
        elif operation == "SendMessageBatch":
            sent = [{"Id": each["Id"], "MessageId": "id"} for each in body["Entries"]]
            self._answer({"Successful": sent, "Failed": []})
        else:
            self._answer({}, 500 if failing else 200)

    def log_message(self, *_: object) -> None:
        """Writes no line."""

    def _answer(self, content: dict[str, Any], status: int = 200) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def aws() -> Iterator[ThreadingHTTPServer]:
    Lambda.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Lambda) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def process(
    aws: ThreadingHTTPServer, built: tuple[Path, Manifest]
) -> Iterator[subprocess.Popen[str]]:
    """Ingest in a process of its own, with the variables that Lambda sets with SnapStart."""
    queue = "https://sqs.us-east-1.amazonaws.com/123456789012/inbox-default"
    account = Account({}, table_name="inbox", bucket="bodies", queue=queue, dead_letters=queue)
    url = f"http://127.0.0.1:{aws.server_port}"
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join((str(built[0]), str(FUNCTIONS))),
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": url,
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{url}/credentials",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN": "of the snapshot",
        "POWERTOOLS_SERVICE_NAME": "ingest",
        **account.environment,
    }
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", RUN]
    with subprocess.Popen(
        command, env=environment, text=True, stdin=pipe, stdout=pipe, stderr=pipe
    ) as running:
        yield running
        # Unless the test has failed, it has ended before.
        running.kill()


def told(process: subprocess.Popen[str]) -> Any:
    """Returns what the process reports next."""
    assert process.stderr is not None
    return json.loads(process.stderr.readline())


def delivery(manifest: Manifest, event_id: str) -> str:
    body = json.dumps({"type": "lab.fine", "id": event_id}).encode()
    provider = providers.load(manifest.sources["acme"])
    headers = provider.sign(Sample(event_id, "lab.fine", body), SECRET, datetime.now(UTC))
    return json.dumps(http_event("/webhooks/acme", headers=headers, body=body))


def test_a_snapshot_has_no_connection_secret_credential_or_random_state(
    process: subprocess.Popen[str], manifest: Manifest
) -> None:
    assert told(process) == {"touched": [], "kept": []}
    assert Lambda.asked == []

    logs, _ = process.communicate(
        "".join(f"{delivery(manifest, event_id)}\n" for event_id in ("evt-1", "evt-2"))
    )

    # The first delivery of each process reads the credentials with the token of its own time.
    first, *others = Lambda.asked
    assert first == ("credentials", "after the restore")
    operations = ["GetSecretValue", "PutItem", "PutItem", "SendMessageBatch"]
    again = ["PutItem", "SendMessageBatch"]
    assert others == [(name, "fetched") for name in (*operations, *again)]
    lines = [json.loads(line) for line in logs.splitlines()]
    assert [line["status"] for line in lines] == [202, 202]
    assert [line.get("cold_start", False) for line in lines] == [True, False]


def test_no_random_number_is_drawn_from_a_state_that_the_snapshot_has(
    process: subprocess.Popen[str], manifest: Manifest
) -> None:
    """Each process would make the same pauses; the failed write is retried after a drawn one."""
    assert process.stdin is not None
    told(process)
    process.stdin.write(f"{delivery(manifest, 'evt-1')}\n")
    process.stdin.flush()

    assert told(process) == {"status": 202, "drawn": False}
    assert [name for name, _ in Lambda.asked].count("PutItem") == 2
