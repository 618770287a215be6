"""Fingerprints: they tell a retry of an event from other content under the same id (G7).

A fingerprint covers the raw body. Where a source has volatile fields, it covers all but these: the
body without the value of a field that can be found without parsing, otherwise the body's canonical
JSON without the fields. To parse a megabyte and write it anew takes longer than all else of ingest.
"""

import json
from collections.abc import Callable
from functools import cached_property
from hashlib import sha256

from webhook_inbox.domain.digest import digest_of
from webhook_inbox.domain.errors import Permanent, Skipped
from webhook_inbox.domain.json_edges import trailing


class Fingerprint(str):
    """The SHA-256 of a body, in hex, without its volatile fields."""

    _body: bytes
    _volatile: tuple[str, ...]

    @classmethod
    def of(cls, body: bytes, volatile: tuple[str, ...]) -> "Fingerprint":
        """Returns the fingerprint of a body; a field is a dotted path, which goes through lists."""
        spans = _spans(body, volatile)
        if spans == []:
            made = cls(digest_of(body))
        elif spans is None:
            made = cls(fingerprint(body, volatile))
        else:
            made = cls(_hash_without(body, spans))
        made._body, made._volatile = body, volatile
        return made

    @cached_property
    def canonical(self) -> str:
        """The fingerprint by the canonical JSON, which rows of earlier versions hold."""
        return fingerprint(self._body, self._volatile)

    def is_content_in(self, stored: Callable[[], bytes]) -> bool:
        """Tells whether a stored body has the same content, in another order or spelling.

        Raises:
            Unavailable: the body cannot be read now.
        """
        if not self._volatile:
            return False
        try:
            return fingerprint(stored(), self._volatile) == self.canonical
        except (Permanent, Skipped):
            return False


def same_content(found: str, known: str) -> bool:
    """Tells whether a fingerprint is that of stored content, in either form."""
    return found == known or (isinstance(found, Fingerprint) and found.canonical == known)


def fingerprint(body: bytes, volatile: tuple[str, ...]) -> str:
    """Returns the canonical fingerprint of a body; it names a batch."""
    return sha256(_canonical(body, volatile)).hexdigest() if volatile else digest_of(body)


def _spans(body: bytes, volatile: tuple[str, ...]) -> list[tuple[int, int]] | None:
    """Returns where the values of the fields are; None unless each is found without doubt."""
    spans: list[tuple[int, int]] = []
    if any("." in path for path in volatile):
        # A parser follows the path; a member with a dot in its name is another field.
        return None
    for name in volatile:
        written = json.dumps(name).encode()
        place = body.find(written)
        if place < 0:
            continue
        member = trailing(body, name)
        # A name that is there once is no member of another object.
        if member is None or body.find(written, place + 1) >= 0:
            return None
        spans.append((member.start, member.end))
    return sorted(spans)


def _hash_without(body: bytes, spans: list[tuple[int, int]]) -> str:
    view, hashed, place = memoryview(body), sha256(), 0
    for start, end in spans:
        hashed.update(view[place:start])
        place = end
    hashed.update(view[place:])
    return hashed.hexdigest()


def _canonical(body: bytes, volatile: tuple[str, ...]) -> bytes:
    try:
        parsed = json.loads(body)
        if not isinstance(parsed, dict | list):
            return body
        for path in volatile:
            _drop(parsed, path.split("."))
        return json.dumps(parsed, sort_keys=True, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return body


def _drop(value: object, names: list[str]) -> None:
    if isinstance(value, list):
        for item in value:
            _drop(item, names)
    elif isinstance(value, dict):
        if len(names) == 1:
            value.pop(names[0], None)
        else:
            _drop(value.get(names[0]), names[1:])
