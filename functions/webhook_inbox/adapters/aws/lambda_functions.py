"""Calls a Lambda function, and waits for its answer."""

import json
from collections.abc import Mapping
from typing import Any

from webhook_inbox.adapters.aws.account import Clients
from webhook_inbox.adapters.aws.errors import once
from webhook_inbox.domain.errors import InboxError


class FunctionFailed(InboxError):
    """The function raised an error, or died; the text is the error's, "" without one.

    Attributes:
        kind: the name of the error's class, "" where the function died.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def invoke(clients: Clients, name: str, payload: Mapping[str, Any]) -> Any:
    """Returns what the function returns for a payload.

    Raises:
        FunctionFailed: the function failed.
        Unavailable: Lambda failed, or did not answer; AccessDenied: it refused the call.
    """
    client = clients("lambda")

    def attempt() -> tuple[bool, Any]:
        answer = client.invoke(
            FunctionName=name,
            InvocationType="RequestResponse",
            Payload=json.dumps(payload).encode(),
        )
        return "FunctionError" in answer, json.loads(answer["Payload"].read() or b"null")

    failed, data = once("lambda", "Invoke", attempt)
    if failed:
        fault = data if isinstance(data, dict) else {}
        raise FunctionFailed(fault.get("errorType", ""), fault.get("errorMessage") or "")
    return data
