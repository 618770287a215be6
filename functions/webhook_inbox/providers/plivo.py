"""Plivo: base64 over the public URL, sorted fields and a nonce (v3), or over URL and nonce (v2).

For v3, the query's fields are decoded and sorted; a form's fields follow as name and value, after a
question mark and a dot that depend on which of the two are present. The end of a name is not
signed, so one signature fits several forms and is valid for one event; an ignored delivery costs a
guard. The header may hold signatures under several tokens, separated by commas. v2 covers neither
query nor form: a captured request can be changed under its nonce, so a nonce is valid for one
event. Only the source's `version` counts.
Source: plivo 4 (PyPI) `utils/signature_v3.py`; plivo/plivo-python's tests.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.json_path import fields, form
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Facts, Provider
from webhook_inbox.providers.schemes import http
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.generic import settings as given
from webhook_inbox.providers.schemes.http import encoded, required
from webhook_inbox.providers.schemes.identity.event_identity import (
    Naming,
    canonical_form,
    fixed,
    hash_of,
    in_form,
    joined,
)
from webhook_inbox.providers.schemes.signatures.encodings import base64
from webhook_inbox.providers.schemes.signatures.header_formats import Several, Whole
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

SETTINGS: Final = frozenset({"url", "version"})
EXAMPLE: Final = {"url": "https://inbox.example/webhooks/plivo"}
VERSIONS: Final = ("v3", "v2")
VARIANTS: Final = {f"plivo-{version}": {"version": version} for version in VERSIONS}
NAMING: Final = Naming(
    id=(
        joined(in_form("MessageUUID"), in_form("Status")),
        in_form("MessageUUID"),
        joined(in_form("CallUUID"), in_form("Event"), in_form("CallStatus")),
        joined(in_form("CallUUID"), in_form("CallStatus")),
        in_form("CallUUID"),
        hash_of(canonical_form),
    ),
    type=(in_form("Event"), in_form("Status"), in_form("CallStatus"), fixed("request")),
)
FACTS: Final = Facts(
    title="Plivo",
    scheme="HMAC-SHA256 over URL, sorted fields and nonce, base64 (v3)",
    event_id="`MessageUUID` and `Status`, or `CallUUID`, `Event` and `CallStatus`",
    key_from="the account's or subaccount's auth token, on the console's overview",
)
# Names and values, decoded.
Fields = Iterable[tuple[str, str]]


def provider(settings: Mapping[str, Any]) -> Provider:
    """Returns the provider for one signature version; `url` is the address without a query."""
    base = given.public_url(settings)
    version = given.choice(settings, "version", of=VERSIONS)
    nonce = (f"x-plivo-signature-{version}-nonce",)

    def address(delivery: Delivery) -> str:
        return http.public(replace(delivery, query=""), base)

    def newest(delivery: Delivery) -> Sequence[bytes]:
        end = "." + required(delivery.headers, nonce)
        url = _url(address(delivery), fields(delivery.query), _form(delivery))
        return [encoded(url + end)]

    def older(delivery: Delivery) -> Sequence[bytes]:
        return [encoded(address(delivery) + required(delivery.headers, nonce))]

    scheme = Hmac(
        headers=(f"x-plivo-signature-{version}",),
        layout=Several() if version == "v3" else Whole(),
        signs=newest if version == "v3" else older,
        encoding=base64,
        ids=nonce,
        url=base,
    )
    older_facts = replace(FACTS, scheme="HMAC-SHA256 over URL and nonce, base64 (v2)", body="none")
    return build_provider(
        "plivo",
        scheme,
        NAMING,
        facts=FACTS if version == "v3" else older_facts,
        canonical=canonical_form,
    )


def _form(delivery: Delivery) -> Fields:
    pairs = form(delivery)
    if delivery.body and not any(map(any, pairs)):
        raise Rejected(Reason.MALFORMED, "the body is not a form, so it is not signed")
    return pairs


def _url(address: str, query: Fields, form: Fields) -> str:
    asked = "&".join(f"{name}={value}" for name, value in _sorted(query))
    sent = "".join(name + value for name, value in _sorted(form))
    if not sent:
        return f"{address}?{asked}" if asked else address
    return f"{address}?{asked}.{sent}" if asked else f"{address}?{sent}"


def _sorted(fields: Fields) -> Fields:
    values: dict[str, list[str]] = defaultdict(list)
    for name, value in fields:
        values[name].append(value)
    return [(name, value) for name in sorted(values) for value in sorted(values[name])]
