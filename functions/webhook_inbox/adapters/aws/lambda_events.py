"""Reads the events of HTTP API and SQS."""

import base64
import binascii
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import unquote

from webhook_inbox.domain.errors import ForeignMessage, Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import Message
from webhook_inbox.domain.timestamps import from_ms

PREFIX: Final = "/webhooks/"


def delivery_from(event: Mapping[str, Any], *, received_at: datetime) -> Delivery:
    """Reads an HTTP API event (payload format 2.0).

    https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html

    Raises:
        Rejected: it is not such an event, or its body is not the base64 that it claims; only a
            manual invocation can send such an event.
    """
    try:
        context = event["requestContext"]
        http = context["http"]
        path = str(event["rawPath"])
        return Delivery(
            source=_source(event, path),
            method=str(http["method"]).upper(),
            path=path,
            query=str(event.get("rawQueryString") or ""),
            headers=headers_of(event),
            body=body_of(event),
            received_at=received_at,
            request_id=str(context.get("requestId") or ""),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise Rejected(Reason.MALFORMED, "not an HTTP API event of format 2.0") from error


def message_from(record: Mapping[str, Any]) -> Message:
    """Reads one record of an SQS event; raises ForeignMessage if it is not such a record."""
    try:
        attributes = record["attributes"]
        return Message(
            id=str(record["messageId"]),
            receipt=str(record["receiptHandle"]),
            body=str(record["body"]),
            sent_at=from_ms(int(attributes["SentTimestamp"])),
            receive_count=int(attributes["ApproximateReceiveCount"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ForeignMessage("not a record of an SQS event") from error


def _source(event: Mapping[str, Any], path: str) -> str:
    named = event.get("pathParameters") or {}
    if named.get("source") is not None:
        return str(named["source"])
    # rawPath begins with the stage unless that is $default.
    found = path.partition(PREFIX)[2]
    return unquote(found.partition("/")[0] if "tenant" in named else found)


def headers_of(event: Mapping[str, Any]) -> dict[str, str]:
    """Returns the headers of an HTTP API event, by their names in lower case."""
    found: dict[str, str] = {}
    for given, value in (event.get("headers") or {}).items():
        name = given.lower()
        # API Gateway joins repeated headers; a manual event may spell one in two ways.
        found[name] = f"{found[name]},{value}" if name in found else str(value)
    return found


def body_of(event: Mapping[str, Any]) -> bytes:
    """Returns the body of an HTTP API event.

    Raises:
        Rejected: it is not the base64 that the event claims.
        TypeError: it is not text.
    """
    body = event.get("body")
    if body is None:
        return b""
    if not isinstance(body, str):
        raise TypeError("the body is not text")
    if event.get("isBase64Encoded"):
        try:
            return base64.b64decode(body, validate=True)
        except (binascii.Error, ValueError) as error:
            raise Rejected(Reason.MALFORMED, "the body is not base64") from error
    # JSON can hold lone surrogates; such a body fails verification later.
    return body.encode("utf-8", "surrogatepass")
