"""Clients of AWS whose answers are planned; what they are asked is checked against AWS's model."""

from collections.abc import Mapping
from io import BytesIO
from typing import Any

import boto3
from botocore.response import StreamingBody
from botocore.stub import ANY, Stubber

from webhook_inbox import Router
from webhook_inbox.handlers.router import ReadyMade
from webhook_inbox.testing import HandlerRun, Inbox

__all__ = ["ANY", "Aws", "handled", "payload"]


class Aws:
    """One service, stubbed: answers in order, and every call as it was made."""

    def __init__(self, service: str) -> None:
        self.client = boto3.client(
            service,
            region_name="eu-west-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )
        self.calls: list[dict[str, Any]] = []
        self._stubber = Stubber(self.client)
        self._stubber.activate()
        self.client.meta.events.register("provide-client-params", self._seen)

    def answers(self, method: str, answer: Mapping[str, Any]) -> "Aws":
        self._stubber.add_response(method, dict(answer))
        return self

    def refuses(
        self, method: str, code: str, *, status: int = 400, headers: Mapping[str, str] | None = None
    ) -> "Aws":
        self._stubber.add_client_error(
            method,
            service_error_code=code,
            service_message="no",
            http_status_code=status,
            response_meta={"HTTPHeaders": dict(headers or {})},
        )
        return self

    def _seen(self, params: dict[str, Any], **_: Any) -> None:
        self.calls.append(params)


def payload(body: bytes) -> StreamingBody:
    return StreamingBody(BytesIO(body), len(body))


def handled(ready: ReadyMade, event: Any, **options: Any) -> HandlerRun:
    """Runs a ready-made handler with the testing kit."""
    router = Router("acme")
    router.on("*", name="acme.hand-on")(ready)
    return Inbox(router).run("acme.hand-on", event, **{"event_type": "order.paid", **options})
