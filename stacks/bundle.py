"""What each function ships: its own list, so that a handler's change leaves ingest as it is.

Knows nothing of CDK, so that a bundle can be made and tested without it.
"""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from stacks.vendor import vendored
from webhook_inbox.configuration.compile import write_module
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import MODULE, Manifest

# Where the library and the four functions are; an app that embeds the inbox has its own
# handlers and inbox.toml, and need not copy these.
HOME: Final = Path(__file__).resolve().parent.parent / "functions"

# Packages that run at synth, in tests or in the CLI only. The compiled manifest replaces the
# configuration, so that pydantic stays out of ingest's cold start.
LEFT_OUT: Final = ("configuration/", "testing/", "adapters/memory/")


@dataclass(frozen=True, slots=True)
class Contents:
    """A function's directories under `functions/`, and its locks under `requirements/`."""

    directories: tuple[str, ...]
    groups: tuple[str, ...]


CONTENTS: Final[Mapping[str, Contents]] = {
    "ingest": Contents(("ingest", "webhook_inbox"), ("ingest", "verification")),
    "processor": Contents(
        # It splits batches by their providers' providers, some of which import what verifies them.
        ("processor", "webhook_inbox", "handlers"),
        ("processor", "verification", "handlers"),
    ),
    "replay": Contents(("replay", "webhook_inbox"), ("replay",)),
    "reconciler": Contents(("reconciler", "webhook_inbox"), ("ingest",)),
}


@dataclass(frozen=True, slots=True)
class Bundle:
    """A directory ready for Lambda, and the hash of what it was made of."""

    directory: Path
    digest: str

    @property
    def version(self) -> str:
        """The short form that attempts are recorded with."""
        return self.digest[:12]


@dataclass(frozen=True, slots=True)
class Workshop:
    """Makes bundles.

    Attributes:
        functions: the directory with the user's `handlers/` and `inbox.toml`.
        manifest: what is compiled into every bundle.
        build: where bundles and unpacked wheels are kept between builds.
        wheels: whether third-party libraries go in. The local runtime's functions run on the
            laptop's Python, where wheels for arm64 must not be on the path.
    """

    functions: Path
    manifest: Manifest
    build: Path
    wheels: bool = True

    def make(self, function: str) -> Bundle:
        """Returns a function's bundle, building it where no earlier build made the same.

        Raises:
            ConfigurationError: a directory is missing, or wheels cannot be fetched.
        """
        contents = CONTENTS[function]
        with tempfile.TemporaryDirectory() as scratch:
            module = write_module(self.manifest, Path(scratch))
            files = {f"{MODULE}.py": module}
            for name in contents.directories:
                files.update(_sources(self._part(name), name))
            locks = [self._lock(group) for group in contents.groups] if self.wheels else []
            digest = _digest(files, locks)
            directory = self.build / "bundles" / f"{function}-{digest[:16]}"
            if not directory.is_dir():
                trees = [vendored(lock, into=self.build / "vendor") for lock in locks]
                _lay_out(directory, trees=trees, files=files)
        return Bundle(directory, digest)

    def _part(self, name: str) -> Path:
        for top in (self.functions, HOME):
            if (top / name).is_dir():
                return top / name
        raise ConfigurationError(f"{self.functions / name}: the directory is missing")

    def _lock(self, group: str) -> Path:
        for top in (self.functions.parent, HOME.parent):
            lock = top / "requirements" / f"{group}.txt"
            if lock.is_file():
                return lock
        raise ConfigurationError(f"requirements/{group}.txt is missing; run `make lock`")


def _sources(directory: Path, name: str) -> Iterator[tuple[str, Path]]:
    """Yields the files to ship with the names they get, leaving out what Python and editors add."""
    for path in sorted(directory.rglob("*")):
        inside = path.relative_to(directory)
        unwanted = any(part.startswith(".") or part == "__pycache__" for part in inside.parts)
        if name == "webhook_inbox":
            unwanted = unwanted or inside.as_posix().startswith(LEFT_OUT)
        if path.is_file() and not unwanted and path.suffix != ".pyc":
            yield f"{name}/{inside.as_posix()}", path


def _digest(files: Mapping[str, Path], locks: list[Path]) -> str:
    """Hashes what we wrote and what we locked.

    Not the unpacked wheels: tools write different metadata beside the same code.
    """
    digest = sha256()
    named = {**files, **{f"requirements/{lock.name}": lock for lock in locks}}
    for name, path in sorted(named.items()):
        digest.update(f"{name}\0{sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _lay_out(directory: Path, *, trees: list[Path], files: Mapping[str, Path]) -> None:
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
        whole = Path(scratch, "bundle")
        whole.mkdir()
        for tree in trees:
            shutil.copytree(tree, whole, dirs_exist_ok=True, copy_function=shutil.copyfile)
        for name, path in files.items():
            target = whole / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        try:
            whole.rename(directory)
        except OSError:  # another build of the same content was faster
            if not directory.is_dir():
                raise
