"""Signatures that are JSON Web Tokens; algorithms are pinned, times are judged by our clock.

Imported by the providers that need it alone: the library behind it is large.
"""

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final

import jwt
from jwt.api_jws import PyJWS

from webhook_inbox.errors import ConfigurationError, Reason, Rejected
from webhook_inbox.instants import from_seconds, to_ms
from webhook_inbox.model import Delivery
from webhook_inbox.recipe import Sample, Verified
from webhook_inbox.schemes import urls
from webhook_inbox.schemes.documents import parse
from webhook_inbox.schemes.encodings import base64url, decoded
from webhook_inbox.schemes.naming import Finder, Reading
from webhook_inbox.schemes.tokens import matches

Claims = Mapping[str, Any]
# (a secret's text or what was fetched, the token's header) to the keys that may have made it;
# () where it is of no use.
KeyFinder = Callable[[str, Claims], Sequence[Any]]

LIFE: Final = timedelta(minutes=5)
SKEW: Final = timedelta(minutes=1)
# Until the year 33658: what is beyond is no date.
LAST_SECOND: Final = 10**12


def shared(secret: str, _: Claims) -> Sequence[Any]:
    """Takes the secret's text as the key; an empty one is none, since everybody has it."""
    return (secret,) if secret else ()


def published(material: str, header: Claims) -> Sequence[Any]:
    """Takes from a JWK, a JWK set or PEM the key that the token's `kid` names.

    PEM names no key, so it stands for the one that was asked for.
    """
    if material.startswith("-----BEGIN"):
        return (material,)
    try:
        found = parse(material)
    except ValueError:
        return ()
    one = found.get("key", found) if isinstance(found, dict) else found
    listed = one.get("keys", [one]) if isinstance(one, dict) else []
    known = [key for key in listed if isinstance(key, dict)] if isinstance(listed, list) else []
    named = [key for key in known if key.get("kid") == header.get("kid")]
    return [key for jwk in named if (key := _key(jwk)) is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Jwt:
    """A JWT in a header.

    Attributes:
        header: the lower-case name of the header.
        prefix: what stands before the token.
        algorithms: those that count; any other is refused before a key is looked for.
        keys: finds the keys in the secrets, or in what was fetched.
        claims: what has to be claimed, literally.
        body_hash: the claim with the hex SHA-256 of the body; "" where none covers it.
        audience: the claim `aud` has to be the source's URL.
        max_age: how old `iat` may be, where it is what ages.
        requires: claims that have to be there beside those above.
        check: looks at the rest of the claims; raises Rejected.
        url: the configured address; see `urls.public`.
    """

    header: str
    prefix: str = ""
    algorithms: tuple[str, ...] = ("HS256",)
    keys: KeyFinder = shared
    claims: Mapping[str, str] = field(default_factory=dict)
    body_hash: str = ""
    audience: bool = False
    max_age: timedelta | None = None
    requires: tuple[str, ...] = ()
    check: Callable[[Claims, Delivery], None] | None = None
    url: str = ""

    @property
    def reads(self) -> frozenset[str]:
        """The lower-case names of the headers that `verify` reads."""
        return frozenset({self.header})

    def verify(self, delivery: Delivery, secrets: Sequence[str]) -> Verified:
        """Checks the signature, then what is claimed, then its times.

        Raises:
            Rejected: always with a reason, whatever the input; nothing else is ever raised.
        """
        token = self.token(delivery)
        head = self._head(token)
        usable = [(n, k) for n, text in enumerate(secrets) for k in self.keys(text, head)]
        if not any(secrets) or (not usable and self.keys is shared):
            raise Rejected(Reason.NO_SECRET, "the source's secret is not set")
        for place, key in usable:
            claims = self._opened(token, key)
            if claims is not None:
                self._claimed(claims, delivery)
                return Verified(place, token, self._timely(claims, delivery.received_at))
        raise Rejected(Reason.INVALID_SIGNATURE, "no live key made this token")

    def token(self, delivery: Delivery) -> str:
        """Returns the token as it was sent; raises Rejected."""
        value = delivery.headers.get(self.header, "")
        if not value:
            raise Rejected(Reason.MISSING_SIGNATURE, f"no {self.header} header")
        if not value.startswith(self.prefix) or not value.isascii():
            raise Rejected(Reason.MALFORMED, f"the {self.header} header holds no token")
        return value.removeprefix(self.prefix)

    def kid(self, delivery: Delivery) -> str:
        """Returns the id of the key that the token names; raises Rejected (malformed)."""
        kid = self._head(self.token(delivery)).get("kid")
        if not isinstance(kid, str):
            raise Rejected(Reason.MALFORMED, "the token names no key")
        return kid

    def claim(self, name: str) -> Finder:
        """Returns a finder of a claim, for naming a verified delivery; None where there is none."""

        def find(reading: Reading) -> object:
            try:
                body = self.token(reading.delivery).split(".")[1]
                claims = parse(jwt.utils.base64url_decode(body.encode()))
            except (Rejected, IndexError, ValueError):
                return None
            return claims.get(name) if isinstance(claims, dict) else None

        return find

    def sign(self, sample: Sample, secret: str, now: datetime) -> dict[str, str]:
        """Returns the headers of a delivery with a token; raises ConfigurationError."""
        return self.issue(sample, secret, now)

    def issue(
        self, sample: Sample, secret: str, now: datetime, claims: Claims | None = None
    ) -> dict[str, str]:
        """Returns the headers of a delivery with a token that claims more.

        Raises:
            ConfigurationError: the secret is not of the form that the algorithm needs.
        """
        issued = to_ms(now) // 1000
        delivery = Delivery("it", "POST", "/webhooks/it", "", {}, sample.body, now)
        payload = {**self.claims, "iat": issued, "exp": issued + LIFE.seconds}
        payload |= {"jti": sample.event_id}
        if self.body_hash:
            payload[self.body_hash] = sha256(sample.body).hexdigest()
        if self.audience:
            payload["aud"] = urls.public(delivery, self.url)
        if not secret:
            raise ConfigurationError("the secret is empty")
        try:
            token = self._written(payload | dict(claims or {}), secret)
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise ConfigurationError("the secret is not of the form the algorithm needs") from error
        return {"content-type": "application/json", self.header: self.prefix + token}

    def _written(self, payload: dict[str, Any], secret: str) -> str:
        with warnings.catch_warnings():
            # A provider's secrets are as long as the provider makes them.
            warnings.simplefilter("ignore", jwt.InsecureKeyLengthWarning)
            return jwt.encode(
                payload, secret, algorithm=self.algorithms[0], headers={"kid": "sample"}
            )

    def _head(self, token: str) -> Claims:
        if any(decoded(part, base64url) is None for part in token.split(".")):
            # The library forgives stray bits and padding.
            raise Rejected(Reason.MALFORMED, "the token is not written as it has to be")
        try:
            head = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, RecursionError) as error:
            raise Rejected(Reason.MALFORMED, "the token cannot be read") from error
        if head.get("alg") not in self.algorithms:
            raise Rejected(Reason.MALFORMED, "the token's algorithm is not the provider's")
        return head

    def _opened(self, token: str, key: Any) -> Claims | None:
        """Returns what a token claims, None where another key made it; raises Rejected."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", jwt.InsecureKeyLengthWarning)
                opened = PyJWS().decode_complete(token, key, algorithms=list(self.algorithms))
            claims = json.loads(opened["payload"])
        except (jwt.InvalidSignatureError, jwt.InvalidKeyError, TypeError):
            return None
        except (jwt.PyJWTError, ValueError, RecursionError) as error:
            raise Rejected(Reason.MALFORMED, "the token cannot be read") from error
        if not isinstance(claims, dict):
            raise Rejected(Reason.MALFORMED, "the token claims nothing")
        return claims

    def _claimed(self, claims: Claims, delivery: Delivery) -> None:
        expected = dict(self.claims)
        if self.body_hash:
            expected[self.body_hash] = sha256(delivery.body).hexdigest()
        if self.audience:
            expected["aud"] = urls.public(delivery, self.url)
        for name in (*expected, *self.requires):
            if name not in claims:
                raise Rejected(Reason.MALFORMED, f"the token does not claim {name}")
        for name, value in expected.items():
            given = claims[name]
            if not isinstance(given, str) or not matches(given, value):
                raise Rejected(Reason.INVALID_SIGNATURE, f"the token claims another {name}")
        if self.check is not None:
            self.check(claims, delivery)

    def _timely(self, claims: Claims, now: datetime) -> datetime | None:
        issued = _seconds(claims, "iat")
        current = to_ms(now) / 1000
        if (ends := _seconds(claims, "exp")) is not None and current >= ends:
            raise Rejected(Reason.STALE, "the token has expired")
        for begins in (issued, _seconds(claims, "nbf")):
            if begins is not None and begins - current > SKEW.total_seconds():
                raise Rejected(Reason.FUTURE, "the token begins ahead of our clock")
        if self.max_age is not None:
            if issued is None:
                raise Rejected(Reason.MALFORMED, "the token does not claim iat")
            if current - issued > self.max_age.total_seconds():
                raise Rejected(Reason.STALE, "the token is too old")
        return None if issued is None else from_seconds(issued)


def _seconds(claims: Claims, name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not (0 <= value < LAST_SECOND)
    ):
        raise Rejected(Reason.MALFORMED, f"the token's {name} is no time")
    return int(value)


def _key(jwk: dict[str, Any]) -> Any | None:
    try:
        return jwt.PyJWK(jwk).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
