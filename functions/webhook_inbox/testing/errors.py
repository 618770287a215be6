"""The kit's errors, which name the user's own line."""

import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Final

from webhook_inbox.domain.similar_names import did_you_mean

_LIBRARY: Final = str(Path(__file__).resolve().parents[1])
_STANDARD: Final = sysconfig.get_path("stdlib")


class KitError(AssertionError):
    """The test's request is invalid; the text names the remedy."""


def hidden(found: Any) -> bool:
    """Tells pytest to omit the kit's frames from the traceback of a KitError.

    A module of the kit sets `__tracebackhide__` to it.
    """
    return bool(found.errisinstance(KitError))


def user_line() -> str:
    """Returns the nearest line of a test or handler that led here, as "tests/test_shop.py:12"."""
    for frame in _frames():
        file = frame.f_code.co_filename
        installed = file.startswith((_LIBRARY, _STANDARD, "<")) or "site-packages" in file
        if not installed:
            return f"{_short(Path(file))}:{frame.f_lineno}"
    return "an unknown line"


def unknown(what: str, name: str, known: Mapping[str, Any]) -> KitError:
    """Returns the error for a name that does not exist, with a similar one that does."""
    close = did_you_mean(name, known)
    hint = f" ({close})" if close else ""
    return KitError(f"there is no {what} {name!r}{hint}; there are: {', '.join(known) or 'none'}")


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the only way to see the callers
    while frame is not None:
        yield frame
        frame = frame.f_back


def _short(file: Path) -> Path:
    here = Path.cwd()
    return file.relative_to(here) if file.is_relative_to(here) else file
