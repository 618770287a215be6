"""A deployed inbox whose roles lose one right at a time."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.e2e.inquiry import HOUR, fresh
from tests.e2e.mail_inbox import MailInbox
from tests.e2e.test_reconciled import EVERY_FIFTH
from webhook_inbox.configuration.handler_modules import registered_modules

# A source whose payloads the reconciler erases.
BRIEF = "brief"
NOTHING = {"Effect": "Deny", "Action": "iam:CreateUser", "Resource": "*"}


@dataclass(frozen=True, order=True)
class Right:
    """One action in one statement of a function's role."""

    function: str
    action: str
    on: str
    statement: int

    def __str__(self) -> str:
        return f"{self.function} {self.action} {self.on}"


class RightsInbox(MailInbox):
    """The guarded inbox with the choir, whose lanes the tests serve themselves.

    Attributes:
        done: an event of the choir in the default lane whose run is done.
    """

    done: str

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        handlers = self.functions / "handlers"
        modules = (*registered_modules(self.functions), "choir")
        (handlers / "choir.py").write_text(Path(__file__).with_name("choir.py").read_text())
        (handlers / "__init__.py").write_text(f"MODULES = {modules!r}\n")
        settings = self.functions / "inbox.toml"
        source = f'\n[sources.{BRIEF}]\nprovider = "github"\nretention = "1d"\n'
        settings.write_text(settings.read_text() + source)

    def serve_lanes_by_hand(self) -> None:
        """Stops the event source mappings, so that each message has one known invocation.

        Prepares what several outcomes refer to: an event that is done, and a backlog's age.
        """
        functions = self.client("lambda")
        for mapping in functions.list_event_source_mappings()["EventSourceMappings"]:
            functions.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)
        self.set_variables("ReconcilerFunctionName", CLOCK_MINUTES=EVERY_FIFTH)
        self._age_queue("fragile", HOUR * 12)
        self.done = fresh()
        wish = {"wish": "sing", "key": self.done, "number": 1}
        self.deliver("lab", "sing.default", wish, event_id=self.done)
        assert self.serve("default", self.done) == "deleted"

    def _age_queue(self, lane: str, age: timedelta) -> None:
        """Reports an age of the oldest message for the next hours: the local runtime has none."""
        name, now = self.queue(lane).rpartition("/")[2], datetime.now(UTC)
        point = {
            "MetricName": "ApproximateAgeOfOldestMessage",
            "Dimensions": [{"Name": "QueueName", "Value": name}],
            "Value": age.total_seconds(),
        }
        moments = [now + timedelta(minutes=minute) for minute in range(0, 180, 5)]
        data = [{**point, "Timestamp": moment} for moment in moments]
        self.client("cloudwatch").put_metric_data(Namespace="AWS/SQS", MetricData=data)

    # -- rights

    def functions_by_name(self) -> dict[str, str]:
        """Returns the functions, the processors with their lanes, by a short name."""
        processors = json.loads(self.outputs["ProcessorFunctionNames"])
        return {
            "ingest": self.outputs["IngestFunctionName"],
            "replay": self.outputs["ReplayFunctionName"],
            "reconciler": self.outputs["ReconcilerFunctionName"],
            **{f"processor {lane}": name for lane, name in processors.items()},
        }

    def _role(self, function: str) -> str:
        name = self.functions_by_name()[function]
        found = self.client("lambda").get_function_configuration(FunctionName=name)
        return str(found["Role"].rpartition("/")[2])

    def granted(self) -> list[Right]:
        """Returns every right of every function's role."""
        return [
            Right(function, action, _resource(statement["Resource"]), number)
            for function in self.functions_by_name()
            for number, statement in enumerate(self._statements(function))
            for action in _listed(statement["Action"])
            if not action.endswith(":SendMessageBatch")  # see GuardedInbox
        ]

    def _statements(self, function: str) -> list[dict[str, Any]]:
        """Returns the statements of all policies of a function's role."""
        policies = self._policies(self._role(function))
        return [each for _, document in policies for each in document["Statement"]]

    def _holding(self, role: str, number: int) -> tuple[int, str, dict[str, Any]]:
        """Returns the policy with this statement of a role, and the number of its first one."""
        first = 0
        for policy, document in self._policies(role):
            if number < first + len(document["Statement"]):
                return first, policy, document
            first += len(document["Statement"])
        raise AssertionError(f"{role} has no statement {number}")

    @contextlib.contextmanager
    def lacking(self, right: Right) -> Iterator[None]:
        """Removes a right from its statement for a while."""
        role = self._role(right.function)
        first, policy, document = self._holding(role, right.statement)
        gone = {right.action, f"{right.action}Batch"}
        statements = [
            {**statement, "Action": [a for a in _listed(statement["Action"]) if a not in gone]}
            if first + number == right.statement
            else statement
            for number, statement in enumerate(document["Statement"])
        ]
        left = [statement for statement in statements if statement["Action"]]
        # IAM stores no policy without a statement.
        self._put(role, policy, {**document, "Statement": left or [NOTHING]})
        try:
            yield
        finally:
            self._put(role, policy, document)

    def restart(self, function: str) -> None:
        """Starts a function anew: a process keeps the secrets that it has read."""
        functions, name = self.client("lambda"), self.functions_by_name()[function]
        found = functions.get_function_configuration(FunctionName=name)["Environment"]
        changed = {"Variables": {**found["Variables"], "STARTED": fresh()}}
        functions.update_function_configuration(FunctionName=name, Environment=changed)

    def call_function(self, function: str, payload: object) -> Any:
        """Invokes a function; an error is a fact too."""
        answer = self.client("lambda").invoke(
            FunctionName=self.functions_by_name()[function], Payload=json.dumps(payload).encode()
        )
        content = json.loads(answer["Payload"].read())
        return "error" if "FunctionError" in answer else content

    # -- messages

    def take(self, lane: str, text: str) -> dict[str, Any] | None:
        """Receives the visible message that holds a text, and deletes the others."""
        sqs, url = self.client("sqs"), self.queue(lane)
        while messages := sqs.receive_message(
            QueueUrl=url, VisibilityTimeout=360, AttributeNames=["All"]
        ).get("Messages"):
            (message,) = messages
            if text in message["Body"]:
                return dict(message)
            self.drop(lane, message)
        return None

    def waiting(self, lane: str) -> list[str]:
        """Receives every visible message, and returns the bodies."""
        sqs, url, bodies = self.client("sqs"), self.queue(lane), list[str]()
        while messages := sqs.receive_message(QueueUrl=url, VisibilityTimeout=360).get("Messages"):
            bodies += [message["Body"] for message in messages]
        return bodies

    def drop(self, lane: str, message: dict[str, Any]) -> None:
        receipt = message["ReceiptHandle"]
        self.client("sqs").delete_message(QueueUrl=self.queue(lane), ReceiptHandle=receipt)

    def serve(self, lane: str, text: str) -> str:
        """Invokes the lane's processor with a message, as a mapping does; returns what came."""
        message = self.take(lane, text)
        if message is None:
            return "no message"
        record = {
            "messageId": message["MessageId"],
            "receiptHandle": message["ReceiptHandle"],
            "body": message["Body"],
            "attributes": message["Attributes"],
            "messageAttributes": {},
            "eventSource": "aws:sqs",
            "eventSourceARN": f"arn:aws:sqs:us-east-1:000000000000:{lane}",
        }
        answer = self.call_function(f"processor {lane}", {"Records": [record]})
        if answer == "error":
            return "error"
        if answer["batchItemFailures"]:
            again = self.take(lane, text)
            return "kept" if again is None else "visible again"
        self.drop(lane, message)
        return "deleted"


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _resource(value: Any) -> str:
    """Returns the kind of resource, without the stack's name and random parts."""
    (first, *_) = _listed(value)
    kinds = {
        "log-group": "logs",
        "/index/": "index",
        ":table/": "table",
        "DeadLetters": "dead letters",
        ":sqs:": "queue",
        "/bodies/": "bodies",
        ":s3:": "bucket",
        ":secret:": "secrets",
    }
    return next((kind for part, kind in kinds.items() if part in first), first)
