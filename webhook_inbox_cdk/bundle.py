"""Builds the deployment bundle of each function, from that function's own list of directories.

A change of a handler leaves ingest's bundle unchanged. The same contents for the same platform give
one hash and one tree, whatever umask, path, modes and times the build had; a machine without the
platform's Python makes bundles without bytecode. The module does not import CDK.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from webhook_inbox_cdk import bytecode, tree
from webhook_inbox_cdk.contents import CONTENTS, Contents, directory_of
from webhook_inbox_cdk.platform import Platform
from webhook_inbox_cdk.vendor import vendored

from webhook_inbox.configuration.bundle_imports import LEFT_OUT
from webhook_inbox.configuration.compile import write_module
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import MODULE, Manifest


@dataclass(frozen=True, slots=True)
class Bundle:
    """A directory ready for Lambda, the hash of its content and modes, and what it runs on."""

    directory: Path
    digest: str
    platform: Platform

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
        wheels: whether to add third-party libraries and bytecode. The local runtime uses the
            laptop's Python, which must not load wheels built for Lambda.
        platform: chooses the wheels, and is part of every hash.
    """

    functions: Path
    manifest: Manifest
    build: Path
    wheels: bool = True
    platform: Platform = field(default_factory=Platform)

    def make(self, function: str) -> Bundle:
        """Returns a function's bundle, from the cache where it is there and undamaged.

        Raises:
            ConfigurationError: a directory is missing or has what no bundle can contain, or wheels
                cannot be fetched.
        """
        with tempfile.TemporaryDirectory() as scratch:
            parts = list(self._parts(CONTENTS[function], Path(scratch)))
            files = {name: path for part in parts for name, path in part.items()}
            for part in parts if self.wheels else ():
                # Bytecode of a module that a later part replaces would run in that one's place.
                files.update(self._compiled(part.items() & files.items()))
            digest = tree.digest(files, beside=str(self.platform))
            directory = self.build / "bundles" / f"{function}-{digest[:16]}"
            self._lay_out(directory, files, digest)
        return Bundle(directory, digest, self.platform)

    def _lay_out(self, directory: Path, files: Mapping[str, Path], digest: str) -> None:
        def intact() -> bool:
            return tree.intact(directory, digest, beside=str(self.platform))

        if intact():
            return
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
            made = Path(scratch, "bundle")
            tree.lay_out(files, made)
            tree.publish(made, directory, sound=intact)

    def _parts(self, contents: Contents, scratch: Path) -> Iterator[dict[str, Path]]:
        """Yields the files of each part by name; those of a later one replace others.

        The wheels are first, of your requirements last.
        """
        if self.wheels:
            own, into = contents.requirements(self.functions), self.build / "vendor"
            for each in vendored(contents.locks, own=own, into=into, platform=self.platform):
                yield dict(tree.files(each, shown=each.parent.name, skip=_is_cached))
        for name in contents.directories:
            yield dict(_sources(self._directory(name), name))
        yield {f"{MODULE}.py": write_module(self.manifest, scratch)}

    def _compiled(self, files: Iterable[tuple[str, Path]]) -> dict[str, Path]:
        """Returns the modules among files with their bytecode; {} without a Python to compile."""
        compiler = bytecode.compiler(self.platform.python)
        if compiler is None:
            return {}
        return bytecode.compiled(dict(files), by=compiler, into=self.build / "bytecode")

    def _directory(self, name: str) -> Path:
        found = directory_of(name, self.functions)
        if found is None:
            raise ConfigurationError(f"{self.functions / name}: the directory is missing")
        return found


def _is_cached(inside: PurePath) -> bool:
    """Tells whether a path is in the bytecode of another interpreter or build."""
    return "__pycache__" in inside.parts


def _sources(directory: Path, name: str) -> Iterator[tuple[str, Path]]:
    """Yields (name in the bundle, file), without caches and hidden files."""

    def skip(inside: PurePath) -> bool:
        hidden = any(part.startswith(".") for part in inside.parts)
        left_out = name == "webhook_inbox" and inside.as_posix().startswith(LEFT_OUT)
        return hidden or left_out or inside.suffix == ".pyc" or _is_cached(inside)

    for inside, path in tree.files(directory, shown=name, skip=skip):
        yield f"{name}/{inside}", path
