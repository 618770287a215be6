"""Failures of AWS at any call of a function, before or after the effect."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from botocore.awsrequest import AWSResponse
from botocore.exceptions import EndpointConnectionError, ReadTimeoutError

from tests.functions.wire import exchange, operation_of
from webhook_inbox.adapters.aws.connection import BODY, Connection, Reply


class Fault(Enum):
    """How a call fails.

    The value is the HTTP status and AWS's code, or the errors of the SDK and of a connection.
    """

    THROTTLED = (400, "ThrottlingException")
    DOWN = (503, "ServiceUnavailable")
    DENIED = (403, "AccessDeniedException")
    SILENT = (ReadTimeoutError, TimeoutError)
    UNREACHABLE = (EndpointConnectionError, ConnectionRefusedError)

    def reply(self) -> Reply:
        """Raises the error of ingest's connection, or returns AWS's answer."""
        first, second = self.value
        if not isinstance(first, int):
            raise second("test")
        document = {"__type": f"com.amazonaws#{second}", "message": "this is a test"}
        xml = f"<Error><Code>{second}</Code><Message>this is a test</Message></Error>"
        # One answer for both protocols: S3's is found in any text.
        return Reply(first, {}, json.dumps({**document, "xml": xml}).encode())

    def raise_or_answer(self) -> tuple[int, dict[str, Any]]:
        """Raises the SDK's error, or returns AWS's answer."""
        status, code = self.value
        if not isinstance(status, int):
            raise status(endpoint_url="https://aws.example", error="test")
        metadata = {"HTTPStatusCode": status, "RetryAttempts": 0}
        error = {"Code": code, "Message": "this is a test"}
        return status, {"Error": error, "ResponseMetadata": metadata}


@dataclass
class _Rule:
    fault: Fault
    after: bool
    times: int
    skip: int


@dataclass
class Faults:
    """Breaks calls by the name of their operation, and remembers every call that was tried."""

    calls: list[str] = field(default_factory=list)
    _rules: dict[str, _Rule] = field(default_factory=dict)
    _answers: dict[str, Callable[[dict[str, Any]], None]] = field(default_factory=dict)
    _session: Any = None

    def set(
        self,
        operation: str,
        fault: Fault,
        *,
        after: bool = False,
        times: int = 99,
        skip: int = 0,
    ) -> None:
        """Lets the operation fail so many times, once it was well `skip` times.

        `after`: it has its effect, and only the answer is lost.
        """
        self._rules[operation] = _Rule(fault, after, times, skip)

    def rewrite(self, operation: str, change: Callable[[dict[str, Any]], None]) -> None:
        """Changes the operation's answers."""
        self._answers[operation] = change

    def clear(self) -> None:
        """Removes all faults and recorded calls."""
        self.calls.clear()
        self._rules.clear()
        self._answers.clear()

    def installed(self, session: Any) -> bool:
        """Tells whether this comes between the session's clients and AWS."""
        return self._session is session

    def install(self, session: Any) -> None:
        """Comes between the session's clients and AWS."""
        self._session = session
        session.register("before-call", self._before)
        session.register("after-call", self._after)

    def exchange(
        self,
        connection: Connection,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        limit: int = BODY,
    ) -> Reply:
        """Comes between ingest's connections and moto."""
        operation = operation_of(method, headers)
        self.calls.append(operation)
        if (rule := self._due(operation, after=False)) is not None:
            return rule.fault.reply()
        reply = exchange(connection, method, path, headers, body, limit=limit)
        if operation in self._answers:
            parsed = json.loads(reply.body)
            self._answers[operation](parsed)
            reply = reply._replace(body=json.dumps(parsed).encode())
        rule = self._due(operation, after=True)
        return reply if rule is None else rule.fault.reply()

    def _before(self, model: Any, **_: Any) -> tuple[AWSResponse, dict[str, Any]] | None:
        self.calls.append(model.name)
        rule = self._due(model.name, after=False)
        if rule is None:
            return None
        status, parsed = rule.fault.raise_or_answer()
        return AWSResponse("https://aws.example", status, {}, None), parsed

    def _after(self, model: Any, http_response: Any, parsed: dict[str, Any], **_: Any) -> None:
        if model.name in self._answers:
            self._answers[model.name](parsed)
        rule = self._due(model.name, after=True)
        if rule is not None:
            http_response.status_code, lost = rule.fault.raise_or_answer()
            parsed.update(lost)

    def _due(self, operation: str, *, after: bool) -> _Rule | None:
        rule = self._rules.get(operation)
        if rule is None or rule.after is not after or rule.times < 1:
            return None
        if rule.skip:
            rule.skip -= 1
            return None
        rule.times -= 1
        return rule
