"""Exact directory trees: files are listed, laid out with fixed modes, hashed and verified.

The CDK CLI zips each file with its own mode, and Lambda runs functions under a user that owns
none of them: a file that others cannot read breaks the function. Lambda gives directories 755.
"""

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path, PurePath
from typing import Final

from webhook_inbox.domain.errors import ConfigurationError

FILE: Final = 0o644
DIRECTORY: Final = 0o755
# The parts of a directory in a cache.
_CONTENT: Final = "content"
_DIGEST: Final = "sha256"


def files(
    directory: Path, *, shown: str, skip: Callable[[PurePath], bool] = lambda _: False
) -> Iterator[tuple[str, Path]]:
    """Yields (path inside, file) of the regular files below a directory; follows links to files.

    Args:
        directory: the directory.
        shown: its name in messages.
        skip: tells for a path inside whether it is ignored, whatever it is.

    Raises:
        ConfigurationError: something is neither a file nor a directory, is a link to a directory
            or to nothing, or has a name that is not UTF-8.
    """
    for path in sorted(directory.rglob("*")):
        relative = path.relative_to(directory)
        if skip(relative) or (path.is_dir() and not path.is_symlink()):
            continue
        inside = relative.as_posix()
        _require_utf8(f"{shown}/{inside}")
        if not path.is_file():
            raise ConfigurationError(
                f"{shown}/{inside}: a bundle can contain files and directories, and this is"
                f" {_kind(path)}: replace it with a copy, or remove it"
            )
        yield inside, path


def _require_utf8(name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raw = name.encode("utf-8", "backslashreplace").decode()
        raise ConfigurationError(f"{raw}: the name is not UTF-8: rename the file") from error


def _kind(path: Path) -> str:
    if not path.is_symlink():
        return "neither"
    return "a link to a directory" if path.is_dir() else "a link to nothing"


def digest(content: Mapping[str, Path], *, beside: str = "") -> str:
    """Hashes names, modes and contents of the files that `lay_out` writes, and another text."""
    hashed = sha256(f"{beside}\0{DIRECTORY:o}\n".encode())
    for name, path in sorted(content.items()):
        hashed.update(f"{name}\0{FILE:o}\0{sha256(path.read_bytes()).hexdigest()}\n".encode())
    return hashed.hexdigest()


def lay_out(content: Mapping[str, Path], directory: Path) -> None:
    """Writes files into a new directory, with the modes that Lambda needs under every umask."""
    directory.mkdir(parents=True)
    for name, path in content.items():
        target = directory / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    _set_modes(directory)


def _set_modes(directory: Path) -> None:
    for path in (directory, *directory.rglob("*")):
        path.chmod(DIRECTORY if path.is_dir() else FILE)


def intact(directory: Path, wanted: str, *, beside: str = "") -> bool:
    """Tells whether a directory has exactly the content with this hash, in the modes above."""
    try:
        content = dict(_exact(directory))
        return digest(content, beside=beside) == wanted
    except OSError:  # missing, damaged, or being replaced by a concurrent build
        return False


def _exact(directory: Path) -> Iterator[tuple[str, Path]]:
    """Yields what `lay_out` may have written; raises OSError for anything else."""
    for path in (directory, *directory.rglob("*")):
        mode = path.lstat().st_mode
        if mode == stat.S_IFREG | FILE:
            yield path.relative_to(directory).as_posix(), path
        elif mode != stat.S_IFDIR | DIRECTORY:
            raise OSError(f"{path}: {mode:o}")


def publish(made: Path, target: Path, *, sound: Callable[[], bool]) -> None:
    """Moves a directory into place, also where there is a damaged one.

    The first one of concurrent builds wins; the others wait for it.

    Args:
        made: the directory, on the same file system.
        target: its place.
        sound: tells whether the directory in that place can be used.
    """
    with _alone(target.parent), tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        if sound():
            return
        if target.exists():
            target.rename(Path(scratch, "damaged"))
        made.rename(target)


def keep(made: Path, target: Path) -> None:
    """Moves a directory to its place in a cache, beside the hash of its files.

    Args:
        made: a directory on the same file system, whose files are in `kept(made)`.
        target: its place; every build keeps the same files there.
    """
    _set_modes(kept(made))
    content = dict(_exact(kept(made)))
    (made / _DIGEST).write_text(digest(content), encoding="utf-8")
    publish(made, target, sound=lambda: sound(target))


def sound(target: Path) -> bool:
    """Tells whether a directory of a cache has exactly the files that were kept there."""
    wanted = target / _DIGEST
    return wanted.is_file() and intact(kept(target), wanted.read_text(encoding="utf-8"))


def kept(target: Path) -> Path:
    """Returns the directory with the files that a cache keeps."""
    return target / _CONTENT


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Keeps other builds from changing a directory meanwhile; the end of a process releases it."""
    held = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)
