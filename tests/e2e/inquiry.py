"""Sends to and inspects an inbox, wherever it runs."""

import json
import ssl
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from tests.e2e.http_call import Answer, call, insist
from tests.waiting import eventually
from webhook_inbox import providers
from webhook_inbox.adapters.aws.dynamodb import DynamoTable
from webhook_inbox.adapters.aws.s3 import S3Blobs
from webhook_inbox.client.secret_documents import SecretDocuments
from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.domain.manifest import DEFAULT_LANE, Manifest
from webhook_inbox.domain.model import Overview, Run, Status
from webhook_inbox.domain.provider import Sample
from webhook_inbox.domain.timestamps import to_ms, to_seconds
from webhook_inbox.ledger.deadlines import overdue_at
from webhook_inbox.ledger.queries import Ledger
from webhook_inbox.ledger.schema import RUN_LIFE, due_bucket, run_key

T = TypeVar("T")
FRAGILE = "fragile"
HOUR = timedelta(hours=1)


def fresh() -> str:
    """Returns an id that no other event has."""
    return f"e2e-{uuid.uuid4().hex}"


class Inquiry:
    """Sends to a deployed inbox, inspects the results, and acts as an operator.

    Subclasses set these attributes and `client`.
    """

    functions: Path
    sink_url: str
    front_url: str
    outputs: Mapping[str, str]
    secrets: Mapping[str, str]
    trust: ssl.SSLContext | None = None
    client: Callable[[str], Any]

    @property
    def documents(self) -> SecretDocuments:
        return SecretDocuments(self.client("secretsmanager"), self.outputs["SecretPrefix"])

    # -- sending

    @cached_property
    def manifest(self) -> Manifest:
        return compile_manifest(self.functions, stage="local")

    def signed(
        self,
        source: str,
        type_: str,
        body: bytes,
        *,
        event_id: str,
        now: datetime | None = None,
        secret: str | None = None,
    ) -> dict[str, str]:
        """Returns the headers that the source's provider would send."""
        spec = self.manifest.sources[source]
        value = self.secrets[spec.secret] if secret is None else secret
        sample = Sample(event_id, type_, body)
        return providers.load(spec).sign(sample, value, now or datetime.now(UTC))

    def post(self, source: str, body: bytes, headers: dict[str, str]) -> Answer:
        """Posts as a provider does, with retries until acknowledged."""
        url = f"{self.front_url}/webhooks/{source}"
        return insist(lambda: call(url, "POST", body=body, headers=headers, trust=self.trust))

    def deliver(self, source: str, type_: str, content: Any, *, event_id: str = "") -> Answer:
        """Posts a signed event; content that is not bytes becomes JSON."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        return self.post(source, body, self.signed(source, type_, body, event_id=event_id))

    def deliver_times(
        self, times: int, source: str, type_: str, content: Any, *, event_id: str = ""
    ) -> list[Answer]:
        """Posts the same event so often, all at once."""

        return self.at_once(times, lambda: self.deliver(source, type_, content, event_id=event_id))

    @staticmethod
    def at_once(times: int, act: Callable[[], T]) -> list[T]:
        """Does the same so often, all at once."""
        with ThreadPoolExecutor(times) as pool:
            return [future.result() for future in [pool.submit(act) for _ in range(times)]]

    def accept(self, type_: str, **wish: Any) -> str:
        """Delivers an event of the laboratory and returns its id."""
        event_id = fresh()
        answer = self.deliver("lab", type_, wish, event_id=event_id)
        assert answer.was_accepted, answer
        return event_id

    # -- looking

    @cached_property
    def table(self) -> DynamoTable:
        return DynamoTable(self.client("dynamodb"), self.outputs["TableName"])

    @cached_property
    def ledger(self) -> Ledger:
        blobs = S3Blobs(self.client("s3"), self.outputs["BucketName"])
        return Ledger(table=self.table, blobs=blobs)

    def overview(self, source: str, event_id: str) -> Overview | None:
        return self.ledger.overview(source, event_id, now=datetime.now(UTC), with_body=True)

    def runs(self, source: str, event_id: str) -> dict[str, Run]:
        found = self.overview(source, event_id)
        return {run.handler: run for run in found.runs} if found else {}

    def run(self, event_id: str, handler: str) -> Run:
        return self.runs("lab", event_id)[handler]

    def settled(self, source: str, event_id: str) -> Overview:
        """Waits until every run of an event is done, and returns the event."""

        def look() -> Overview | None:
            found = self.overview(source, event_id)
            return found if found is not None and found.status == "done" else None

        def state() -> str:
            return f"{source} {event_id} done: {self.runs(source, event_id)}"

        return eventually(look, what=state)

    def becomes(self, event_id: str, handler: str, status: Status) -> Run:
        """Waits until a run of the laboratory has a status, and returns it."""

        def look() -> Run | None:
            run = self.runs("lab", event_id).get(handler)
            return run if run is not None and run.status is status else None

        def state() -> str:
            return f"{handler} of {event_id} {status}: {self.runs('lab', event_id)}"

        return eventually(look, what=state)

    def effects(self, event_id: str) -> dict[str, dict[str, Any]]:
        """Returns the sink's effects of an event, by idempotency key."""
        listed: dict[str, dict[str, Any]] = call(f"{self.sink_url}/effects").json
        return {key: effect for key, effect in listed.items() if key.endswith(f":{event_id}")}

    def rows(self, pk: str) -> list[dict[str, Any]]:
        return list(self.table.query(pk))

    # -- acting

    def invoke(self, output: str, payload: object) -> dict[str, Any]:
        """Invokes a function by the output that names it, as the console's test button does."""
        answer = self.client("lambda").invoke(
            FunctionName=self.outputs[output], Payload=json.dumps(payload).encode()
        )
        content: dict[str, Any] = json.loads(answer["Payload"].read())
        assert "FunctionError" not in answer, content
        return content

    def set_variables(self, output: str, **variables: str) -> None:
        """Changes a function's environment, beside what the stack set, and starts it anew."""
        functions, name = self.client("lambda"), self.outputs[output]
        found = functions.get_function_configuration(FunctionName=name)["Environment"]
        changed = {"Variables": {**found["Variables"], **variables}}
        functions.update_function_configuration(FunctionName=name, Environment=changed)

    def stop_schedule(self) -> None:
        """Leaves the reconciler to the tests.

        With its clock set ahead, a pass of the schedule would do first what a test is to count.
        """
        events = self.client("events")
        for rule in events.list_rules()["Rules"]:
            events.disable_rule(Name=rule["Name"])

    def replay(self, **payload: Any) -> dict[str, Any]:
        return self.invoke("ReplayFunctionName", {"rate_per_second": 500, **payload})

    def lose_pending(self, source: str, event_id: str, handler: str) -> None:
        """Writes a run that was sent an hour ago and whose message was lost."""
        key, long_ago = run_key(source, event_id, handler), datetime.now(UTC) - HOUR
        row = {
            "pk": key.pk,
            "sk": key.sk,
            "source": source,
            "event_id": event_id,
            "handler": handler,
            "type": "task",
            "status": str(Status.PENDING),
            "first_at": to_ms(long_ago),
            "last_at": to_ms(long_ago),
            "due_bucket": due_bucket(key),
            "due_at": to_ms(overdue_at(long_ago)),
            "expires_at": to_seconds(long_ago + RUN_LIFE),
        }
        self.table.put(row)

    def processor(self, lane: str = DEFAULT_LANE) -> str:
        return str(json.loads(self.outputs["ProcessorFunctionNames"])[lane])

    def queue(self, lane: str = DEFAULT_LANE) -> str:
        return str(json.loads(self.outputs["QueueUrls"])[lane])

    def dlq(self, lane: str = DEFAULT_LANE) -> str:
        return str(json.loads(self.outputs["DlqUrls"])[lane])

    def dead_letters(
        self, text: str, *, lane: str = DEFAULT_LANE, hidden_for: int = 0
    ) -> list[dict[str, Any]]:
        """Returns the DLQ's messages that hold a text, by default leaving them visible."""
        found = {message["MessageId"]: message for message in self._all_dead(lane)}
        wanted = [message for message in found.values() if text in message["Body"]]
        for message in found.values():
            seconds = hidden_for if message in wanted else 0
            self.client("sqs").change_message_visibility(
                QueueUrl=self.dlq(lane),
                ReceiptHandle=message["ReceiptHandle"],
                VisibilityTimeout=seconds,
            )
        return wanted

    def _all_dead(self, lane: str) -> Iterator[dict[str, Any]]:
        sqs = self.client("sqs")
        while messages := sqs.receive_message(
            QueueUrl=self.dlq(lane), MaxNumberOfMessages=10, VisibilityTimeout=30
        ).get("Messages"):
            yield from messages

    def moved_to_dlq(self, text: str, *, lane: str = DEFAULT_LANE, id_: str = "") -> dict[str, Any]:
        """Waits until SQS has moved a message to the DLQ, one with this id if given; returns it.

        SQS keeps the id of a message that it moves; a message that is sent again gets a new one.
        There may be copies: on a slow machine ingest times out after a send that succeeded.
        """

        def look() -> list[dict[str, Any]]:
            letters = self.dead_letters(text, lane=lane)
            return [letter for letter in letters if id_ in {"", letter["MessageId"]}]

        return eventually(look, what=f"{text!r} {id_} in the DLQ")[0]
