"""Formats of a signature header: its signatures, and sometimes their time."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from webhook_inbox.domain.errors import Reason, Rejected


class Claim(NamedTuple):
    """The signatures in a header, of which one must be valid, and their time, if present."""

    signatures: tuple[str, ...]
    timestamp: str | None = None


class Layout(Protocol):
    """One format of a signature header."""

    def read(self, value: str) -> Claim:
        """Returns the header's signatures and time; raises Rejected if there is no signature."""

    def write(self, signature: str, timestamp: str) -> str:
        """Returns the value a provider would send."""


@dataclass(frozen=True, slots=True)
class Whole:
    """The value is one signature, after a prefix that may be empty: `sha256=<signature>`."""

    prefix: str = ""

    def read(self, value: str) -> Claim:
        """See `Layout`."""
        if not value.startswith(self.prefix) or value == self.prefix:
            raise Rejected(Reason.MALFORMED, f"the signature does not begin with {self.prefix!r}")
        return Claim((value.removeprefix(self.prefix),))

    def write(self, signature: str, timestamp: str) -> str:  # noqa: ARG002 - part of Layout
        """See `Layout`."""
        return self.prefix + signature


@dataclass(frozen=True, slots=True)
class Pairs:
    """The value is a list of `name=value`, the time among them: `t=<seconds>,v1=<signature>`.

    Entries of other versions never count: a weaker scheme must not replace the current one.

    Attributes:
        signature: the name of a signature.
        timestamp: the name of the time.
        separator: the text between two entries.
        sole: the value must be the time and one signature, in this order.
    """

    signature: str
    timestamp: str
    separator: str = ","
    sole: bool = False

    def read(self, value: str) -> Claim:
        """See `Layout`."""
        pairs = [item.partition("=") for item in value.split(self.separator)]
        if any(name and not mark for name, mark, _ in pairs):
            # Providers' own libraries reject the entire header.
            raise Rejected(Reason.MALFORMED, "an entry of the signature header is not name=value")
        if self.sole and [name for name, _, _ in pairs] != [self.timestamp, self.signature]:
            raise Rejected(Reason.MALFORMED, "the signature header is not a time and a signature")
        signatures = tuple(text for name, _, text in pairs if name == self.signature and text)
        times = [text for name, _, text in pairs if name == self.timestamp]
        if not signatures:
            raise Rejected(Reason.MALFORMED, f"no {self.signature} entry in the signature header")
        if len(times) != 1:
            raise Rejected(Reason.MALFORMED, f"not exactly one {self.timestamp} entry")
        return Claim(signatures, times[0])

    def write(self, signature: str, timestamp: str) -> str:
        """See `Layout`."""
        return f"{self.timestamp}={timestamp}{self.separator}{self.signature}={signature}"


@dataclass(frozen=True, slots=True)
class VersionedSignatures:
    """The value is a list of versioned signatures: `v1,<signature> v1,<signature>`."""

    version: str
    separator: str = " "
    mark: str = ","

    def read(self, value: str) -> Claim:
        """See `Layout`."""
        items = [item.partition(self.mark) for item in value.split(self.separator)]
        signatures = tuple(text for version, _, text in items if version == self.version and text)
        if not signatures:
            raise Rejected(Reason.MALFORMED, f"no {self.version} entry in the signature header")
        return Claim(signatures)

    def write(self, signature: str, timestamp: str) -> str:  # noqa: ARG002 - part of Layout
        """See `Layout`."""
        return f"{self.version}{self.mark}{signature}"


@dataclass(frozen=True, slots=True)
class Several:
    """The value is a list of signatures without a name: `<signature>,<signature>`."""

    separator: str = ","

    def read(self, value: str) -> Claim:
        """See `Layout`."""
        signatures = tuple(filter(None, value.split(self.separator)))
        if not signatures:
            raise Rejected(Reason.MALFORMED, "no signature in the signature header")
        return Claim(signatures)

    def write(self, signature: str, timestamp: str) -> str:  # noqa: ARG002 - part of Layout
        """See `Layout`."""
        return signature
