"""The personal fields of a body, by the paths that a source declares in `personal`.

A path is dotted. Where it meets a list, a number selects one element, and any other name is looked
for in every element.
"""

import json
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Final
from urllib.parse import quote, quote_plus

PERSONAL: Final = "[personal]"
# Replaces the texts of an event whose payload was erased.
ERASED: Final = "(erased)"
# A shorter value may be a part of ordinary words.
HIDDEN_FROM: Final = 4


def masked(body: bytes, paths: Sequence[str]) -> bytes:
    """Returns a body with the values of its personal fields replaced by `[personal]`.

    A body that is not JSON is replaced as a whole, since its fields are unknown. Where an object
    repeats a name, its last value counts, as for handlers; the others are left out.
    """
    if not paths:
        return body
    repeats: list[str] = []
    try:
        data = json.loads(body, object_pairs_hook=partial(_object, repeats))
    except (ValueError, RecursionError):
        return PERSONAL.encode() if body else body
    found = [place for path in paths for place in _places(data, path.split("."))]
    for holder, name in found:
        holder[name] = PERSONAL
    # The earlier values of a repeated name are in the body alone.
    if not found and not repeats:
        return body
    return json.dumps(data, ensure_ascii=False).encode(errors="backslashreplace")


class PersonalTexts:
    """Removes the values of one event's personal fields from texts.

    Attributes:
        body: the event's; until it is read, no text can quote it.
        erased: whether the event's payload was erased after it was read.
    """

    def __init__(self, paths: Sequence[str] = ()) -> None:
        self.body = b""
        self.erased = False
        self._paths = paths

    def hide(self, text: str) -> str:
        """Returns the text without the values, nor their forms in JSON and URLs.

        Values of less than 4 characters stay, and so do values that the handler has changed. After
        an erasure the whole text is replaced.
        """
        if self.erased:
            return ERASED
        if self._paths and self.body:
            for form in self._forms:
                text = text.replace(form, PERSONAL)
        return text

    @cached_property
    def _forms(self) -> list[str]:
        try:
            data = json.loads(self.body)
        except (ValueError, RecursionError):
            return []
        places = (place for path in self._paths for place in _places(data, path.split(".")))
        values = {text for holder, name in places for text in _texts(holder[name])}
        forms = {form for text in values if len(text) >= HIDDEN_FROM for form in _written(text)}
        # The longest first, since one may be the prefix of another.
        return sorted(forms, key=len, reverse=True)


def _places(data: Any, names: Sequence[str]) -> Iterator[tuple[Any, Any]]:
    """Yields the holder of each value at a path, and its key or index there."""
    name, rest = names[0], names[1:]
    if isinstance(data, list):
        one = name.isascii() and name.isdecimal()
        if one and len(name) < 6 and int(name) < len(data):
            yield from _places(data[int(name)], rest) if rest else [(data, int(name))]
        elif not one:
            for element in data:
                yield from _places(element, names)
    elif isinstance(data, dict) and name in data:
        yield from _places(data[name], rest) if rest else [(data, name)]


def _object(repeats: list[str], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns a JSON object; adds to `repeats` where it has a name twice."""
    made = dict(pairs)
    if len(made) < len(pairs):
        repeats.append(pairs[-1][0])
    return made


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _written(text: str) -> Iterator[str]:
    yield text
    yield from (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])
    yield repr(text)[1:-1]
    raw = text.encode(errors="replace")
    yield from (quote(raw, safe=""), quote_plus(raw))
