"""The locks of a function's distributions, and the modules that they bring into its bundle."""

import re
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from webhook_inbox.domain.errors import ConfigurationError

# The processor splits batches; some providers that batch import the verification libraries.
PROCESSOR: Final = ("processor", "verification", "handlers")
_PINNED: Final = re.compile(
    r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?\s*(?:==|@)", re.MULTILINE
)


def locks(groups: Iterable[str], *, tops: Iterable[Path]) -> list[Path]:
    """Returns the lock of each group, `requirements/GROUP.txt` of the first directory that has it.

    Raises:
        ConfigurationError: no directory has the lock of a group.
    """
    places = tuple(tops)
    return [_lock(group, places) for group in groups]


def _lock(group: str, tops: tuple[Path, ...]) -> Path:
    for top in tops:
        lock = top / "requirements" / f"{group}.txt"
        if lock.is_file():
            return lock
    raise ConfigurationError(f"requirements/{group}.txt is missing; run `make lock`")


def locked(files: Iterable[Path]) -> dict[str, frozenset[str]]:
    """Returns the distributions of locks with their top-level modules.

    A distribution that is not installed here has no modules. Markers are not evaluated.
    """
    names = {name for file in files for name in _PINNED.findall(file.read_text(encoding="utf-8"))}
    return {name: _modules(name) for name in sorted(names)}


def _modules(name: str) -> frozenset[str]:
    try:
        return frozenset(_top_level(distribution(name)))
    except PackageNotFoundError:
        return frozenset()


def _top_level(installed: Distribution) -> Iterator[str]:
    for file in installed.files or ():
        first = file.parts[0].partition(".")[0]
        code = file.suffix in {".py", ".so", ".pyd"} or len(file.parts) > 1
        if code and first.isidentifier():
            yield first
    yield from (installed.read_text("top_level.txt") or "").split()
