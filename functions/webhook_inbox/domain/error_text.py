"""Texts of errors: for the ledger, and normalised, so that equal failures can be grouped.

The runs of a handler whose failures have the same class, line and normalised text are a group.
"""

import re
from collections.abc import Mapping
from hashlib import sha256
from traceback import format_exception, walk_tb
from typing import Any, Final, NamedTuple

from webhook_inbox.domain.errors import InboxError

# The package of the handlers, and the bytes that are kept of a path and line in it.
HANDLERS: Final = "handlers"
LINE_LIMIT: Final = 200
CLASS_LIMIT: Final = 100
# Longer texts are cut before they are normalised: a stored error has at most 1 KB.
READ_LIMIT: Final = 2_000
# The mistakes that the text of a mismatch names.
MISTAKES: Final = 20
# The characters of a normalised text that distinguish groups.
MESSAGE_LIMIT: Final = 300

# How a run ended, before the error that ended it; its failed attempts have the error alone.
_ENDING: Final = re.compile(r"\A(?:permanent|exhausted): ")
_SPACE: Final = re.compile(r"\s+")
_CLASS: Final = re.compile(r"([A-Za-z_][\w.]*): ")
_VARIABLE: Final = re.compile(
    r"""
      (?P<kept>(?:\b(?:answered|status|HTTP|code)[ :=]{1,2}|[(\[])[1-5][0-9]{2}\b)
    | (?P<text>"[^"]*"|(?<![^\W_])'[^']*'|`[^`]*`)
    | (?P<uuid>\b[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}\b)
    | (?P<time>\b[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?
        (?:Z|[+-][0-9]{2}:?[0-9]{2})?)?(?![0-9])
        |\b[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?(?![0-9]))
    | (?P<hex>\b0x[0-9a-f]+\b|\b(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{8,}\b)
    | (?P<id>\b[a-z]{1,16}[_-](?=[a-z_-]{0,60}[0-9])[a-z0-9_-]+\b
        |\b(?=[a-z]{0,60}[0-9])[a-z0-9]{16,}\b)
    | (?P<number>(?<![^\W_])[+-]?[0-9]+(?:[.,][0-9]+)*)
    """,
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)


class ErrorGroup(NamedTuple):
    """The properties that the failures of a group share."""

    error_class: str
    error_line: str
    message: str

    @property
    def id(self) -> str:
        """The group as 12 hexadecimal digits, by which a replay selects it."""
        return sha256("\n".join(self).encode(errors="replace")).hexdigest()[:12]


def error_group(recorded_class: str, line: str, text: str) -> ErrorGroup:
    """Returns the group of a run's `error_class`, `error_line` and `last_error`."""
    message = normalised(text)[:MESSAGE_LIMIT]
    # A run of a deployment that did not record the class has it in its error.
    found = None if recorded_class else _CLASS.match(message)
    return ErrorGroup(found[1] if found else recorded_class, line, message)


def describe(error: BaseException) -> str:
    """Returns an error's text, "Class: message"; the library's own classes are left out."""
    text = text_of(error)
    own = isinstance(error, InboxError) and type(error).__module__.startswith("webhook_inbox.")
    return text if own and text else f"{type(error).__name__}: {text}".removesuffix(": ")


def text_of(error: BaseException) -> str:
    """Returns the text of an error, without the input of a validation.

    pydantic shows a part of its input, which no search for the whole value would find.
    """
    try:
        text = _mismatches(error) or str(error)
    except BaseException:  # noqa: BLE001 - a handler's exception may even raise SystemExit
        text = "(its text cannot be printed)"
    return _without_inputs(text)


def traceback_text(error: BaseException) -> str:
    """Returns the traceback of an error with its causes and groups, without inputs as `text_of`."""
    return _without_inputs("".join(format_exception(error)))


def shorten(text: str, limit: int) -> str:
    """Returns the beginning of a text, with "…" where it was cut.

    The mark shows `PersonalTexts.hide` where a value may have been cut.
    """
    return text if len(text) <= limit else f"{text[:limit]}…"


# In a text of pydantic's: "[type=int_parsing, input_value='ada@…example', input_type=str]", and the
# line below it. The input may look like the end of the line, or have lines of its own; and a text
# that was cut may lack the end. Bounded, since a handler's error may quote what a sender wrote:
# pydantic shows about 50 characters of an input, and a tag as a whole: "Input tag 'ada@example.com'
# found using 'kind' does not match any of the expected tags: 'address', 'person'".
_INPUT: Final = re.compile(
    r", input_value=(?:[^\n]{0,400}, input_type=[^\n]{0,200}\](?=\n|\Z)"
    r"|.{0,400}?, input_type=[^\n]{0,200}\](?=\n|\Z)|[^\n]*)"
    r"|(?<=Input tag) '(?:.{0,400}?'(?= found using )|[^\n]*)"
    r"|\n[ |]*For further information visit https://errors\.pydantic\.dev/\S*",
    re.DOTALL,
)


def _without_inputs(text: str) -> str:
    return _INPUT.sub(lambda found: "]" if found[0].endswith("]") else "", text)


def _mismatches(error: BaseException) -> str:
    """Returns the text of pydantic's ValidationError without its input; "" for other errors.

    pydantic is not imported: its errors exist only where a handler has loaded it.
    """
    if not type(error).__module__.startswith("pydantic") or not isinstance(error, ValueError):
        return ""
    listed = getattr(error, "errors", None)
    if listed is None:
        return ""
    try:
        every = listed(include_input=False, include_url=False, include_context=False)
    except TypeError:
        return ""  # of pydantic.v1, whose text has no input
    texts = [": ".join(filter(None, (_place(each), each["msg"]))) for each in every[:MISTAKES]]
    more = [f"and {len(every) - MISTAKES} more"] if len(every) > MISTAKES else []
    return "; ".join([*texts, *more])


def _place(mismatch: Mapping[str, Any]) -> str:
    return ".".join(map(str, mismatch["loc"]))


def error_class(error: BaseException | None) -> str:
    """Returns the name of an error's class, at most 100 characters; "" for none."""
    return "" if error is None else type(error).__name__[:CLASS_LIMIT]


def error_line(error: BaseException | None) -> str:
    """Returns the handler's file and line that raised an error, such as `handlers/orders.py:12`.

    The innermost frame of the package `handlers` counts; frames of libraries below it do not. ""
    where there is none; at most 200 bytes.
    """
    frames = walk_tb(error.__traceback__ if error else None)
    found = ""
    for frame, line in frames:
        module = str(frame.f_globals.get("__name__", "")).split(".")
        if module[0] == HANDLERS:
            # A path ends with the parts of the module; others may be called handlers too.
            *parts, file = frame.f_code.co_filename.replace("\\", "/").split("/")
            above = len(module) - (file != "__init__.py")
            found = f"{'/'.join([*parts[len(parts) - above :], file])}:{line}"
    kept = found.encode(errors="replace")[-LINE_LIMIT:]
    return kept.decode(errors="ignore")


def normalised(text: str) -> str:
    """Returns the text of an error with its variable parts replaced by their kind.

    Quoted strings, UUIDs, times, hex digits, ids and numbers become `<text>`, `<uuid>`, `<time>`,
    `<hex>`, `<id>` and `<number>`; HTTP statuses are kept. White space becomes one space.

        exhausted: KeyError: 'sku-12'      →  KeyError: <text>
        POST /orders/981 answered 503      →  POST /orders/<number> answered 503
    """
    return _VARIABLE.sub(_kind, plain(text))


def plain(text: str) -> str:
    """Returns the text of an error in one line, without how its run ended."""
    return _SPACE.sub(" ", _ENDING.sub("", text[:READ_LIMIT])).strip()


def _kind(found: re.Match[str]) -> str:
    return found[0] if found.lastgroup == "kept" else f"<{found.lastgroup}>"
