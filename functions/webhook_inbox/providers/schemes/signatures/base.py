"""The common part of signature schemes: location, signed content, and time."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, NamedTuple

from webhook_inbox.domain.bounded_json import require_bounded
from webhook_inbox.domain.errors import ConfigurationError, Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Sample, Verified
from webhook_inbox.providers.schemes import http
from webhook_inbox.providers.schemes.signatures import signed_fields
from webhook_inbox.providers.schemes.signatures.header_formats import Claim, Layout, Whole
from webhook_inbox.providers.schemes.signatures.signed_content import Template
from webhook_inbox.providers.schemes.signatures.tolerance import Window

_WHOLE: Final = Whole()
_BODY: Final = Template.parse("{body}")
# API Gateway's limit for all headers; a signature in the body has no other.
SIGNATURE_LIMIT: Final = 10 * 1024
# A batch whose parts are signed is parsed as a whole, by member, by element, as the event of each
# element, and as parts, of which each is an object: together up to 12 times the cost of parsing.
EACH_WEIGHT: Final = 12
# The possible signed contents of a delivery; several if a provider varies between requests.
# Raises Rejected (malformed).
Contents = Callable[[Delivery], Sequence[bytes]]
Verify = Callable[[Delivery, Sequence[str]], Verified]


class Match(NamedTuple):
    """Which live secret made which signature of which content."""

    secret: int
    signature: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """A signature over some part of a delivery.

    Attributes:
        headers: lower-case names of the signature header, in order of preference.
        layout: the format of its value.
        signs: the signed content: a template, several alternative templates, or a function of
            the delivery.
        window: the location of the signed time, and its tolerance.
        ids: lower-case names of the `{id}` header, in order of preference.
        every: the signatures in all `headers` count, not only in the first.
        find: finds a signature that is not in a header.
        url: the configured address that `{url}` begins with; see `http.public`.
    """

    headers: tuple[str, ...] = ()
    layout: Layout = _WHOLE
    signs: Template | tuple[Template, ...] | Contents = _BODY
    window: Window | None = None
    ids: tuple[str, ...] = ()
    every: bool = False
    find: Callable[[Delivery], str | None] | None = None
    url: str = ""

    @property
    def reads(self) -> frozenset[str]:
        """The lower-case names of the headers that `verify` reads."""
        stamps = self.window.headers if self.window else ()
        named = [name for signs in self.templates for name in signed_fields.headers_of(signs)]
        return frozenset((*self.headers, *stamps, *self.ids, *named))

    @property
    def templates(self) -> tuple[Template, ...]:
        """The templates of the signed content; () if a function returns it."""
        if isinstance(self.signs, Template):
            return (self.signs,)
        return self.signs if isinstance(self.signs, tuple) else ()

    def verify(self, delivery: Delivery, secrets: Sequence[str]) -> Verified:
        """Checks the signature, then its time.

        In this order, so that a forged delivery is reported as forged, whatever its time.

        Raises:
            Rejected: always with a reason, whatever the input; nothing else is ever raised.
        """
        claim = self._claim(delivery)
        window = self.window
        if window is None:
            return Verified(*self._match(self.contents(delivery, ""), claim.signatures, secrets))
        if self._dated_by_body(window):
            # The body's time is read only after the body is verified.
            match = self._match(self.contents(delivery, ""), claim.signatures, secrets)
            moment = window.read(self._stamp(replace(delivery, verified=True), window, None))
            return Verified(*match, window.judge(moment, now=delivery.received_at))
        stamp = self._stamp(delivery, window, claim.timestamp)
        moment = window.read(stamp)
        match = self._match(self.contents(delivery, stamp), claim.signatures, secrets)
        return Verified(*match, window.judge(moment, now=delivery.received_at))

    def precheck(self, delivery: Delivery, keys: Sequence[str]) -> None:  # noqa: ARG002 - a signature names no key
        """Checks the form of the signature, and its time, unless it is a part of the signed body.

        Raises:
            Rejected: no key verifies this delivery now.
        """
        claim = self._claim(delivery)
        if not any(map(self._formed, claim.signatures)):
            raise Rejected(Reason.MALFORMED, "the signature does not have the scheme's form")
        window = self.window
        if window is None or self._dated_by_body(window):
            return
        stamp = self._stamp(delivery, window, claim.timestamp)
        window.judge(window.read(stamp), now=delivery.received_at)

    def contents(self, delivery: Delivery, stamp: str) -> Sequence[bytes]:
        """Returns the bytes that the signature may cover; raises Rejected (malformed).

        Args:
            delivery: the delivery.
            stamp: the signed time as the provider wrote it.
        """
        if not isinstance(self.signs, Template | tuple):
            return self.signs(delivery)
        found = signed_fields.Fields(delivery=delivery, stamp=stamp, ids=self.ids, url=self.url)
        contents, errors = list[bytes](), list[Rejected]()
        for template in self.templates:
            try:
                contents.append(template.fill({name: found[name] for name in template.fields}))
            except Rejected as error:
                errors.append(error)
        if not contents:
            raise errors[0]
        return contents

    def sign(self, sample: Sample, secret: str, now: datetime) -> dict[str, str]:
        """Returns the headers of a delivery signed like the provider's, JSON by content type.

        Raises:
            ConfigurationError: the secret is not of the form that the scheme's keys have.
        """
        stamp = self.window.write(now) if self.window is not None else ""
        sent = {"content-type": "application/json"}
        if self.window is not None and self.window.headers:
            sent[self.window.headers[0]] = stamp
        if self.ids:
            sent[self.ids[0]] = sample.event_id
        path = "/webhooks/it"
        delivery = Delivery("it", "POST", path, "", sent, sample.body, now)
        signature = self.signature(secret, self.contents(delivery, stamp)[0])
        if self.headers:
            sent[self.headers[0]] = self.layout.write(signature, stamp)
        return sent

    def signature(self, secret: str, content: bytes) -> str:
        """Returns the signature a provider would make; raises ConfigurationError."""
        made = self._made(secret, content)
        if made is None:
            raise ConfigurationError(
                f"the secret does not have the form of this provider; give {self.signed_with}"
            )
        return made

    @property
    def signed_with(self) -> str:
        """The required form of the secret, for error messages."""
        return "it exactly as the provider shows it: docs/providers.md says where"

    @abstractmethod
    def _formed(self, signature: str) -> bool:
        """Returns whether a key of the scheme could have made a signature of this form."""

    @abstractmethod
    def _match(
        self, contents: Sequence[bytes], candidates: Sequence[str], secrets: Sequence[str]
    ) -> Match:
        """Returns the first live secret that made a candidate; raises Rejected."""

    @abstractmethod
    def _made(self, secret: str, content: bytes) -> str | None:
        """Returns the signature, None where the secret is not of the scheme's form."""

    def _claim(self, delivery: Delivery) -> Claim:
        if self.find is not None:
            found = [value] if (value := self.find(delivery)) else []
        else:
            found = [text for name in self.headers if (text := delivery.headers.get(name))]
        if any(len(text) > SIGNATURE_LIMIT for text in found):
            raise Rejected(Reason.MALFORMED, "the signature is too long")
        if not found:
            where = f"{self.headers[0]} header" if self.headers else "signature in the body"
            raise Rejected(Reason.MISSING_SIGNATURE, f"no {where}")
        if not self.every:
            return self.layout.read(found[0])
        return Claim(tuple(s for value in found for s in self.layout.read(value).signatures))

    def _dated_by_body(self, window: Window) -> bool:
        """Returns whether the time is signed as a part of the body, and not beside it."""
        beside = any("timestamp" in template for template in self.templates)
        return window.find is not None and not beside

    def _stamp(self, delivery: Delivery, window: Window, claimed: str | None) -> str:
        if window.find is not None:
            found = window.find(delivery)
            if found is None:
                raise Rejected(Reason.MALFORMED, "the body has no time, which is signed")
            return found
        if not window.headers:
            return claimed or ""
        return http.required(delivery.headers, window.headers)


def each_of(parts: Callable[[Delivery], Sequence[Delivery] | None], verify: Verify) -> Verify:
    """Returns a function that verifies every part of a delivery under one secret."""

    def all_under(delivery: Delivery, secrets: Sequence[str]) -> Verified:
        refusals = [Rejected(Reason.NO_SECRET, "the source's secret is not set")]
        require_bounded(delivery.body, weight=EACH_WEIGHT)
        listed = parts(delivery) or (delivery,)
        for place, secret in enumerate(secrets):
            try:
                verified = [verify(part, (secret,)) for part in listed]
            except Rejected as error:
                refusals.append(error)
            else:
                content = b"\n".join(each.content for each in verified)
                return replace(verified[0], secret=place, content=content)
        # The first usable secret's refusal says more than a secret that is unusable.
        telling = [error for error in refusals if error.reason is not Reason.NO_SECRET]
        raise (telling or refusals)[0]

    return all_under
