"""Writes the events of whole hours to a directory or to S3: a file of compressed lines an hour."""

import gzip
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Final, Protocol

from webhook_inbox.adapters.aws.s3_files import S3Files
from webhook_inbox.client.errors import Refused
from webhook_inbox.client.event_state import EventState
from webhook_inbox.client.operation import Operation
from webhook_inbox.client.personal import Masks
from webhook_inbox.client.scope import Scope
from webhook_inbox.client.search import read_ahead
from webhook_inbox.domain.errors import Permanent, Skipped
from webhook_inbox.domain.model import Overview
from webhook_inbox.ledger.queries import Received

HOUR: Final = timedelta(hours=1)
# An index entry may be late; the reconciler reads events this long after their receipt as well.
INDEX_LAG: Final = timedelta(minutes=3)
MILLISECOND: Final = timedelta(milliseconds=1)
# The bodies that are read at a time; each is in memory, and may have 10 MB.
READERS: Final = 8
S3: Final = "s3://"
# Describes the files beside it, so that files of another selection are never mixed with them.
SETTINGS: Final = "export.json"


class Files(Protocol):
    """A place for files. A file is there as a whole or not at all."""

    def read(self, name: str) -> bytes | None:
        """Returns a file's content, None if it is not there."""

    def has(self, name: str) -> bool:
        """Returns whether a file is there."""

    def write(self, name: str, content: IO[bytes]) -> None:
        """Writes a file."""


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """A directory on this machine, which is created."""

    path: Path

    def read(self, name: str) -> bytes | None:
        """See `Files`."""
        return (self.path / name).read_bytes() if self.has(name) else None

    def has(self, name: str) -> bool:
        """See `Files`."""
        return (self.path / name).is_file()

    def write(self, name: str, content: IO[bytes]) -> None:
        """See `Files`."""
        self.path.mkdir(parents=True, exist_ok=True)
        part = self.path / f".{name}.part"
        # Personal data: for this user only.
        with part.open("wb") as file:
            part.chmod(0o600)
            while block := content.read(1 << 20):
                file.write(block)
        part.replace(self.path / name)


def files_at(scope: Scope, to: str) -> Files:
    """Returns a directory or s3://BUCKET/PREFIX; raises Refused for a URL without a bucket."""
    if not to.startswith(S3):
        return LocalFiles(Path(to))
    bucket, _, prefix = to.removeprefix(S3).partition("/")
    if not bucket:
        raise Refused(f"{to} names no bucket: write s3://BUCKET/PREFIX")
    ending = "" if not prefix or prefix.endswith("/") else "/"
    return S3Files(scope.target.client("s3"), bucket, prefix + ending)


def whole_hours(low: datetime, high: datetime) -> list[datetime]:
    """Returns the starts of the whole hours that begin in [low, high) and end by `high`.

    The hour of `low` counts as a whole.
    """
    first = low.replace(minute=0, second=0, microsecond=0)
    return [first + HOUR * n for n in range(max((high - first) // HOUR, 0))]


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """The file of an hour; `events` is None where the file was there already."""

    file: str
    events: int | None


@dataclass(frozen=True, slots=True)
class ExportedEvent:
    """An event in a file; `missing` is why its body is not there, "" if it is."""

    state: EventState
    missing: str = ""


# Returns the line of a file for an event, as text without its end.
LineForm = Callable[[ExportedEvent], str]


class EventExport(Operation[ExportedFile]):
    """Writes a file per hour; skips those that are there, so that a repeated call continues.

    Each iteration writes the file of an hour. `counts` has the number of `events` and `files`.
    Iterating it raises Refused where the place has files of another inbox or selection.
    """

    def __init__(
        self,
        scope: Scope,
        files: Files,
        hours: Sequence[datetime],
        *,
        source: str | None,
        masks: Masks,
        form: LineForm,
    ) -> None:
        super().__init__(
            lambda _: self._write(), done=lambda counts: f"{counts['files']} files are written"
        )
        self.hours = tuple(hours)
        self._scope = scope
        self._files = files
        self._source = source
        self._masks = masks
        self._form = form
        self._ledger = scope.ledger(with_bodies=True)

    def _write(self) -> Iterator[ExportedFile]:
        self._claim()
        for start in self.hours:
            if self.ended_by:
                return
            written = self._hour(start)
            self.counts["files"] += written.events is not None
            self.counts["events"] += written.events or 0
            yield written

    def _claim(self) -> None:
        """Writes what the files are, or compares it with those that are there."""
        target = self._scope.target
        settings = {
            "stack": target.name,
            "table": target.table_name,
            "source": self._source,
            "personal": "shown" if self._masks.show else "masked",
        }
        found = self._files.read(SETTINGS)
        if found is None:
            with tempfile.TemporaryFile() as file:
                file.write(f"{json.dumps(settings, indent=2)}\n".encode())
                file.seek(0)
                self._files.write(SETTINGS, file)
            return
        if json.loads(found) != settings:
            raise Refused(
                f"--to has files of another export (its {SETTINGS}:"
                f" {' '.join(found.decode(errors='replace').split())}): choose another place"
            )

    def _hour(self, start: datetime) -> ExportedFile:
        name = f"{start:%Y-%m-%dT%H}.jsonl.gz"
        if self._files.has(name):
            return ExportedFile(name, None)
        with tempfile.TemporaryFile() as file:
            count = 0
            # Without a time in its header, the same hour has the same bytes.
            with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
                for event in self._events(start):
                    packed.write(f"{self._form(event)}\n".encode(errors="backslashreplace"))
                    count += 1
            file.seek(0)
            self._files.write(name, file)
        return ExportedFile(name, count)

    def _events(self, start: datetime) -> Iterator[ExportedEvent]:
        names = (
            name
            for name in self._ledger.received(start, start + HOUR - MILLISECOND)
            if self._source in {None, name.source}
        )
        for event in read_ahead(self._event, names, at_once=READERS):
            if event is not None:
                yield event

    def _event(self, name: Received) -> ExportedEvent | None:
        """Returns an event; one whose body is erased or gone has none."""
        now, missing = self._scope.clock.now(), ""
        try:
            overview = self._overview(name, now, body=True)
        except (Permanent, Skipped) as error:
            overview, missing = self._overview(name, now, body=False), str(error)
        if overview is None:
            return None
        masked = replace(overview, event=self._masks.event(overview.event))
        return ExportedEvent(EventState.of(masked, now=now), missing)

    def _overview(self, name: Received, now: datetime, *, body: bool) -> Overview | None:
        return self._ledger.overview(name.source, name.event_id, now=now, with_body=body)
