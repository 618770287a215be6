"""The distributions that requirement files name, and the modules that they contain."""

import re
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from webhook_inbox.domain.errors import ConfigurationError

HASH: Final = "--hash="
_REQUIREMENT: Final = re.compile(
    r"^[ \t]*([A-Za-z0-9][A-Za-z0-9._-]*)[ \t]*(?:\[([^\]]*)\])?", re.MULTILINE
)
_EXTRA: Final = re.compile(r"\bextra\s*==\s*['\"]([^'\"]+)")


def required(files: Iterable[Path]) -> dict[str, frozenset[str]]:
    """Returns the distributions of requirement files with their top-level modules.

    A file with hashes is complete. For another one, pip adds what its distributions and their
    extras require, here as far as it is installed. A distribution that is not installed has no
    modules. Markers are not evaluated.

    Raises:
        ConfigurationError: a file is not UTF-8.
    """
    found: dict[str, frozenset[str]] = {}
    for file in files:
        text = read_requirements(file)
        wanted, seen = _REQUIREMENT.findall(text), set()
        while wanted:
            requirement = wanted.pop()
            if requirement in seen:
                continue
            seen.add(requirement)
            name, extras = _canonical(requirement[0]), requirement[1]
            installed = _installed(name)
            if installed and HASH not in text:
                wanted += _dependencies(installed, extras.split(","))
            found.setdefault(name, frozenset(_modules(installed) if installed else ()))
    return found


def read_requirements(file: Path) -> str:
    """Returns the text of a requirement file, without a byte order mark.

    Raises:
        ConfigurationError: it is not UTF-8.
    """
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{file.parent.name}/{file.name}: not UTF-8 at byte {error.start}; save it as UTF-8"
        ) from error


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _dependencies(installed: Distribution, extras: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yields what a distribution and these extras of it require, each with its own extras.

    Without an extra, a marker may exclude what is not installed.
    """
    chosen = {_canonical(extra.strip()) for extra in extras}
    for line in installed.requires or ():
        match = _REQUIREMENT.match(line)
        named = {_canonical(extra) for extra in _EXTRA.findall(line)}
        if match and (named & chosen if named else _installed(match[1])):
            yield match[1], match[2] or ""


def _modules(installed: Distribution) -> Iterator[str]:
    """Yields the names of top-level modules and packages."""
    for file in installed.files or ():
        first = file.parts[0].partition(".")[0]
        code = file.suffix in {".py", ".so", ".pyd"} or len(file.parts) > 1
        if code and first.isidentifier() and not first.startswith("__editable__"):
            yield first
        if file.suffix == ".pth":  # an editable installation
            yield from _listed(Path(str(file.locate())))
    yield from (installed.read_text("top_level.txt") or "").split()


def _listed(pth: Path) -> Iterator[str]:
    """Yields the top-level modules in the directories that a .pth file names."""
    lines = pth.read_text(encoding="utf-8", errors="replace").splitlines() if pth.is_file() else ()
    for directory in (pth.parent / line.strip() for line in lines if line.strip()):
        for path in directory.glob("*") if directory.is_dir() else ():
            if path.suffix == ".py" or (path / "__init__.py").is_file():
                yield path.stem
