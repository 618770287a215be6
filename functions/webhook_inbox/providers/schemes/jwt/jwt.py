"""Signatures that are JSON Web Tokens; algorithms are pinned, times are checked by our clock."""

import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final

import jwt
from jwt.api_jws import PyJWS

from webhook_inbox.domain.errors import ConfigurationError, Reason, Rejected
from webhook_inbox.domain.json_path import parse
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Sample, Verified
from webhook_inbox.domain.timestamps import from_seconds, to_ms
from webhook_inbox.providers.schemes import http, tokens
from webhook_inbox.providers.schemes.identity.event_identity import Finder, Reading
from webhook_inbox.providers.schemes.jwt.keys import SYMMETRIC, JsonWebKey, KeyFinder, shared
from webhook_inbox.providers.schemes.jwt.signing import Signer, SignerFinder, as_it_is
from webhook_inbox.providers.schemes.signatures.encodings import (
    Encoding,
    base64url,
    decoded,
    hexadecimal,
    matches,
)

Claims = Mapping[str, Any]

LIFE: Final = timedelta(minutes=5)
SKEW: Final = timedelta(minutes=1)
# The year 33658; later values are not dates.
LAST_SECOND: Final = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How a token's times are checked.

    Attributes:
        ahead: how far `iat` and `nbf` may be ahead of our clock.
        grace: how long a token is accepted after its `exp`, for clock differences.
        max_age: the maximum age of `iat`; None for no limit.
    """

    ahead: timedelta = SKEW
    grace: timedelta = timedelta(0)
    max_age: timedelta | None = None

    def judge(self, claims: Claims, now: datetime) -> datetime | None:
        """Returns the time of issue, or None.

        Raises:
            Rejected: it has expired or is too old (stale), is not valid yet (future), or has an
                invalid time (malformed).
        """
        issued, begins, ends = (_seconds(claims, name) for name in ("iat", "nbf", "exp"))
        current = to_ms(now) / 1000
        if ends is not None and current >= ends + self.grace.total_seconds():
            raise Rejected(Reason.STALE, "the token has expired")
        for begun in (issued, begins):
            if begun is not None and begun - current > self.ahead.total_seconds():
                raise Rejected(Reason.FUTURE, "the token is not valid yet")
        if self.max_age is not None:
            if issued is None:
                raise Rejected(Reason.MALFORMED, "the token has no iat")
            if current - issued > self.max_age.total_seconds():
                raise Rejected(Reason.STALE, "the token is too old")
        return None if issued is None else from_seconds(issued)


_TIMES: Final = Times()


@dataclass(frozen=True, slots=True, kw_only=True)
class Jwt:
    """A JWT in a header.

    Attributes:
        header: the lower-case name of the header.
        prefix: the text before the token; case is ignored.
        algorithms: the accepted algorithms; any other is rejected before the key look-up.
        keys: finds the keys in the secrets, or in the fetched key set.
        signer: finds the signing key in a secret, for samples.
        claims: required claims and their accepted values. One of a token's audiences must match.
        body_hash: the claim with the SHA-256 of the body, or "".
        body_encodings: the accepted encodings of that hash.
        audience: the claim `aud` must be the source's URL.
        times: how its times are checked.
        agent_claim: the claim with the agent's name, for keys that belong to no agent.
        requires: other required claims.
        check: checks the other claims; raises Rejected.
        url: the configured address; see `http.public`.
    """

    header: str
    prefix: str = ""
    algorithms: tuple[str, ...] = ("HS256",)
    keys: KeyFinder = shared
    signer: SignerFinder = as_it_is
    claims: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    body_hash: str = ""
    body_encodings: tuple[Encoding, ...] = (hexadecimal,)
    audience: bool = False
    times: Times = _TIMES
    agent_claim: str = ""
    requires: tuple[str, ...] = ()
    check: Callable[[Claims, Delivery], None] | None = None
    url: str = ""

    @property
    def reads(self) -> frozenset[str]:
        """The lower-case names of the headers that `verify` reads."""
        return frozenset({self.header})

    def verify(self, delivery: Delivery, secrets: Sequence[str]) -> Verified:
        """Checks the signature, then the claims, then the times.

        Raises:
            Rejected: always with a reason, whatever the input; nothing else is ever raised.
        """
        token = self.token(delivery)
        head = self._head(token)
        found = [(place, self.keys(text, head)) for place, text in enumerate(secrets)]
        if not any(secrets) or all(keys is None for _, keys in found):
            raise Rejected(Reason.NO_SECRET, "the source's secret is not set, or holds no key")
        for place, key in ((place, key) for place, keys in found for key in keys or ()):
            claims = self._opened(token, key.material)
            if claims is not None:
                self._claimed(claims, delivery)
                signed_at = self.times.judge(claims, delivery.received_at)
                # An ECDSA signature has a second valid form, so it is not part of the content.
                content = token.rpartition(".")[0].encode()
                return Verified(place, token, content, signed_at, self._agent(claims, key))
        raise Rejected(Reason.INVALID_SIGNATURE, "no live key verifies this token")

    def precheck(self, delivery: Delivery, keys: Sequence[str]) -> None:
        """Checks the token's claims and times, and that one of the keys may have made it.

        Raises:
            Rejected: no key verifies this delivery now.
        """
        token = self.token(delivery)
        head = self._head(token)
        if keys and not any(self.keys(text, head) for text in keys):
            raise Rejected(Reason.INVALID_SIGNATURE, "the token names no known key")
        claims = _unverified(token)
        self._claimed(claims, delivery)
        self.times.judge(claims, delivery.received_at)

    def token(self, delivery: Delivery) -> str:
        """Returns the token as it was sent; raises Rejected."""
        value = delivery.headers.get(self.header, "")
        if not value:
            raise Rejected(Reason.MISSING_SIGNATURE, f"no {self.header} header")
        begun = value[: len(self.prefix)].lower() == self.prefix.lower()
        if not begun or not value.isascii():
            raise Rejected(Reason.MALFORMED, f"the {self.header} header holds no token")
        return value[len(self.prefix) :]

    def kid(self, delivery: Delivery) -> str:
        """Returns the id of the key that the token names; raises Rejected (malformed)."""
        kid = self._head(self.token(delivery)).get("kid")
        if not isinstance(kid, str):
            raise Rejected(Reason.MALFORMED, "the token has no kid")
        return kid

    def claim(self, name: str) -> Finder:
        """Returns a finder of a claim of a verified delivery."""

        def find(reading: Reading) -> object:
            try:
                return _unverified(self.token(reading.delivery)).get(name)
            except Rejected:
                return None

        return find

    def sign(self, sample: Sample, secret: str, now: datetime) -> dict[str, str]:
        """Returns the headers of a delivery with a token; raises ConfigurationError."""
        return self.issue(sample, secret, now)

    def issue(
        self, sample: Sample, secret: str, now: datetime, claims: Claims | None = None
    ) -> dict[str, str]:
        """Returns the headers of a delivery with a token that has additional claims.

        Raises:
            ConfigurationError: the secret is not of the form that the algorithm needs.
        """
        issued = to_ms(now) // 1000
        delivery = Delivery("it", "POST", "/webhooks/it", "", {}, sample.body, now)
        payload: dict[str, Any] = {name: values[0] for name, values in self._expected(delivery)}
        payload |= {"iat": issued, "exp": issued + LIFE.seconds, "jti": sample.event_id}
        if not secret:
            raise ConfigurationError(f"the secret is empty; give {self._wanted}")
        try:
            token = _written(payload | dict(claims or {}), self.signer(secret, self.algorithms))
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise ConfigurationError(
                f"the secret does not have the form of the algorithm; give {self._wanted}"
            ) from error
        return {"content-type": "application/json", self.header: self.prefix + token}

    @property
    def _wanted(self) -> str:
        """The required form of the secret, for error messages."""
        kind = "the shared secret" if self.algorithms[0] in SYMMETRIC else "the private key as PEM"
        return f"{kind}, which signs {self.algorithms[0]}"

    def _head(self, token: str) -> Claims:
        if any(decoded(part, base64url) is None for part in token.split(".")):
            # The library accepts stray bits and padding.
            raise Rejected(Reason.MALFORMED, "the token is not encoded correctly")
        try:
            head = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, RecursionError) as error:
            raise Rejected(Reason.MALFORMED, "the token cannot be read") from error
        if head.get("alg") not in self.algorithms:
            known = ", ".join(self.algorithms)
            raise Rejected(Reason.MALFORMED, f"the token's algorithm is not one of {known}")
        if "crit" in head:
            # `crit` requires extensions, and none is supported.
            raise Rejected(Reason.MALFORMED, "the token requires an extension")
        return head

    def _opened(self, token: str, key: Any) -> Claims | None:
        """Returns the token's claims, None if another key made it; raises Rejected."""
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
            raise Rejected(Reason.MALFORMED, "the token has no claims")
        return claims

    def _expected(self, delivery: Delivery) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yields the required claims with their accepted values."""
        for name, value in self.claims.items():
            yield name, (value,) if isinstance(value, str) else value
        if self.body_hash:
            digest = sha256(delivery.body).digest()
            yield self.body_hash, tuple(write(digest) for write in self.body_encodings)
        if self.audience:
            yield "aud", (http.public(delivery, self.url),)

    def _claimed(self, claims: Claims, delivery: Delivery) -> None:
        expected = dict(self._expected(delivery))
        for name in (*expected, *self.requires):
            if claims.get(name) is None:
                raise Rejected(Reason.MALFORMED, f"the token has no {name}")
        for name, values in expected.items():
            several = name == "aud" and isinstance(claims[name], list)
            given = claims[name] if several else [claims[name]]
            texts = [text for text in given if isinstance(text, str)]
            if not any(matches(text, value) for text in texts for value in values):
                raise Rejected(Reason.INVALID_SIGNATURE, f"the token's {name} does not match")
        if self.check is not None:
            self.check(claims, delivery)

    def _agent(self, claims: Claims, key: JsonWebKey) -> str:
        """Returns the token's agent, "" if the source has none; raises Rejected."""
        if key.agent or not self.agent_claim:
            return key.agent
        name = claims.get(self.agent_claim)
        if name is None:
            raise Rejected(Reason.MALFORMED, f"the token has no {self.agent_claim}")
        if not isinstance(name, str) or not tokens.is_agent_name(name):
            raise Rejected(
                Reason.MALFORMED, f"the token's {self.agent_claim} is not a valid agent name"
            )
        return name


def _unverified(token: str) -> Claims:
    """Returns the claims of a token without checking its signature; raises Rejected."""
    try:
        claims = parse(jwt.utils.base64url_decode(token.split(".")[1].encode()))
    except (IndexError, ValueError) as error:
        raise Rejected(Reason.MALFORMED, "the token cannot be read") from error
    if not isinstance(claims, dict):
        raise Rejected(Reason.MALFORMED, "the token has no claims")
    return claims


def _written(payload: dict[str, Any], signer: Signer) -> str:
    key, algorithm, kid = signer
    with warnings.catch_warnings():
        # The provider determines the length of its secrets.
        warnings.simplefilter("ignore", jwt.InsecureKeyLengthWarning)
        return jwt.encode(payload, key, algorithm=algorithm, headers={"kid": kid} if kid else None)


def _seconds(claims: Claims, name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not (0 <= value < LAST_SECOND)
    ):
        raise Rejected(Reason.MALFORMED, f"the token's {name} is not a time")
    return int(value)
