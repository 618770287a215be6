"""The distributions that requirement files name, and the modules that they contain."""

import re
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

HASH: Final = "--hash="
_NAME: Final = re.compile(r"^[ \t]*([A-Za-z0-9][A-Za-z0-9._-]*)", re.MULTILINE)


def required(files: Iterable[Path]) -> dict[str, frozenset[str]]:
    """Returns the distributions of requirement files with their top-level modules.

    A file with hashes is complete. For another one, pip adds what its distributions require, here
    as far as it is installed. A distribution that is not installed has no modules. Markers are not
    evaluated.
    """
    found: dict[str, frozenset[str]] = {}
    for file in files:
        text = file.read_text(encoding="utf-8")
        wanted = _NAME.findall(text)
        while wanted:
            name = _canonical(wanted.pop())
            installed = _installed(name)
            if name not in found and installed and HASH not in text:
                wanted += _dependencies(installed)
            found.setdefault(name, frozenset(_modules(installed) if installed else ()))
    return found


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _dependencies(installed: Distribution) -> Iterator[str]:
    """Yields what a distribution requires and has: an extra or a marker may exclude the rest."""
    for line in installed.requires or ():
        match = _NAME.match(line)
        if match and "extra ==" not in line and _installed(match[1]):
            yield match[1]


def _modules(installed: Distribution) -> Iterator[str]:
    """Yields the names of top-level modules and packages."""
    for file in installed.files or ():
        first = file.parts[0].partition(".")[0]
        code = file.suffix in {".py", ".so", ".pyd"} or len(file.parts) > 1
        if code and first.isidentifier():
            yield first
    yield from (installed.read_text("top_level.txt") or "").split()
