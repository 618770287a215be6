"""The directory of `webhookctl dev --keep`: what a session leaves to the next one.

ministack writes the table, the queues, the deployed stack and the secrets when it stops, and the
bodies at once. It writes nothing when it is killed: the next session then finds the state of the
last stop.
"""

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from webhookctl.errors import CommandError
from webhookctl.local.ports import free_port, require_free

AWS: Final = "aws"
JOURNAL: Final = "sink.jsonl"
PORT: Final = "port"
STORED: Final = "secrets.json"
LOCK: Final = "lock"


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
        """Creates the directory and locks it; raises CommandError where another session has it."""
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self.directory.stat().st_uid != os.getuid():
                raise CommandError(
                    f"--keep {self.directory} belongs to another user: name a directory of yours"
                )
            self.directory.chmod(0o700)
            lock = (self.directory / LOCK).open("w")
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

    def clear(self) -> None:
        """Deletes what earlier sessions kept, and no other file."""
        shutil.rmtree(self.directory / AWS, ignore_errors=True)
        for name in (JOURNAL, PORT, STORED):
            (self.directory / name).unlink(missing_ok=True)

    def port(self) -> int:
        """Returns the port of ministack, which the kept stack's queue URLs contain.

        Raises CommandError where another process has it.
        """
        file = self.directory / PORT
        if not file.is_file():
            file.write_text(str(free_port()))
        port = int(file.read_text())
        require_free(port, purpose=f"the AWS of --keep {self.directory}", option="--fresh")
        return port

    def stored(self) -> frozenset[str]:
        """Returns the names of the secrets that a session has stored in the vault."""
        if not (self.directory / AWS / "secretsmanager.json").is_file():
            return frozenset()
        try:
            return frozenset(json.loads((self.directory / STORED).read_text()))
        except (OSError, ValueError):
            return frozenset()

    def remember(self, names: Iterable[str]) -> None:
        """Records the names of stored secrets."""
        (self.directory / STORED).write_text(json.dumps(sorted(names)))
