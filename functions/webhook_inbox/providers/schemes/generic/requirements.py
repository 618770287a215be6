"""Requirements of a declared source beside the signature."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from webhook_inbox.domain.errors import ConfigurationError, Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Sent
from webhook_inbox.providers.schemes.generic import hmac
from webhook_inbox.providers.schemes.generic.locations import Location, place
from webhook_inbox.providers.schemes.signatures.encodings import (
    ENCODINGS,
    Encoding,
    hexadecimal,
    matches,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredDigest:
    """A hash of the body that is signed instead of the body, if the delivery has one.

    Attributes:
        where: its location.
        alone: nothing else covers the body, so every delivery must have the hash.
        algorithm: the hash, as `hashlib` names it.
        encoding: its encoding.
    """

    where: Location
    alone: bool
    algorithm: str = "sha256"
    encoding: Encoding = hexadecimal

    def of(self, body: bytes) -> str:
        """Returns a body's hash."""
        return self.encoding(hashlib.new(self.algorithm, body).digest())


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """Requirements on a delivery beside its signature.

    Attributes:
        requires: required header values, by lower-case name.
        digest: the signed hash of the body.
        lists: the header that lists the signed headers, and the names it must contain.
    """

    requires: Mapping[str, str] = field(default_factory=dict)
    digest: RequiredDigest | None = None
    lists: tuple[str, frozenset[str]] = ("", frozenset())

    @property
    def reads(self) -> frozenset[str]:
        """The lower-case names of the headers that are read."""
        digest = self.digest.where if self.digest else None
        named = digest.names if digest and digest.kind == "header" else ()
        return frozenset((*self.requires, *named))

    def bare(self, delivery: Delivery) -> Delivery:
        """Returns the delivery to verify: without its body, if the body's hash is signed.

        Raises:
            Rejected: nothing covers the body (malformed).
        """
        if self.digest is None:
            return delivery
        if self.digest.where.read(delivery):
            return replace(delivery, body=b"")
        if self.digest.alone:
            raise Rejected(Reason.MALFORMED, "the body's hash is missing, which is signed for it")
        return delivery

    def check(self, delivery: Delivery) -> None:
        """Raises Rejected if a requirement is not met."""
        for name, value in self.requires.items():
            if delivery.headers.get(name) != value:
                raise Rejected(Reason.MALFORMED, f"{name} is not {value}")
        listed, needed = self.lists
        names = {name.strip().lower() for name in delivery.headers.get(listed, "").split(",")}
        if not needed <= names:
            raise Rejected(Reason.MALFORMED, f"{listed} does not list the time, which it must")
        claimed = self.digest and self.digest.where.read(delivery)
        if self.digest and claimed and not matches(claimed, self.digest.of(delivery.body)):
            raise Rejected(Reason.INVALID_SIGNATURE, "the body does not match its signed hash")

    def meet(self, sent: Sent) -> Sent:
        """Returns the sent delivery with all requirements met."""
        sent = replace(sent, headers={**sent.headers, **self.requires})
        if self.digest:
            sent = self.digest.where.write(sent, self.digest.of(sent.body))
        if self.lists[0]:
            names = {*sent.headers, *self.lists[1], self.lists[0]}
            sent = replace(sent, headers={**sent.headers, self.lists[0]: ",".join(sorted(names))})
        return sent


def demands(settings: hmac.Tables) -> Demands:
    """Returns a source's requirements; raises ConfigurationError."""
    given = settings["signature"].get("requires", {})
    return Demands(
        requires={name.lower(): value for name, value in given.items()},
        digest=_digest(settings),
        lists=_lists(settings),
    )


def _digest(settings: hmac.Tables) -> RequiredDigest | None:
    table = settings.get("digest")
    where = place(table) if table else None
    if table is None or where is None:
        return None
    in_header = frozenset(f"header:{name}" for name in where.names)
    signed = hmac.QUERIES if where.kind == "query" else in_header
    if any(signed.isdisjoint(each.fields) for each in hmac.templates(settings)):
        field = "{url}" if where.kind == "query" else f"{{header:{where.names[0]}}}"
        raise ConfigurationError(
            f"digest: not signed, so it proves nothing; add {field} to signature.signs"
        )
    return RequiredDigest(
        where=where,
        alone=any({"body", "form"}.isdisjoint(each.fields) for each in hmac.templates(settings)),
        algorithm=table.get("algorithm", "sha256"),
        encoding=ENCODINGS[table.get("encoding", "hex")],
    )


def _lists(settings: hmac.Tables) -> tuple[str, frozenset[str]]:
    """Returns the list of signed headers, which must name a time that nothing else covers."""
    templates = hmac.templates(settings)
    lists = {f.partition(":")[2] for t in templates for f in t.fields if f.startswith("headers:")}
    stamp: Any = place(settings.get("timestamp", {}))
    if not lists:
        return "", frozenset()
    if len(lists) > 1:
        raise ConfigurationError("signature.signs: several {headers:…}; name one list")
    beside = any("timestamp" in template for template in templates)
    needed = stamp.names[:1] if stamp and stamp.kind == "header" and not beside else ()
    return lists.pop(), frozenset(needed)
