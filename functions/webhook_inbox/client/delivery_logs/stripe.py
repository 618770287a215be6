"""Stripe's list of the events that a webhook endpoint receives, 30 days of them.

The list's events are unsigned and may differ from the endpoint's, which use its API version; to
store them would give one id two contents (G7). Stripe therefore sends missing events again, signed,
by the operation behind `stripe events resend`.
Source: docs.stripe.com `api/events/list`, `api/webhook_endpoints/retrieve`, `cli/events/resend`;
stripe/stripe-cli `pkg/cmd/resource/events_resend.go` for that operation's path.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

from webhook_inbox.client.delivery_logs.api import Api, ApiUnusable
from webhook_inbox.client.delivery_logs.comparison import Logged
from webhook_inbox.domain.timestamps import to_seconds

PAGE: Final = 100
# All types but a few, which an endpoint must name; new ones of those would be listed as missing.
ALL: Final = "*"
_ENDPOINT: Final = re.compile(r"we_\w+", re.ASCII)


class StripeLog:
    """A `DeliveryLog` of the webhook endpoint with this id."""

    address: Final = "https://api.stripe.com"
    calm: Final = 1.0
    memory = timedelta(days=30)
    # Half the limit of a sandbox, 25 requests per second.
    pause = 0.08

    @staticmethod
    def headers(token: str) -> Mapping[str, str]:
        """Returns the headers of every request."""
        return {"authorization": f"Bearer {token}"}

    @staticmethod
    def named(hook: str) -> str:
        """Returns a webhook endpoint's id; raises ValueError for any other text."""
        if _ENDPOINT.fullmatch(hook) is None:
            raise ValueError("use the endpoint's id, we_…, shown on its page in the dashboard")
        return hook

    def __init__(self, api: Api, endpoint: str) -> None:
        self._api = api
        self._endpoint = endpoint

    def entries(self, low: datetime, high: datetime) -> Iterator[Logged]:
        """See `DeliveryLog`."""
        wanted = self._enabled()
        query = {
            "created[gte]": str(to_seconds(low)),
            "created[lte]": str(to_seconds(high)),
            "limit": str(PAGE),
        }
        while True:
            page, more = _page(self._api.get("/v1/events", query).document)
            yield from (entry for entry in page if ALL in wanted or entry.type in wanted)
            if not more or not page:
                return
            query["starting_after"] = page[-1].event_id

    def resend(self, entry: Logged) -> None:
        """See `DeliveryLog`."""
        path = f"/v1/events/{quote(entry.handle, safe='')}/retry"
        self._api.post(path, {"webhook_endpoint": self._endpoint})

    def _enabled(self) -> frozenset[str]:
        """Returns the types that the endpoint receives."""
        document = self._api.get(f"/v1/webhook_endpoints/{self._endpoint}").document
        enabled = document.get("enabled_events") if isinstance(document, dict) else None
        if not isinstance(enabled, list):
            raise ApiUnusable(
                "the response is not a webhook endpoint: check that the address is Stripe's"
            )
        return frozenset(map(str, enabled))


def _page(document: Any) -> tuple[list[Logged], bool]:
    try:
        return [_logged(event) for event in document["data"]], bool(document["has_more"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ApiUnusable("the list of events is not in Stripe's documented format") from error


def _logged(event: Any) -> Logged:
    event_id = str(event["id"])
    return Logged(
        event_id=event_id,
        type=str(event["type"]),
        at=datetime.fromtimestamp(event["created"], UTC),
        answered=None,
        handle=event_id,
    )
