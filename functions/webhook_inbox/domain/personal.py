"""The personal fields of a body, by the paths that a source declares in `personal`.

A path is dotted. Where it meets a list, a number selects one element, and any other name is looked
for in every element.
"""

import json
import re
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from itertools import islice
from typing import Any, Final

from webhook_inbox.domain.spellings import quotations, spellings

PERSONAL: Final = "[personal]"
# Replaces the texts of an event whose payload was erased.
ERASED: Final = "(erased)"
# A shorter value may be a part of ordinary words.
HIDDEN_FROM: Final = 4
# The middle of a longer text is left out. Its consumers cut it further, and the search for parts of
# values takes time.
TEXT_LIMIT: Final = 32_000
# The characters of all values that are looked for encoded as well, the shortest values first: to
# encode 1 MB takes seconds.
ENCODED: Final = 100_000
# The characters of all values, and `OF_A_VALUE` more for each. With more in its event, every text
# is removed as a whole; the class and the line of an error are stored beside it.
SEARCHED: Final = 1_000_000
OF_A_VALUE: Final = 100
# The forms times the characters, and times the cuts, that are compared. A text with more quotes a
# large part of the body, and is removed as a whole.
REPLACED: Final = 100_000_000
COMPARED: Final = 1_000_000
# The places that are tried for one part; if a text repeats more, all of them are removed.
TRIED: Final = 20
# Where a value may have been cut: before "…" or the end of a line, and after "…".
_CUT_AFTER: Final = re.compile(r"…|\.\.\.|(?<=.)$", re.MULTILINE)
_CUT_BEFORE: Final = re.compile(r"…|\.\.\.")


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

    def __init__(self, paths: Sequence[str] = (), body: bytes = b"") -> None:
        self.body = body
        self.erased = False
        self._paths = paths

    def hide(self, text: str) -> str:
        """Returns the text without the values in all their `spellings`.

        A part of a value that a cut left, at "…" or at the end of a line, is removed too. Parts of
        less than 4 characters stay, and so do values that the handler has changed. After an erasure
        the whole text is replaced.
        """
        if self.erased:
            return ERASED
        if not self._paths or not self.body:
            return text
        if self._forms is None:
            return PERSONAL
        half = TEXT_LIMIT // 2
        text = text if len(text) <= TEXT_LIMIT else f"{text[:half]}…{text[-half:]}"
        # Few forms begin or end like a part of the text. To search it for all takes seconds.
        parts = {text[at : at + HIDDEN_FROM] for at in range(len(text))}
        starts = [form for form in self._forms if form[:HIDDEN_FROM] in parts]
        endings = [form for form in self._forms if form[-HIDDEN_FROM:] in parts]
        whole = [form for form in starts if form[-HIDDEN_FROM:] in parts]
        if len(whole) * len(text) > REPLACED:
            return PERSONAL
        for form in whole:
            text = text.replace(form, PERSONAL)
        return _without_parts(text, starts, endings)

    @cached_property
    def _forms(self) -> list[str] | None:
        """All forms of all values, the longest first; None for too many."""
        try:
            data = json.loads(self.body)
        except (ValueError, RecursionError):
            return []
        places = (place for path in self._paths for place in _places(data, path.split(".")))
        values = {text for holder, name in places for text in _texts(holder[name])}
        if sum(min(len(text), 2 * TEXT_LIMIT) + OF_A_VALUE for text in values) > SEARCHED:
            return None
        forms: set[str] = set()
        left = ENCODED
        for text in sorted(values, key=len):
            left -= len(text)
            forms.update(spellings(text) if left >= 0 else _long_quotations(text))
        # One may be the prefix of another.
        return sorted(filter(_is_searched, forms), key=len, reverse=True)


def _long_quotations(text: str) -> Iterator[str]:
    """Yields the forms of a long value as a text of at most `TEXT_LIMIT` characters quotes it."""
    for part in {text[:TEXT_LIMIT], text[-TEXT_LIMIT:]}:
        yield from quotations(part)


def _is_searched(form: str) -> bool:
    """Returns whether a form is too long to be a part of ordinary words, or of `PERSONAL`."""
    return len("".join(form.split())) >= HIDDEN_FROM and form not in PERSONAL


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
    if isinstance(value, dict):
        # The names of a table that is keyed by data, such as addresses, are data too.
        yield from (name for name in value if not name.isidentifier())
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _without_parts(text: str, starts: Sequence[str], endings: Sequence[str]) -> str:
    """Returns the text without the beginnings of forms where it was cut, nor ends after a cut."""
    ends = [cut.start() for cut in _CUT_AFTER.finditer(text)]
    compared = len(ends) * len(starts) + len(_CUT_BEFORE.findall(text)) * len(endings)
    if compared > COMPARED:
        return PERSONAL
    starts = [form[:TEXT_LIMIT] for form in starts]
    for end in sorted(ends, reverse=True):
        begin = min((_beginning_of(form, text, end) for form in starts), default=end)
        text = f"{text[:begin]}{PERSONAL}{text[end:]}" if begin < end else text
    endings = [form[-TEXT_LIMIT:] for form in endings]
    for begin in sorted((cut.end() for cut in _CUT_BEFORE.finditer(text)), reverse=True):
        end = max((_end_of(form, text, begin) for form in endings), default=begin)
        text = f"{text[:begin]}{PERSONAL}{text[end:]}" if begin < end else text
    return text


def _beginning_of(form: str, text: str, end: int) -> int:
    """Returns where the longest beginning of a form starts that ends there in a text, or `end`."""
    if text[max(0, end - HIDDEN_FROM) : end] not in form:
        return end
    low = max(0, end - len(form))
    places = list(islice(_places_of(form[:HIDDEN_FROM], text, low, end), TRIED))
    unknown = places[0] if len(places) == TRIED else end
    return next((place for place in places if form.startswith(text[place:end])), unknown)


def _end_of(form: str, text: str, begin: int) -> int:
    """Returns where the longest end of a form ends that begins there in a text, or `begin`."""
    first = text[begin : begin + HIDDEN_FROM]
    if len(first) < HIDDEN_FROM:
        return begin
    places = list(islice(_places_of(first, form, 0, len(form)), TRIED))
    unknown = begin + len(form) - places[0] if len(places) == TRIED else begin
    ends = (place for place in places if text.startswith(form[place:], begin))
    return next((begin + len(form) - place for place in ends), unknown)


def _places_of(part: str, text: str, low: int, end: int) -> Iterator[int]:
    while (low := text.find(part, low, end)) >= 0:
        yield low
        low += 1
