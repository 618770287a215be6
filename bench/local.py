"""Measures the local runtime: deliveries accepted, and runs done, per second on this machine.

    python -m bench.local --deliveries 1000 --connections 8

Accepted is a signed delivery of 1 KB that was answered with a 2xx, so verified and stored. Runs are
those of its one handler, without effects; the floor is a function that does nothing behind a queue
of the same emulator with the same mapping. The load is bounded: so many deliveries, over so many
connections.
"""

import argparse
import hashlib
import hmac
import io
import json
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import shake_128
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import Final

import psutil

from webhookctl.local.inbox import LocalInbox

PROJECT: Final = Path(__file__).parent / "projects" / "processor"
SECRET: Final = "not a secret, only a measurement"  # noqa: S105
WARM_UP: Final = 40  # deliveries
LIMIT: Final = 300.0  # seconds until the last run is done
POLL: Final = 0.1
NOTHING: Final = "def lambda_handler(event, context):\n    print('{}')\n"


@dataclass(frozen=True, slots=True)
class Throughput:
    """One measurement; `cpu` has the seconds of CPU of each kind of process."""

    what: str
    count: int
    seconds: float
    latency: float
    cpu: dict[str, float]

    @property
    def rate(self) -> float:
        """How many a second."""
        return self.count / self.seconds


def measure(
    *, deliveries: int = 1000, connections: int = 8, state: Path | None = None
) -> list[Throughput]:
    """Measures the local runtime with the handler without effects, then its floor."""
    with LocalInbox(PROJECT, secrets={"acme": SECRET}, state=state) as inbox:
        load = _Load(inbox, connections)
        load.post([_number(-1 - n) for n in range(WARM_UP)])
        _await_drained(inbox, json.loads(inbox.outputs["QueueUrls"])["default"])
        ignored = load.timed("accepted, without a handler", range(deliveries), "ignored")
        before = _cpu(inbox)
        begun = time.monotonic()
        accepted = load.timed("accepted, with a handler", range(deliveries), "none")
        _await_drained(inbox, json.loads(inbox.outputs["QueueUrls"])["default"])
        ended = time.monotonic() - begun
        done = Throughput("runs done", deliveries, ended, 0.0, _used(inbox, before))
        return [ignored, accepted, done, _floor(inbox, deliveries)]


class _Load:
    """Posts signed deliveries over a number of connections."""

    def __init__(self, inbox: LocalInbox, connections: int) -> None:
        self._inbox = inbox
        self._host = inbox.front_url.removeprefix("http://")
        self._connections = connections

    def timed(self, what: str, numbers: range, event_type: str) -> Throughput:
        """Posts deliveries as fast as they are accepted."""
        before = _cpu(self._inbox)
        begun = time.monotonic()
        latencies = self.post([_number(n, event_type) for n in numbers])
        seconds = time.monotonic() - begun
        used = _used(self._inbox, before)
        return Throughput(what, len(latencies), seconds, median(latencies), used)

    def post(self, bodies: list[tuple[str, bytes]]) -> list[float]:
        """Posts each body; returns the seconds until its answer."""
        parts = [bodies[start :: self._connections] for start in range(self._connections)]
        with ThreadPoolExecutor(self._connections) as pool:
            return [each for found in pool.map(self._post, parts) for each in found]

    def _post(self, bodies: list[tuple[str, bytes]]) -> list[float]:
        connection = HTTPConnection(self._host, timeout=60)
        latencies = []
        for event_id, body in bodies:
            at = str(int(time.time()))
            signed = hmac.new(SECRET.encode(), f"{at}.".encode() + body, hashlib.sha256)
            headers = {
                "Content-Type": "application/json",
                "X-Acme-Event-Id": event_id,
                "X-Acme-Timestamp": at,
                "X-Acme-Signature": f"sha256={signed.hexdigest()}",
            }
            begun = time.monotonic()
            status = HTTPStatus.SERVICE_UNAVAILABLE
            # An overloaded inbox asks for a repetition, which a provider makes.
            while status == HTTPStatus.SERVICE_UNAVAILABLE:
                connection.request("POST", "/webhooks/acme", body, headers)
                answer = connection.getresponse()
                content, status = answer.read(), HTTPStatus(answer.status)
            latencies.append(time.monotonic() - begun)
            if status not in {HTTPStatus.OK, HTTPStatus.ACCEPTED}:
                raise SystemExit(f"{answer.status}: {content!r}")
        connection.close()
        return latencies


def _number(number: int, event_type: str = "none") -> tuple[str, bytes]:
    """Returns the id and the body of a delivery."""
    text = shake_128(str(number).encode()).hexdigest(490)
    body = json.dumps({"type": event_type, "text": text}).encode()
    return f"{event_type}-{number}", body


def _await_drained(inbox: LocalInbox, url: str) -> None:
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        found = inbox.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=names)
        if not any(int(value) for value in found["Attributes"].values()):
            return
        time.sleep(POLL)
    raise SystemExit(f"{url} has messages after {LIMIT:.0f} s")


def _floor(inbox: LocalInbox, messages: int) -> Throughput:
    """Measures a function that does nothing behind a queue with the processor's mapping."""
    sqs, functions = inbox.client("sqs"), inbox.client("lambda")
    name = json.loads(inbox.outputs["ProcessorFunctionNames"])["default"]
    role = functions.get_function_configuration(FunctionName=name)["Role"]
    [mapping] = functions.list_event_source_mappings(FunctionName=name)["EventSourceMappings"]
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as target:
        target.writestr("nothing.py", NOTHING)
    functions.create_function(
        FunctionName="floor",
        Role=role,
        Runtime="python3.13",
        Handler="nothing.lambda_handler",
        Code={"ZipFile": archive.getvalue()},
    )
    url = sqs.create_queue(QueueName="floor")["QueueUrl"]
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    for start in range(0, messages, 10):
        entries = [{"Id": str(n), "MessageBody": "{}"} for n in range(start, start + 10)]
        sqs.send_message_batch(QueueUrl=url, Entries=entries)
    before = _cpu(inbox)
    begun = time.monotonic()
    functions.create_event_source_mapping(
        EventSourceArn=found["Attributes"]["QueueArn"],
        FunctionName="floor",
        BatchSize=mapping["BatchSize"],
        ScalingConfig=mapping["ScalingConfig"],
    )
    _await_drained(inbox, url)
    seconds = time.monotonic() - begun
    return Throughput("runs of a no-op function", messages, seconds, 0.0, _used(inbox, before))


def _cpu(inbox: LocalInbox) -> dict[str, float]:
    """Returns the seconds of CPU by kind of process; a worker that has ended is left out."""
    kinds: dict[str, float] = {"gateway and load": _seconds(psutil.Process())}
    kinds["emulator"] = _seconds(psutil.Process(inbox.group))
    for kind in ("ingest", "processor"):
        pids = inbox.workers(kind)
        kinds[kind] = sum(_seconds(psutil.Process(pid)) for pid in pids if psutil.pid_exists(pid))
    return kinds


def _seconds(process: psutil.Process) -> float:
    used = process.cpu_times()
    return float(used.user + used.system)


def _used(inbox: LocalInbox, before: dict[str, float]) -> dict[str, float]:
    return {kind: seconds - before[kind] for kind, seconds in _cpu(inbox).items()}


def main() -> None:
    """Measures, and prints a table."""
    parser = argparse.ArgumentParser(description="Measure the local runtime.")
    parser.add_argument("--deliveries", type=int, default=1000)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--state", type=Path)
    options = parser.parse_args()
    for found in measure(
        deliveries=options.deliveries, connections=options.connections, state=options.state
    ):
        used = ", ".join(f"{kind} {1000 * s / found.count:.1f}" for kind, s in found.cpu.items())
        sys.stdout.write(
            f"{found.what:<28} {found.rate:6.0f}/s  median {1000 * found.latency:.0f} ms;"
            f" CPU ms each: {used}\n"
        )


if __name__ == "__main__":
    main()
