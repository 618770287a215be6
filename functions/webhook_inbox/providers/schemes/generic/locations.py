"""Locations of values in a delivery: read from it, and written for a sample."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.json_path import form_field, parse, query_field, text_at
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Sent
from webhook_inbox.providers.schemes import http

KINDS: Final = ("header", "json", "form", "query")


@dataclass(frozen=True, slots=True)
class Location:
    """One location in a delivery.

    Attributes:
        kind: `header`, `json`, `form` or `query`.
        names: lower-case names of the header, in order of preference; otherwise the one dotted
            path in the body's JSON, or the one name of a field.
    """

    kind: str
    names: tuple[str, ...]

    def read(self, delivery: Delivery) -> str | None:
        """Returns the text or whole number at the location, or None."""
        if self.kind == "header":
            return http.first(delivery.headers, self.names)
        if self.kind == "json":
            return text_at(delivery, self.names[0])
        find = form_field if self.kind == "form" else query_field
        return find(delivery, self.names[0])

    def write(self, sent: Sent, value: str) -> Sent:
        """Returns the sent delivery with the value at the location.

        Raises:
            ConfigurationError: the body is of another kind.
        """
        name = self.names[0]
        if self.kind == "header":
            return replace(sent, headers={**sent.headers, name: value})
        if self.kind == "json":
            return replace(sent, body=_with(sent.body, name, value))
        field = urlencode({name: value})
        if self.kind == "query":
            return replace(sent, query=_added(sent.query, field))
        form = {**sent.headers, "content-type": "application/x-www-form-urlencoded"}
        return replace(sent, headers=form, body=_added(sent.body.decode(), field).encode())


def place(table: Mapping[str, Any]) -> Location | None:
    """Returns the location that a table names, or None."""
    kind = next((kind for kind in KINDS if kind in table), None)
    if kind is None:
        return None
    given = table[kind]
    if kind == "header":
        return Location(kind, names_of(given))
    return Location(kind, (given,))


def names_of(given: str | list[str]) -> tuple[str, ...]:
    """Returns one or several headers' names in lower case."""
    return tuple(name.lower() for name in ([given] if isinstance(given, str) else given))


def nested(path: str, value: object) -> dict[str, Any]:
    """Returns nested objects with the value at a dotted path."""
    first, _, rest = path.partition(".")
    return {first: nested(rest, value) if rest else value}


def _with(body: bytes, path: str, value: str) -> bytes:
    try:
        document = parse(body)
    except ValueError as error:
        raise ConfigurationError("the sample is not JSON, which this source needs") from error
    names = path.split(".")
    place = document
    for name in names[:-1]:
        place = place.setdefault(name, {}) if isinstance(place, dict) else None
    if not isinstance(place, dict):
        raise ConfigurationError(f"the sample has no room for {path}, which this source needs")
    place[names[-1]] = value
    return json.dumps(document, ensure_ascii=False).encode()


def _added(fields: str, field: str) -> str:
    return f"{fields}&{field}" if fields else field
