"""How a signature header's value holds its signatures, and sometimes their time."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from webhook_inbox.domain.errors import Reason, Rejected


class Claim(NamedTuple):
    """What a header claims: any of these signatures, made at this time if it names one."""

    signatures: tuple[str, ...]
    timestamp: str | None = None


class Layout(Protocol):
    """One way to write signatures into a header."""

    def read(self, value: str) -> Claim:
        """Returns what the header's value claims; raises Rejected when it claims nothing."""

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

    Entries of another version never count, or a weaker scheme would be as good as the real one.

    Attributes:
        signature: the name of a signature.
        timestamp: the name of the time.
        separator: what stands between two entries.
        sole: the value is the time and one signature, in this order, and nothing else counts.
    """

    signature: str
    timestamp: str
    separator: str = ","
    sole: bool = False

    def read(self, value: str) -> Claim:
        """See `Layout`."""
        pairs = [item.partition("=") for item in value.split(self.separator)]
        if any(name and not mark for name, mark, _ in pairs):
            # Providers' own libraries refuse the whole, be the rest of it right.
            raise Rejected(Reason.MALFORMED, "an entry of the signature header is no name=value")
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
