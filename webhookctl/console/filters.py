"""The filters of the event list, which are the query of its URL: a view is saved as a bookmark."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Final, Self
from urllib.parse import urlencode

import typer

from webhook_inbox.client.search import EventQuery
from webhook_inbox.domain.model import EventStatus
from webhook_inbox.domain.quotas import token
from webhookctl.display.times import moment

# Longer values select nothing that exists.
LIMIT: Final = 512
HOW_THEY_COMBINE: Final = (
    "An event is listed if it meets every filter that is set. With a handler, the status is that of"
    " the handler's run. The text is looked for in ids, types, tenants and errors."
)


class BadFilter(ValueError):
    """A filter in the URL has a value that it cannot have; the text names the fix."""


@dataclass(frozen=True, slots=True)
class EventFilter:
    """The values as the user typed them; "" for a filter that is not set."""

    source: str = ""
    type: str = ""
    status: str = ""
    handler: str = ""
    tenant: str = ""
    since: str = ""
    until: str = ""
    text: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Self:
        """Returns the filter in a URL's query; other parameters are ignored.

        Raises:
            BadFilter: a value is too long, or no status.
        """
        given = {each.name: query.get(each.name, "").strip() for each in fields(cls)}
        if long := [name for name, value in given.items() if len(value) > LIMIT]:
            raise BadFilter(f"{', '.join(long)}: at most {LIMIT} characters")
        status = given["status"]
        if status and status not in set(EventStatus):
            raise BadFilter(f"status {status!r}: choose one of {', '.join(EventStatus)}")
        return cls(**given)

    @property
    def query(self) -> str:
        """The query of a URL with this filter, "" if nothing is set."""
        return urlencode(dict(self.set))

    @property
    def set(self) -> Iterator[tuple[str, str]]:
        """The filters that are set, with their values."""
        return (
            (each.name, value) for each in fields(self) if (value := str(getattr(self, each.name)))
        )

    def wanted(self, now: datetime) -> EventQuery:
        """Returns the filter for a search; raises BadFilter for a time that is none."""
        try:
            low, high = (moment(each, now) if each else None for each in (self.since, self.until))
        except typer.BadParameter as error:
            raise BadFilter(str(error)) from error
        return EventQuery(
            source=self.source or None,
            type=self.type or None,
            status=EventStatus(self.status) if self.status else None,
            handler=self.handler or None,
            since=low,
            until=high,
            tenant=token(self.tenant) if self.tenant else None,
        )


# The views that the list offers; any other is saved as a bookmark.
VIEWS: Final = (
    ("Newest", EventFilter()),
    ("Dead", EventFilter(status=EventStatus.DEAD_LETTER)),
    ("Dead, received in 24 h", EventFilter(status=EventStatus.DEAD_LETTER, since="24h")),
    ("Held for approval", EventFilter(status=EventStatus.HELD)),
    ("Waiting", EventFilter(status=EventStatus.DEFERRED)),
    ("Will be retried", EventFilter(status=EventStatus.FAILED)),
)
