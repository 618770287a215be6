"""`provider = "hmac"`: any HMAC scheme, declared in inbox.toml."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, TypeVar

from webhook_inbox.domain.errors import ConfigurationError, Reason, Rejected
from webhook_inbox.domain.json_path import parse
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Provider, Sample, Sent, Verified
from webhook_inbox.providers.schemes.builder import fits_others, signed_content
from webhook_inbox.providers.schemes.generic import hmac
from webhook_inbox.providers.schemes.generic import settings as given
from webhook_inbox.providers.schemes.generic.identity import (
    IN_BODY,
    headers_of,
    naming,
    sample_headers,
)
from webhook_inbox.providers.schemes.generic.locations import nested, place
from webhook_inbox.providers.schemes.generic.requirements import Demands, demands
from webhook_inbox.providers.schemes.handshakes.presets import (
    NAMES,
    OFFERS,
    PRESETS,
    SIGNED_SHAPES,
    Endpoint,
)
from webhook_inbox.providers.schemes.identity.batches import Parts, split_at
from webhook_inbox.providers.schemes.identity.event_identity import (
    canonical_form,
    content_hash,
    hash_of,
)
from webhook_inbox.providers.schemes.signatures import signed_fields
from webhook_inbox.providers.schemes.signatures.base import Verify, each_of
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

T = TypeVar("T")

SETTINGS: Final = frozenset(
    {"signature", "timestamp", "event_id", "event_type", "url", "batch", "digest", "handshake"}
)


def provider(settings: Mapping[str, Any]) -> Provider:
    """Returns the provider that the tables declare; raises ConfigurationError if they conflict."""
    source = _Declared(settings, hmac.scheme(settings), demands(settings))
    window = source.scheme.window
    content = hash_of(canonical_form) if source.signs_form else content_hash
    names = naming(settings, content=content)
    return Provider(
        name="hmac",
        verify=source.verify,
        precheck=source.precheck,
        signature_headers=source.scheme.reads | source.demands.reads,
        identify=names.identify,
        sign=lambda sample, secret, now: dict(source.compose(sample, secret, now).headers),
        compose=source.compose,
        batch=source.parts,
        window=window.tolerance if window else None,
        greet=source.preset(PRESETS),
        offer=source.preset(OFFERS),
        guard=_guard(settings, source.scheme),
        guards_ignored=fits_others(source.scheme, names)
        or "query" in settings.get("event_type", {}),
        canonical=canonical_form if source.signs_form else None,
        kept_headers=headers_of(settings),
    )


@dataclass(frozen=True, slots=True)
class _Declared:
    settings: Mapping[str, Any]
    scheme: Hmac
    demands: Demands

    @property
    def signs_form(self) -> bool:
        return any("form" in template for template in self.scheme.templates)

    @property
    def parts(self) -> Parts | None:
        table = self.settings.get("batch")
        return split_at(table["json"], inside=table.get("inside", "")) if table else None

    @property
    def verify(self) -> Verify:
        inner: Verify = self._verify_signed
        if self.settings["signature"].get("each") and self.parts is not None:
            inner = each_of(self.parts, inner)

        def verify(delivery: Delivery, secrets: Sequence[str]) -> Verified:
            verified = inner(self.demands.bare(delivery), secrets)
            self.demands.check(delivery)
            return verified

        return verify

    def precheck(self, delivery: Delivery, secrets: Sequence[str]) -> None:
        """See `Provider.precheck`; of a batch whose parts are signed it checks nothing."""
        if not self.settings["signature"].get("each"):
            self.scheme.precheck(self.demands.bare(delivery), secrets)

    def _verify_signed(self, delivery: Delivery, secrets: Sequence[str]) -> Verified:
        verified = self.scheme.verify(delivery, secrets)
        shape = SIGNED_SHAPES.get(self.settings.get("handshake", ""))
        contents = self.scheme.contents(delivery, "") if shape else ()
        if shape and any(not c or shape.fullmatch(c.decode(errors="replace")) for c in contents):
            raise Rejected(Reason.INVALID_SIGNATURE, "anyone can have a challenge signed")
        return verified

    def preset(self, presets: Mapping[str, Callable[[Endpoint], T]]) -> T | None:
        """Returns the preset that the source's `handshake` names, or None."""
        if "handshake" not in self.settings:
            return None
        name = given.choice(self.settings, "handshake", of=NAMES)
        make = presets.get(name)
        return make(Endpoint(self.scheme.headers, self.scheme.url)) if make else None

    def compose(self, sample: Sample, secret: str, now: datetime) -> Sent:
        """See `Provider.compose`."""
        scheme, window = self.scheme, self.scheme.window
        stamp = window.write(now) if window else ""
        sent = self._named(sample)
        if (where := place(self.settings.get("timestamp", {}))) is not None:
            sent = where.write(sent, stamp)
        sent = self.demands.meet(sent)
        signed = Delivery("it", "POST", "/webhooks/it", sent.query, sent.headers, sent.body, now)
        try:
            content = scheme.contents(self.demands.bare(signed), stamp)[0]
        except Rejected as error:
            raise ConfigurationError(f"the sample cannot be signed: {error.detail}") from error
        signature = scheme.layout.write(scheme.signature(secret, content), stamp)
        if scheme.headers:
            return replace(sent, headers={**sent.headers, scheme.headers[0]: signature})
        where = place(self.settings["signature"])
        sent = where.write(sent, signature) if where else sent
        return self._whole(sent) if self.settings["signature"].get("each") else sent

    def _named(self, sample: Sample) -> Sent:
        # Other signed headers, such as a nonce, are new for every event.
        named = [name for each in self.scheme.templates for name in signed_fields.headers_of(each)]
        headers = {**dict.fromkeys(named, sample.event_id), "content-type": "application/json"}
        return Sent(headers | sample_headers(self.settings, sample), sample.body)

    def _whole(self, sent: Sent) -> Sent:
        """Returns a batch that contains the signed event."""
        table = self.settings["batch"]
        event = parse(sent.body)
        item = nested(table["inside"], event) if table.get("inside") else event
        return replace(sent, body=json.dumps(nested(table["json"], [item])).encode())


def _guard(
    settings: Mapping[str, Any], scheme: Hmac
) -> Callable[[Verified, Sequence[str]], bytes] | None:
    """Returns the guard, unless the signed content determines the event id.

    The id of an event with its own signature is made of fields whose ends are certain.
    """
    first, *others = scheme.templates
    field = "id" if IN_BODY.isdisjoint(settings["event_id"]) else "body"
    determined = not others and first.pins(field)
    return None if settings["signature"].get("each") or determined else signed_content
