"""Values of a template's fields in a delivery."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.json_path import at, document, fields, form, form_field
from webhook_inbox.domain.model import Delivery
from webhook_inbox.providers.schemes import http
from webhook_inbox.providers.schemes.signatures.signed_content import Template

LARGEST: Final = 10**100


def headers_of(template: Template) -> list[str]:
    """Returns the lower-case names of the headers that a template names."""
    kinds = (field.partition(":") for field in template.fields)
    return [name for kind, _, name in kinds if kind in {"header", "headers"}]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """The values of one delivery's fields.

    Attributes:
        delivery: the delivery.
        stamp: the time as the provider wrote it.
        ids: lower-case names of the `{id}` header, in order of preference.
        url: the configured address; see `http.public`.
    """

    delivery: Delivery
    stamp: str
    ids: tuple[str, ...]
    url: str

    def __getitem__(self, field: str) -> bytes:
        """Returns a field's bytes; raises Rejected (malformed) if it is missing or not text."""
        kind, _, name = field.partition(":")
        if kind == "body":
            return self.delivery.body
        if kind == "timestamp":
            return http.encoded(self.stamp)
        if kind == "id":
            return http.encoded(http.required(self.delivery.headers, self.ids))
        if name:
            return http.encoded(_NAMED[kind](self.delivery, name))
        return http.encoded(_PARTS[kind](self.delivery, self.url))


def _sorted_query(delivery: Delivery, _: str) -> str:
    return "&".join(f"{key}={value}" for key, value in sorted(fields(delivery.query)))


def _path(delivery: Delivery, url: str) -> str:
    return urlsplit(url).path or "/" if url else delivery.path


def _form(delivery: Delivery, _: str) -> str:
    pairs = sorted(set(form(delivery)))
    if delivery.body and not pairs:
        # No part of it would be signed.
        raise Rejected(Reason.MALFORMED, "the body is not a form")
    return "".join(key + value for key, value in pairs)


def _in_form(delivery: Delivery, name: str) -> str:
    found = form_field(delivery, name)
    if found is None:
        raise Rejected(Reason.MALFORMED, f"the form has no {name}, which is signed, or several")
    return found


def _in_json(delivery: Delivery, path: str) -> str:
    found = _in_json_or_not(delivery, path)
    if at(document(delivery), path) is None:
        raise Rejected(Reason.MALFORMED, f"the body has no {path}, which is signed")
    return found


def _in_json_or_not(delivery: Delivery, path: str) -> str:
    found = at(document(delivery), path)
    if found is None:
        return ""
    if isinstance(found, bool):
        return str(found).lower()
    if isinstance(found, int) and abs(found) < LARGEST:
        return str(found)
    if not isinstance(found, str):
        raise Rejected(Reason.MALFORMED, f"{path} of the body, which is signed, is not text")
    return found


def _in_header(delivery: Delivery, name: str) -> str:
    return http.required(delivery.headers, (name,))


def _listed(delivery: Delivery, name: str) -> str:
    """Returns the headers that a header lists, as `name:value`, sorted, joined by semicolons.

    Raises:
        Rejected: the list is missing, or does not list itself: anyone could shorten it.
    """
    names = sorted(each.strip().lower() for each in _in_header(delivery, name).split(","))
    if name not in names:
        raise Rejected(Reason.MALFORMED, f"{name} does not list itself")
    sent = delivery.headers
    return ";".join(f"{each}:{sent[each].strip()}" for each in names if each in sent)


_NAMED: Final[Mapping[str, Callable[[Delivery, str], str]]] = {
    "header": _in_header,
    "headers": _listed,
    "json": _in_json,
    "json?": _in_json_or_not,
    "form": _in_form,
}
_PARTS: Final[Mapping[str, Callable[[Delivery, str], str]]] = {
    "method": lambda delivery, _: delivery.method,
    "url": http.public,
    "url_with_port": lambda delivery, url: http.with_port(http.public(delivery, url), written=True),
    "url_without_port": lambda delivery, url: http.with_port(
        http.public(delivery, url), written=False
    ),
    "decoded_url": lambda delivery, url: http.decoded(http.public(delivery, url)),
    "escaped_path": lambda delivery, url: http.escaped(_path(delivery, url), delivery.query),
    "address": lambda delivery, url: http.public(delivery, url).partition("?")[0],
    "path": _path,
    "query": lambda delivery, _: delivery.query,
    "sorted_query": _sorted_query,
    "form": _form,
}
