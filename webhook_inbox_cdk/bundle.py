"""Builds the deployment bundle of each function, from that function's own list of directories.

A change of a handler leaves ingest's bundle unchanged. The module does not import CDK.
"""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from webhook_inbox_cdk.contents import CONTENTS, Contents, directory_of
from webhook_inbox_cdk.vendor import distributions, vendored

from webhook_inbox.configuration.bundle_imports import LEFT_OUT
from webhook_inbox.configuration.compile import write_module
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import MODULE, Manifest


@dataclass(frozen=True, slots=True)
class Bundle:
    """A directory ready for Lambda, and the hash of its inputs."""

    directory: Path
    digest: str

    @property
    def version(self) -> str:
        """The short form that attempts record."""
        return self.digest[:12]


@dataclass(frozen=True, slots=True)
class Workshop:
    """Makes bundles.

    Attributes:
        functions: the directory with the user's `handlers/` and `inbox.toml`.
        manifest: compiled into every bundle.
        build: caches bundles and unpacked wheels.
        wheels: whether to add third-party libraries. The local runtime uses the laptop's Python,
            which must not load wheels built for Lambda's arm64.
    """

    functions: Path
    manifest: Manifest
    build: Path
    wheels: bool = True

    def make(self, function: str) -> Bundle:
        """Returns a function's bundle, from the cache where the inputs are the same.

        Raises:
            ConfigurationError: a directory is missing, or wheels cannot be fetched.
        """
        contents = CONTENTS[function]
        with tempfile.TemporaryDirectory() as scratch:
            module = write_module(self.manifest, Path(scratch))
            files = {f"{MODULE}.py": module}
            for name in contents.directories:
                files.update(_sources(self._part(name), name))
            locks = contents.files(self.functions) if self.wheels else []
            trees = self._trees(contents) if self.wheels else []
            digest = _digest(files, locks, trees)
            directory = self.build / "bundles" / f"{function}-{digest[:16]}"
            if not directory.is_dir():
                _lay_out(directory, trees=trees, files=files)
        return Bundle(directory, digest)

    def _trees(self, contents: Contents) -> list[Path]:
        own = contents.requirements(self.functions)
        return vendored(contents.locks, own=own, into=self.build / "vendor")

    def _part(self, name: str) -> Path:
        found = directory_of(name, self.functions)
        if found is None:
            raise ConfigurationError(f"{self.functions / name}: the directory is missing")
        return found


def _sources(directory: Path, name: str) -> Iterator[tuple[str, Path]]:
    """Yields (name in the bundle, file), without caches and hidden files."""
    for path in sorted(directory.rglob("*")):
        inside = path.relative_to(directory)
        unwanted = any(part.startswith(".") or part == "__pycache__" for part in inside.parts)
        if name == "webhook_inbox":
            unwanted = unwanted or inside.as_posix().startswith(LEFT_OUT)
        if path.is_file() and not unwanted and path.suffix != ".pyc":
            yield f"{name}/{inside.as_posix()}", path


def _digest(files: Mapping[str, Path], locks: list[Path], trees: list[Path]) -> str:
    """Hashes the files, the locks and the versions that were installed.

    The files of the trees are not hashed: installed metadata of the same wheels may differ.
    """
    digest = sha256()
    named = {**files, **{f"requirements/{lock.name}": lock for lock in locks}}
    for name, path in sorted(named.items()):
        digest.update(f"{name}\0{sha256(path.read_bytes()).hexdigest()}\n".encode())
    for tree in trees:
        for name, version in sorted(distributions(tree)):
            digest.update(f"{name}=={version}\n".encode())
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
        except OSError:  # a concurrent build of the same content won
            if not directory.is_dir():
                raise
