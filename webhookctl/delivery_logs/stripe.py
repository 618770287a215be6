"""Stripe's list of events, as far as one webhook endpoint wants them.

It goes back 30 days. An event that is read from it is not signed, and its body need not be the one
that the endpoint is sent, which is rendered for the endpoint's API version: the two would be one id
with different content (G7). So what is missing is sent again by Stripe, by the operation behind
`stripe events resend`, and comes in signed.
Source: docs.stripe.com `api/events/list`, `api/webhook_endpoints/retrieve`, `cli/events/resend`;
stripe/stripe-cli `pkg/cmd/resource/events_resend.go` for that operation's path.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

from webhook_inbox.domain.timestamps import to_seconds
from webhookctl.delivery_logs.api import Api, Unusable
from webhookctl.delivery_logs.log import Logged

ADDRESS: Final = "https://api.stripe.com"
PAGE: Final = 100
# Everything but a few types that have to be asked for by name; of a new such type too much is told.
ALL: Final = "*"
_ENDPOINT: Final = re.compile(r"we_\w+", re.ASCII)


def headers(token: str) -> Mapping[str, str]:
    """Returns what is sent with every request."""
    return {"authorization": f"Bearer {token}"}


def endpoint_of(hook: str) -> str:
    """Returns a webhook endpoint's id; raises ValueError where it is none."""
    if _ENDPOINT.fullmatch(hook) is None:
        raise ValueError("write the endpoint's id, we_…, as its page in the dashboard shows it")
    return hook


class StripeLog:
    """The port `DeliveryLog`.

    Args:
        api: Stripe's.
        endpoint: the id of the webhook endpoint, `we_…`.
    """

    memory = timedelta(days=30)
    # Half of what a sandbox takes: 25 requests a second.
    pause = 0.08

    def __init__(self, api: Api, endpoint: str) -> None:
        self._api = api
        self._endpoint = endpoint

    def entries(self, low: datetime, high: datetime) -> Iterator[Logged]:
        """See the port."""
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
        """See the port."""
        path = f"/v1/events/{quote(entry.handle, safe='')}/retry"
        self._api.post(path, {"webhook_endpoint": self._endpoint})

    def _enabled(self) -> frozenset[str]:
        """Returns the types that the endpoint is sent."""
        document = self._api.get(f"/v1/webhook_endpoints/{self._endpoint}").document
        enabled = document.get("enabled_events") if isinstance(document, dict) else None
        if not isinstance(enabled, list):
            raise Unusable("the answer is no webhook endpoint: see that the address is Stripe's")
        return frozenset(map(str, enabled))


def _page(document: Any) -> tuple[list[Logged], bool]:
    try:
        return [_logged(event) for event in document["data"]], bool(document["has_more"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise Unusable("the list of events is not what Stripe documents") from error


def _logged(event: Any) -> Logged:
    event_id = str(event["id"])
    return Logged(
        event_id=event_id,
        type=str(event["type"]),
        at=datetime.fromtimestamp(event["created"], UTC),
        answered=None,
        handle=event_id,
    )
