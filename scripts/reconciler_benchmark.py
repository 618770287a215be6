"""Measures the cost of the reconciler's look at events: CPU time and AWS calls per event.

    python -m scripts.reconciler_benchmark [EVENTS_PER_SECOND]

One pass reads the events of a minute for the first time, and those of five minutes for the second
time. It uses the real AWS client; the responses are made here, and the time for making them is not
counted. There is no network time.
"""

import json
import sys
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import botocore.session
from botocore.awsrequest import AWSPreparedRequest, AWSResponse

from webhook_inbox.adapters.aws.dynamodb import DynamoTable, row_to_wire
from webhook_inbox.adapters.memory import ManualClock, memory_ports
from webhook_inbox.domain.manifest import HandlerSpec, Manifest
from webhook_inbox.domain.ports import Ports
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ledger.schema import RECEIVED_SHARDS
from webhook_inbox.reconciler.received import FIRST_LOOK, SECOND_LOOK, SECOND_STEP
from webhook_inbox.reconciler.reconciler import Reconciler

MINUTE: Final = timedelta(minutes=1)
HANDLER: Final = "shop.fulfil"
# A settled run as it is after its first attempt.
RUN: Final = row_to_wire({"status": "done"})


class Responses:
    """Makes DynamoDB's responses; a run is done, and an event has one run."""

    def __init__(self, per_second: float) -> None:
        self._step = round(1000 * RECEIVED_SHARDS / per_second)
        self.calls = Counter[str]()
        self.seconds = 0.0

    def respond(self, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        """Returns the response to a request, without sending it."""
        began = time.process_time()
        operation = request.headers["X-Amz-Target"].decode().partition(".")[2]
        self.calls[operation] += 1
        body = json.dumps(getattr(self, f"_{operation}")(json.loads(request.body))).encode()
        response = AWSResponse(request.url, 200, {"Content-Type": "application/json"}, None)
        response._content = body  # noqa: SLF001 - the raw stream is never read
        self.seconds += time.process_time() - began
        return response

    def _Query(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802 - the operation's name
        if asked.get("IndexName") != "by_received":
            return {"Items": []}
        values = asked["ExpressionAttributeValues"]
        low, high, bucket = int(values[":0"]["N"]), int(values[":1"]["N"]), values[":2"]
        hour, _, shard = bucket["S"].partition("#")
        first = max(low, to_ms(datetime.fromisoformat(f"{hour}:00:00+00:00")))
        if "ExclusiveStartKey" in asked:
            first = int(asked["ExclusiveStartKey"]["received_at"]["N"]) + 1
        at = range(first + -first % self._step, high + 1, self._step)[: asked["Limit"]]
        items = [
            {
                "pk": {"S": f"event#stripe#evt_1OhNqZ2eZvKYlo2C{moment}{shard}"},
                "sk": {"S": "event"},
                "received_bucket": bucket,
                "received_at": {"N": str(moment)},
                "source": {"S": "stripe"},
                "type": {"S": "invoice.paid"},
                "runs": {"L": [{"S": HANDLER}]},
            }
            for moment in at
        ]
        if len(items) < asked["Limit"]:
            return {"Items": items}
        names = ("pk", "sk", "received_bucket", "received_at")
        return {"Items": items, "LastEvaluatedKey": {name: items[-1][name] for name in names}}

    def _BatchGetItem(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        ((name, wanted),) = asked["RequestItems"].items()
        return {"Responses": {name: [{**key, **RUN} for key in wanted["Keys"]]}}

    def _GetItem(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        if asked["Key"]["sk"]["S"] != "cursors":
            return {}
        return {"Item": {**asked["Key"], **row_to_wire(cursors(NOW))}}

    def _UpdateItem(self, _: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {"Attributes": {}}


NOW: Final = datetime(2026, 1, 1, 12, 40, tzinfo=UTC)


def cursors(now: datetime) -> dict[str, Any]:
    """Returns the cursors of a pass that has to read one minute with each look."""
    ends = {"first": FIRST_LOOK + MINUTE, "second": SECOND_LOOK + SECOND_STEP}
    return {
        **{
            k: {str(s): to_ms(now - age) for s in range(RECEIVED_SHARDS)} for k, age in ends.items()
        },
        "lanes": {},
    }


def main() -> None:
    """Runs one pass and prints its cost."""
    per_second = float(sys.argv[1]) if len(sys.argv) > 1 else 1000.0
    responses = Responses(per_second)
    session = botocore.session.get_session()
    session.set_credentials("x", "x")
    client = session.create_client("dynamodb", region_name="eu-west-1")
    client.meta.events.register("before-send.dynamodb.*", responses.respond)
    table, clock = DynamoTable(client, "ledger"), ManualClock(NOW)
    handler = HandlerSpec(HANDLER, "module", "function", "stripe", ("*",))
    manifest = Manifest(stage="x", version="1", sources={}, handlers={HANDLER: handler})
    ports: Ports = memory_ports(manifest, clock=clock)
    reconciler = Reconciler(manifest, replace(ports, table=table, dlqs={}))
    began = time.process_time()
    report = reconciler.run(deadline=NOW + timedelta(minutes=5))
    seconds = time.process_time() - began - responses.seconds
    # The second look reads the events of some minutes at once.
    minutes = 1 + SECOND_STEP / MINUTE
    events = per_second * 60 * minutes
    calls = sum(responses.calls.values())
    sys.stdout.write(
        f"{events:,.0f} events read, complete: {report.complete}, {report.counts}\n"
        f"CPU: {seconds:.1f} s, {seconds / events * 1e6:.0f} µs an event and look\n"
        f"for {per_second:g} events/s: {seconds / minutes * 2:.1f} s CPU a minute\n"
        f"calls: {calls:,}, {calls / events:.4f} an event and look: {dict(responses.calls)}\n"
    )


if __name__ == "__main__":
    main()
