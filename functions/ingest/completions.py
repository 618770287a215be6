"""POST /completions/{token}: HTTP for completions. Loaded with the first completion."""

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

from ingest.log import JsonLog
from webhook_inbox.adapters.aws.lambda_events import body_of
from webhook_inbox.domain.errors import Rejected
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.ports import Ports
from webhook_inbox.handlers.completions.receiver import (
    CompletionOutcome,
    CompletionReceipt,
    Completions,
)

PREFIX: Final = "/completions/"
STATUSES: Final = {
    CompletionOutcome.RECORDED: 200,
    CompletionOutcome.REPEATED: 200,
    CompletionOutcome.LATE: 410,
    CompletionOutcome.OVER: 410,
    CompletionOutcome.CONFLICT: 409,
    CompletionOutcome.UNKNOWN: 404,
    CompletionOutcome.MALFORMED: 400,
    CompletionOutcome.TOO_LARGE: 413,
    CompletionOutcome.UNAVAILABLE: 503,
    CompletionOutcome.BROKEN: 503,
}
# Seconds; a repeated completion finishes an interrupted one.
RETRY_AFTER: Final = "5"
_ERRORS: Final = {
    CompletionOutcome.BROKEN,
    CompletionOutcome.CONFLICT,
    CompletionOutcome.UNAVAILABLE,
}
# The reasons that are answered for faults of this software.
_OUR_OWN: Final = {CompletionOutcome.BROKEN: "", CompletionOutcome.UNAVAILABLE: "try again"}


class Completing:
    """Answers completions."""

    def __init__(self, manifest: Manifest, ports: Ports, *, logger: JsonLog) -> None:
        self._completions = Completions(manifest, ports)
        self._logger = logger

    def answer(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the HTTP API response (payload format 2.0); never raises."""
        receipt = self._take(event)
        self._observe(receipt)
        return _response(receipt)

    def _take(self, event: Mapping[str, Any]) -> CompletionReceipt:
        try:
            token, body = _token(event), body_of(event)
        except (Rejected, TypeError, AttributeError) as error:
            return CompletionReceipt(CompletionOutcome.MALFORMED, str(error))
        return self._completions.by_token(token, body)

    def _observe(self, receipt: CompletionReceipt) -> None:
        """Writes one log line; the token is not in it (G10)."""
        outcome, place = str(receipt.outcome), receipt.place
        write = self._logger.error if receipt.outcome in _ERRORS else self._logger.info
        write(
            f"completion {outcome}",
            extra={
                "source": place.source if place else "",
                "event_id": place.event_id if place else "",
                "handler": place.handler if place else "",
                "effect": place.name if place else "",
                "outcome": outcome,
                "detail": receipt.detail,
            },
        )


def _token(event: Mapping[str, Any]) -> str:
    named = (event.get("pathParameters") or {}).get("token")
    if named is not None:
        return str(named)
    # rawPath begins with the stage unless that is $default.
    return unquote(str(event.get("rawPath")).partition(PREFIX)[2])


def _response(receipt: CompletionReceipt) -> dict[str, Any]:
    reason = _OUR_OWN.get(receipt.outcome, receipt.detail)
    headers = {"content-type": "application/json", "cache-control": "no-store"}
    status = STATUSES[receipt.outcome]
    if status == STATUSES[CompletionOutcome.UNAVAILABLE]:
        headers["retry-after"] = RETRY_AFTER
    body = {"status": str(receipt.outcome), **({"reason": reason} if reason else {})}
    return {"statusCode": status, "headers": headers, "body": json.dumps(body)}
