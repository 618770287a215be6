"""Templates of signed content: literals and fields, as in `v0:{timestamp}:{body}`."""

from collections.abc import Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Final

from webhook_inbox.domain.errors import ConfigurationError, Reason, Rejected

FIELDS: Final = (
    "body", "timestamp", "id", "method", "url", "path", "query", "form",
    "address", "sorted_query", "url_with_port", "url_without_port", "decoded_url", "escaped_path",
)  # fmt: skip
# `{header:X-Nonce}`, `{json:data.token}`: the value of that name in the delivery; `{json?:…}` is
# empty if there is none; `{headers:X-List}` are the headers that X-List names.
NAMED: Final = {
    "header": "NAME", "headers": "NAME", "json": "PATH", "json?": "PATH", "form": "NAME",
}  # fmt: skip
# These two may contain their separators.
FREE: Final = frozenset({"body", "form"})
# Its format has a fixed end on either side; see `tolerance`.
STAMP: Final = "timestamp"
URLS: Final = frozenset({"url", "url_with_port", "url_without_port", "decoded_url", "escaped_path"})


@dataclass(frozen=True, slots=True)
class Template:
    """The signed content, as fields and the literal that follows each of them.

    `closed` are the fields that must not contain the literals beside them.
    """

    head: bytes
    parts: tuple[tuple[str, bytes], ...]
    closed: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str, *, without_body: bool = False) -> "Template":
        """Reads `{field}` and literals; a brace itself is written twice.

        Args:
            text: the template.
            without_body: the provider does not sign the body. One captured signature then fits
                other events, and fields may contain their separators.

        Raises:
            ConfigurationError: a field is unknown or used twice, or the body is not signed.
        """
        head, parts = b"", list[tuple[str, bytes]]()
        for literal, field in _pieces(text):
            if parts:
                parts[-1] = (parts[-1][0], parts[-1][1] + literal)
            else:
                head += literal
            if field is not None:
                parts.append((field, b""))
        names = [name for name, _ in parts]
        if len(set(names)) < len(names):
            raise ConfigurationError("a field is signed twice; name each once")
        if "body" not in names and "form" not in names and not without_body:
            raise ConfigurationError(
                "{body} is not signed; add it, since anyone could change an unsigned body"
            )
        return cls(head, tuple(parts), frozenset() if without_body else frozenset(names) - FREE)

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields, in order."""
        return tuple(name for name, _ in self.parts)

    def __contains__(self, field: str) -> bool:
        return any(name == field for name, _ in self.parts)

    def pins(self, field: str) -> bool:
        """Returns whether the same bytes can have one value of the field only.

        With `{id}{body}`, a part of the id can be moved into the body under the same signature.
        """
        begins, ends = self._borders()
        places = [place for place, (name, _) in enumerate(self.parts) if name == field]
        return bool(places) and all(place in begins and place in ends for place in places)

    def _borders(self) -> tuple[set[int], set[int]]:
        """Returns the places of the parts whose begin, and of those whose end, is certain."""
        befores = [self.head, *(after for _, after in self.parts)]
        begins, ends = set[int](), set[int]()
        for place, (name, after) in enumerate(self.parts):
            begins.add(place)
            if not self._ends(name, after):
                break
            ends.add(place)
        for place in reversed(range(len(self.parts))):
            ends.add(place)
            if not self._ends(self.parts[place][0], befores[place]):
                break
            begins.add(place)
        return begins, ends

    def _ends(self, name: str, literal: bytes) -> bool:
        """Returns whether a field ends at this literal, and nowhere before."""
        # The address in a URL may contain the literal.
        return name == STAMP or (literal != b"" and name in self.closed - URLS)

    def fill(self, values: Mapping[str, bytes]) -> bytes:
        """Returns the signed bytes.

        Raises:
            Rejected: a field contains the literal beside it, so the same bytes could be another id
                and another body.
        """
        pieces, before = [self.head], b""
        for name, after in self.parts:
            value = values[name]
            if name in self.closed and _meets(name, value, before, after):
                raise Rejected(Reason.MALFORMED, f"the {name} holds its own separator")
            pieces += (value, after)
            before = after
        # Without empty pieces: join does not copy a body of 6 MB that is the only piece.
        return b"".join(filter(None, pieces))


def _meets(name: str, value: bytes, before: bytes, after: bytes) -> bool:
    if name in URLS:
        # The sender controls only the query of a URL.
        value = value.partition(b"?")[2]
    return _within(before, before[1:] + value) or _within(after, value + after[:-1])


def _within(literal: bytes, value: bytes) -> bool:
    return literal != b"" and literal in value


def _pieces(text: str) -> list[tuple[bytes, str | None]]:
    try:
        pieces = list(Formatter().parse(text))
    except ValueError as error:
        raise ConfigurationError(f"{error}; write a brace itself twice") from error
    return [(literal.encode(), _field(*rest)) for literal, *rest in pieces]


def _field(field: str | None, spec: str | None, conversion: str | None) -> str | None:
    if field is None or (field in FIELDS and not spec and not conversion):
        return field
    if field in NAMED and spec and not conversion:
        return f"{field}:{spec.lower() if field.startswith('header') else spec}"
    choices = ", ".join(
        f"{{{name}}}" for name in (*FIELDS, *(f"{k}:{v}" for k, v in NAMED.items()))
    )
    raise ConfigurationError(f"{{{field}}} is not a field; choose from {choices}")
