"""CloudEvents over HTTP: a bearer token, in `Authorization` or in the query; nothing is signed.

An event is structured (attributes in the body), binary (attributes in `ce-…` headers) or part of a
batch; the content type says which. Ids are unique per source only. A sender may first request
permission by OPTIONS, with its origin and its rate per minute; its callback URL is never called.
Source: cloudevents/spec `http-webhook.md`, `bindings/http-protocol-binding.md`.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import unquote

from webhook_inbox.domain.json_path import at, parse
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Answer, Facts, Provider, Sample, Sent
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.generic import settings as given
from webhook_inbox.providers.schemes.handshakes import Greeting
from webhook_inbox.providers.schemes.identity.batches import split_at
from webhook_inbox.providers.schemes.identity.event_identity import Finder, Naming, Reading, joined
from webhook_inbox.providers.schemes.tokens import StaticToken, bearer

SETTINGS: Final = frozenset({"allowed_origins", "allowed_rate"})
STRUCTURED: Final = "application/cloudevents"
BATCH: Final = "application/cloudevents-batch"
JSON: Final = "+json"
ORIGIN: Final = "webhook-request-origin"
RATE: Final = "webhook-request-rate"
DNS: Final = re.compile(r"[A-Za-z0-9._:*-]{1,253}", re.ASCII)
NUMBER: Final = re.compile(r"0*[1-9][0-9]{0,8}", re.ASCII)
QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
ATTRIBUTES: Final = ("id", "source", "type", "time", "specversion", "subject", "dataschema")
SCHEME: Final = StaticToken(headers=("authorization",), fields=("access_token",), write=bearer)
FACTS: Final = Facts(
    title="CloudEvents",
    scheme="a bearer token, in `Authorization` or the query's `access_token`; nothing is signed",
    body="none",
    event_id="`source` and `id`",
    handshake="OPTIONS with `WebHook-Request-Origin`: permission, and a rate",
    answer_within="up to the sender",
    retries="up to the sender",
    key_from="a long random token that you give the sender",
    resend="by the sender",
)


def provider(settings: Mapping[str, Any]) -> Provider:
    """Returns the provider of a sender; `allowed_origins` and `allowed_rate` limit permissions."""
    origins = given.texts(settings, "allowed_origins", default=())
    rate = given.whole(settings, "allowed_rate")
    return build_provider(
        "cloudevents",
        SCHEME,
        Naming(
            id=(joined(_attribute("source"), _attribute("id")),),
            type=(_attribute("type"),),
            occurred_at=(_attribute("time"),),
        ),
        facts=FACTS,
        batch=_split,
        greet=_permits(origins, rate),
        compose=_compose,
        kept_headers=frozenset(f"ce-{name}" for name in ATTRIBUTES),
        token_headers=SCHEME.reads,
        token_fields=frozenset(SCHEME.fields),
    )


def _media_type(delivery: Delivery) -> str:
    return delivery.headers.get("content-type", "").partition(";")[0].strip().lower()


def _split(delivery: Delivery) -> Sequence[Delivery] | None:
    if not _media_type(delivery).startswith(BATCH):
        return None
    return split_at(content_type=STRUCTURED + JSON)(delivery)


def _attribute(name: str) -> Finder:
    def find(reading: Reading) -> object:
        if _media_type(reading.delivery).startswith(STRUCTURED):
            return at(reading.document, name)
        return _decoded(reading.delivery.headers.get(f"ce-{name}", ""))

    return find


def _decoded(value: str) -> str:
    """Undoes quotes, then percent-encoding, once each, as the HTTP binding has it."""
    quoted = QUOTED.fullmatch(value)
    return unquote(re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else value)


def _permits(origins: tuple[str, ...], limit: int | None) -> Greeting:
    def greet(delivery: Delivery, _: Sequence[str]) -> Answer | None:
        origin = delivery.headers.get(ORIGIN, "")
        if delivery.method != "OPTIONS" or DNS.fullmatch(origin) is None:
            return None
        if origins and origin.lower() not in {known.lower() for known in origins}:
            return None
        headers = {
            "Allow": "POST",
            "WebHook-Allowed-Origin": origin,
            "WebHook-Allowed-Rate": _allowed(delivery.headers.get(RATE, ""), limit),
        }
        return Answer(200, headers=headers)

    return greet


def _allowed(requested: str, limit: int | None) -> str:
    wanted = int(requested) if NUMBER.fullmatch(requested) else None
    rates = [rate for rate in (wanted, limit) if rate is not None]
    return str(min(rates)) if rates else "*"


def _compose(sample: Sample, secret: str, now: datetime) -> Sent:
    headers = SCHEME.sign(sample, secret, now)
    try:
        body = parse(sample.body)
    except ValueError:
        body = None
    if isinstance(body, list):
        return Sent({**headers, "content-type": BATCH + JSON}, sample.body)
    if isinstance(body, dict) and "specversion" in body:
        return Sent({**headers, "content-type": STRUCTURED + JSON}, sample.body)
    attributes = {
        "ce-specversion": "1.0",
        "ce-id": sample.event_id,
        "ce-source": "/sample",
        "ce-type": sample.type,
        "ce-time": now.isoformat(),
    }
    return Sent({**headers, **attributes}, sample.body)
