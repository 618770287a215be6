"""GET /status/{token}: HTTP for status URLs. Loaded with the first one."""

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

from ingest.log import JsonLog
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Clock
from webhook_inbox.ingest.event_status import EventStatuses

PREFIX: Final = "/status/"
# Seconds; a throttled table recovers in seconds.
RETRY_AFTER: Final = "5"
HEADERS: Final = {"content-type": "application/json", "cache-control": "no-store"}


class StatusReading:
    """Answers the requests of status URLs."""

    def __init__(self, statuses: EventStatuses, *, clock: Clock, logger: JsonLog) -> None:
        self._statuses = statuses
        self._clock = clock
        self._logger = logger

    def answer(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the HTTP API response (payload format 2.0); never raises.

        Any wrong token gets the same answer. The token is in no log line (G10), nor is the line of
        a read status: callers may read often.
        """
        try:
            found = self._statuses.read(_token(event), self._clock.now())
        except Unavailable as error:
            self._logger.error("status unavailable", extra={"reason": str(error)})
            return _response(503, {"status": "unavailable"}, {"retry-after": RETRY_AFTER})
        except Exception as error:  # noqa: BLE001 - a fault of this software, answered as such
            # Its text might have the token.
            self._logger.error("status broken", extra={"error_class": type(error).__name__})
            return _response(503, {"status": "broken"}, {"retry-after": RETRY_AFTER})
        if found is None:
            return _response(404, {"status": "unknown"}, {})
        return _response(200, found, {})


def _token(event: Mapping[str, Any]) -> str:
    named = (event.get("pathParameters") or {}).get("token")
    # rawPath begins with the stage unless that is $default.
    return str(named) if named is not None else unquote(str(event["rawPath"]).partition(PREFIX)[2])


def _response(status: int, body: Mapping[str, Any], more: Mapping[str, str]) -> dict[str, Any]:
    return {"statusCode": status, "headers": {**HEADERS, **more}, "body": json.dumps(body)}
