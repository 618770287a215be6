"""The directory of `webhookctl dev --keep`: what a session leaves to the next one.

ministack writes the table, the queues, the deployed stack and the secrets when it stops, and the
bodies at once. It writes nothing when it is killed: the next session then finds the state of the
last stop.
"""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from webhookctl.errors import CommandError
from webhookctl.local.ports import free_port, require_free

AWS: Final = "aws"
JOURNAL: Final = "sink.jsonl"
PORT: Final = "port"
LOCK: Final = "lock"
FRESH: Final = "--fresh, which deletes the kept events, secrets and effects"
# Shows that the directory is one of ours, and keeps its secrets out of the user's repository.
MARK: Final = ".gitignore"
MARKED: Final = "# Written by `webhookctl dev --keep`, which deletes files here with --fresh.\n*\n"


class Kept:
    """One such directory; it holds events and secrets, so only its user may read it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.resolve()
        self.journal = self.directory / JOURNAL

    @property
    def variables(self) -> dict[str, str]:
        """The variables that make ministack load and save its state here."""
        aws = self.directory / AWS
        return {
            "PERSIST_STATE": "1",
            "STATE_DIR": str(aws),
            "S3_PERSIST": "1",
            "S3_DATA_DIR": str(aws / "s3"),
        }

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Creates the directory and locks it.

        Raises CommandError where another session has it, and for a directory with files of the
        user's, in which it changes nothing.
        """
        try:
            self._claim()
            self.directory.chmod(0o700)
            # Not truncated, and no link is followed: the file may be another's.
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
            lock = os.fdopen(os.open(self.directory / LOCK, flags, 0o600), "r+")
        except OSError as error:
            raise CommandError(
                f"--keep {self.directory}: {error.strerror}; name a directory that you can write"
            ) from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise CommandError(
                    f"--keep {self.directory} is in use by another session: stop it, or name"
                    " another directory"
                ) from error
            yield

    def _claim(self) -> None:
        """Marks a new or empty directory; raises CommandError for one that is not ours."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.directory.stat().st_uid != os.getuid():
            raise CommandError(
                f"--keep {self.directory} belongs to another user: name a directory of yours"
            )
        mark = self.directory / MARK
        if not any(self.directory.iterdir()):
            mark.write_text(MARKED)
        elif not mark.is_file() or mark.read_text(errors="replace") != MARKED:
            raise CommandError(
                f"--keep {self.directory} has files that no session wrote: name a new or empty"
                " directory"
            )

    def clear(self) -> None:
        """Deletes what earlier sessions kept, and no other file."""
        shutil.rmtree(self.directory / AWS, ignore_errors=True)
        for name in (JOURNAL, PORT):
            (self.directory / name).unlink(missing_ok=True)

    def port(self) -> int:
        """Returns the port of ministack, which the kept stack's queue URLs contain.

        Raises CommandError where another process has it, and where the file has no port.
        """
        file = self.directory / PORT
        if not file.is_file():
            file.write_text(str(free_port()))
        text = file.read_text(errors="replace")
        if not (text.isascii() and text.isdigit()):
            raise CommandError(f"{file} contains no port: start with {FRESH}")
        port = int(text)
        require_free(port, purpose=f"the AWS of --keep {self.directory}", option=FRESH)
        return port
