"""Builds the deployment bundle of each function, from that function's own list of directories.

A change of a handler leaves ingest's bundle unchanged. The same contents for the same platform give
one hash and one tree, whatever umask, path, modes and times the build had. The module does not
import CDK.
"""

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from webhook_inbox_cdk import tree
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
        wheels: whether to add third-party libraries. The local runtime uses the laptop's Python,
            which must not load wheels built for Lambda.
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
        contents = CONTENTS[function]
        with tempfile.TemporaryDirectory() as scratch:
            files = dict(self._wheels(contents)) if self.wheels else {}
            for name in contents.directories:
                files.update(_sources(self._part(name), name))
            files[f"{MODULE}.py"] = write_module(self.manifest, Path(scratch))
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

    def _wheels(self, contents: Contents) -> Iterator[tuple[str, Path]]:
        """Yields the files of the wheels, of your requirements last."""
        own, into = contents.requirements(self.functions), self.build / "vendor"
        for each in vendored(contents.locks, own=own, into=into, platform=self.platform):
            yield from tree.files(each, shown=each.parent.name)

    def _part(self, name: str) -> Path:
        found = directory_of(name, self.functions)
        if found is None:
            raise ConfigurationError(f"{self.functions / name}: the directory is missing")
        return found


def _sources(directory: Path, name: str) -> Iterator[tuple[str, Path]]:
    """Yields (name in the bundle, file), without caches and hidden files."""

    def skip(inside: PurePath) -> bool:
        hidden = any(part.startswith(".") or part == "__pycache__" for part in inside.parts)
        left_out = name == "webhook_inbox" and inside.as_posix().startswith(LEFT_OUT)
        return hidden or left_out or inside.suffix == ".pyc"

    for inside, path in tree.files(directory, shown=name, skip=skip):
        yield f"{name}/{inside}", path
