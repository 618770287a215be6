"""HTTP for deliveries: an event becomes a delivery, a receipt becomes a response."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from webhook_inbox.adapters.aws.lambda_events import delivery_from
from webhook_inbox.domain.errors import Rejected
from webhook_inbox.domain.provider import STATUSES, Answer
from webhook_inbox.ingest.ingest import Ingest
from webhook_inbox.ingest.receipt import IngestOutcome, Receipt

# Seconds: a throttled table recovers in seconds; setting a secret takes an operator longer.
RETRY_AFTER: Final = {
    IngestOutcome.UNAVAILABLE: "5",
    IngestOutcome.BROKEN: "60",
    IngestOutcome.NO_SECRET: "60",
    # A failed request for a key is repeated after 30 s.
    IngestOutcome.KEY_UNAVAILABLE: "60",
    IngestOutcome.UNCONFIRMED: "60",
}


def receive(ingest: Ingest, event: Mapping[str, Any], now: datetime) -> Receipt:
    """Receives the delivery of an HTTP API event; never raises."""
    try:
        delivery = delivery_from(event, received_at=now)
    except Rejected as error:
        status = STATUSES[error.reason]
        return Receipt(
            IngestOutcome.REJECTED, status, reason=str(error.reason), detail=error.detail
        )
    return ingest.receive(delivery)


def response(receipt: Receipt) -> dict[str, Any]:
    """Returns the HTTP API response (payload format 2.0) to a delivery."""
    if receipt.answer is not None:
        return _handshake(receipt.answer)
    body = {"status": str(receipt.outcome), "event_id": receipt.event_id, "reason": receipt.reason}
    body["status_url"] = receipt.status_url
    headers = {"content-type": "application/json"}
    if receipt.outcome in RETRY_AFTER:
        headers["retry-after"] = RETRY_AFTER[receipt.outcome]
    if receipt.outcome is IngestOutcome.WRONG_METHOD:
        headers["allow"] = "POST"
    return {
        "statusCode": receipt.status,
        "headers": headers,
        "body": json.dumps({name: value for name, value in body.items() if value}),
    }


def _handshake(answer: Answer) -> dict[str, Any]:
    return {
        "statusCode": answer.status,
        "headers": {"content-type": answer.content_type, **answer.headers},
        "body": answer.body.decode("utf-8", "replace"),
    }
