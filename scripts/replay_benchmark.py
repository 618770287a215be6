"""Measures a replay's page: `python -m scripts.replay_benchmark`.

It replays through the AWS adapters against a server on this machine that answers like DynamoDB
and SQS, with a fixed latency: runs per second, CPU per run, peak memory.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import time
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from webhook_inbox.adapters.aws.clients import steady
from webhook_inbox.adapters.aws.dynamodb import DynamoTable, row_from_wire, row_to_wire
from webhook_inbox.adapters.aws.sqs import SqsQueue
from webhook_inbox.adapters.system import SystemClock, SystemRandomness, ThreadParallel
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.model import EventStatus
from webhook_inbox.domain.ports import Item, Ports
from webhook_inbox.domain.timestamps import to_ms, to_seconds
from webhook_inbox.ledger.schema import RUN_LIFE, dead_entry, run_key
from webhook_inbox.replay.replay import Replay
from webhook_inbox.replay.request import ReplayRequest

NOW: Final = datetime.now(UTC)
ROWS: Final = 200_000
THREADS: Final = 16
# Seconds, as DynamoDB and SQS answer in a region: assumed, not measured.
LEDGER_LATENCY: Final = 0.008
QUEUE_LATENCY: Final = 0.010


def run_row(number: int) -> Item:
    """Returns a dead run of an event of the last days."""
    received = NOW - timedelta(seconds=2 * number)
    key = run_key("acme", f"evt-{number}", "acme.fulfil")
    return {
        "pk": key.pk,
        "sk": key.sk,
        "source": "acme",
        "event_id": f"evt-{number}",
        "handler": "acme.fulfil",
        "type": "paid",
        "status": "dead_letter",
        "first_at": to_ms(received),
        "dead_at": to_ms(received),
        "attempt_count": 8,
        "claims": 8,
        "last_error": "permanent: 422 no such order",
        "expires_at": to_seconds(received + RUN_LIFE),
        **dead_entry(key, received + RUN_LIFE),
    }


class Aws:
    """Answers as DynamoDB and SQS do, after a latency."""

    def __init__(self, runs: int) -> None:
        rows = [run_row(number) for number in range(runs)]
        self.rows = {(row["pk"], row["sk"]): row for row in rows}
        self.shards = defaultdict[str, list[Item]](list)
        for row in sorted(rows, key=lambda row: int(row["due_at"])):
            self.shards[row["due_bucket"]].append(row)
        self.calls: Counter[str] = Counter()

    async def serve(self, port: Any) -> None:
        """Serves until the process is ended."""
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        port.send(server.sockets[0].getsockname()[1])
        async with server:
            await server.serve_forever()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            headers = dict(
                line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:] if line
            )
            body = json.loads(await reader.readexactly(int(headers["content-length"])))
            operation = headers["x-amz-target"].rpartition(".")[2]
            queue = "sqs" in headers["x-amz-target"]
            await asyncio.sleep(QUEUE_LATENCY if queue else LEDGER_LATENCY)
            text = json.dumps(self._answer(operation, body)).encode()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/x-amz-json-1.0\r\n")
            writer.write(f"content-length: {len(text)}\r\n\r\n".encode() + text)

    def _answer(self, operation: str, body: Any) -> Any:
        match operation:
            case "query":
                return self._query(body)
            case "batchgetitem":
                keys = body["RequestItems"]["ledger"]["Keys"]
                named = [(key["pk"]["S"], key["sk"]["S"]) for key in keys]
                found = [self.rows[key] for key in named if key in self.rows]
                return {"Responses": {"ledger": [row_to_wire(row) for row in found]}}
            case "updateitem":
                key = body["Key"]["pk"]["S"], body["Key"]["sk"]["S"]
                return {"Attributes": row_to_wire(self.rows.get(key, {}))}
            case "sendmessagebatch":
                sent = [
                    {"Id": entry["Id"], "MessageId": "m", "MD5OfMessageBody": ""}
                    for entry in body["Entries"]
                ]
                return {"Successful": sent, "Failed": []}
        return {}

    def _query(self, body: Any) -> Any:
        names = [v["S"] for v in body["ExpressionAttributeValues"].values() if "S" in v]
        if "IndexName" not in body:
            listed = {"pk": "due_index", "sk": "handler#acme.fulfil", "handler": "acme.fulfil"}
            return {"Items": [row_to_wire(listed)] if "due_index" in names else []}
        [shard] = names
        entries = self.shards[shard]
        start = 0
        if "ExclusiveStartKey" in body:
            last = row_from_wire(body["ExclusiveStartKey"])
            start = next(n for n, row in enumerate(entries) if row["pk"] == last["pk"]) + 1
        page = entries[start : start + body["Limit"]]
        keys = [
            row_to_wire({k: row[k] for k in ("pk", "sk", "due_bucket", "due_at")}) for row in page
        ]
        more = len(page) == body["Limit"]
        return {"Items": keys, **({"LastEvaluatedKey": keys[-1]} if more else {})}


def serve(runs: int, port: Any) -> None:
    """Serves in a process of its own."""
    asyncio.run(Aws(runs).serve(port))


def rate(runs: int, asked: float, threads: int) -> None:
    """Measures one page of a replay."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(runs, there))
    process.start()
    endpoint = f"http://127.0.0.1:{here.recv()}"
    os.environ.update(
        AWS_ENDPOINT_URL=endpoint,
        AWS_DEFAULT_REGION="eu-west-1",
        AWS_ACCESS_KEY_ID="test",
        AWS_SECRET_ACCESS_KEY="test",  # noqa: S106 - a server on this machine
    )
    table = DynamoTable(steady("dynamodb"), "ledger")
    queue = SqsQueue(steady("sqs"), f"{endpoint}/1/default")
    clock = SystemClock()
    ports = Ports(
        table=table,
        clock=clock,
        randomness=SystemRandomness(),
        queues={"default": queue},
        parallel=ThreadParallel(threads),
    )
    replay = Replay(Manifest(), ports)
    try:
        begun, cpu = time.monotonic(), time.process_time()
        dead = (EventStatus.DEAD_LETTER,)
        request = ReplayRequest(status=dead, limit=runs, rate_per_second=asked)
        report = replay.run(request, deadline=clock.now() + timedelta(minutes=5))
        took, used = time.monotonic() - begun, time.process_time() - cpu
    finally:
        process.terminate()
        process.join()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(  # noqa: T201
        f"{threads:3} threads, {asked:g}/s asked: {report.counts} in {took:.1f} s,"
        f" {report.matched / took:.0f} runs/s; {1000 * used / report.matched:.2f} ms CPU per run;"
        f" process at most {peak:.0f} MB"
    )


def main() -> None:
    """Runs the benchmark with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5000)
    parser.add_argument("--rate", type=float, default=500)
    parser.add_argument("--threads", type=int, default=THREADS)
    chosen = parser.parse_args()
    rate(chosen.runs, chosen.rate, chosen.threads)


if __name__ == "__main__":
    main()
