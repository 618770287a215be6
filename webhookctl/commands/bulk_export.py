"""`inbox export --to`: writes the events of whole hours to a directory or to S3, as JSON lines."""

import gzip
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Any, Final, Protocol

from botocore.exceptions import ClientError

from webhook_inbox.domain.errors import Permanent, Skipped
from webhook_inbox.domain.model import Overview
from webhook_inbox.ledger.queries import Ledger, Received
from webhookctl.display.event import body_object, event_object
from webhookctl.display.generated_curl import sent_headers
from webhookctl.display.output import counted
from webhookctl.display.personal import Masks
from webhookctl.errors import CommandError
from webhookctl.invocation import Invocation
from webhookctl.search import read_ahead

HOUR: Final = timedelta(hours=1)
# An index entry may be late; the reconciler reads events this long after their receipt as well.
INDEX_LAG: Final = timedelta(minutes=3)
MILLISECOND: Final = timedelta(milliseconds=1)
# The bodies that are read at a time; each is in memory, and may have 10 MB.
READERS: Final = 8
S3: Final = "s3://"
# Describes the files beside it, so that files of another selection are never mixed with them.
SETTINGS: Final = "export.json"


class Place(Protocol):
    """A place for files. A file is there as a whole or not at all."""

    def read(self, name: str) -> bytes | None:
        """Returns a file's content, None if it is not there."""

    def has(self, name: str) -> bool:
        """Returns whether a file is there."""

    def write(self, name: str, content: IO[bytes]) -> None:
        """Writes a file."""


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory on this machine, which is created."""

    path: Path

    def read(self, name: str) -> bytes | None:
        """See `Place`."""
        return (self.path / name).read_bytes() if self.has(name) else None

    def has(self, name: str) -> bool:
        """See `Place`."""
        return (self.path / name).is_file()

    def write(self, name: str, content: IO[bytes]) -> None:
        """See `Place`."""
        self.path.mkdir(parents=True, exist_ok=True)
        part = self.path / f".{name}.part"
        # Personal data: for this user only.
        with part.open("wb") as file:
            part.chmod(0o600)
            while block := content.read(1 << 20):
                file.write(block)
        part.replace(self.path / name)


@dataclass(frozen=True, slots=True)
class Prefix:
    """A prefix of a bucket, with the user's credentials."""

    client: Any
    bucket: str
    prefix: str

    def read(self, name: str) -> bytes | None:
        """See `Place`."""
        try:
            found: bytes = self.client.get_object(**self._named(name))["Body"].read()
        except ClientError as error:
            if error.response["Error"]["Code"] in {"NoSuchKey", "404"}:
                return None
            raise
        return found

    def has(self, name: str) -> bool:
        """See `Place`."""
        try:
            self.client.head_object(**self._named(name))
        except ClientError as error:
            if error.response["Error"]["Code"] in {"NoSuchKey", "404"}:
                return False
            raise
        return True

    def write(self, name: str, content: IO[bytes]) -> None:
        """See `Place`."""
        self.client.put_object(**self._named(name), Body=content)

    def _named(self, name: str) -> dict[str, str]:
        return {"Bucket": self.bucket, "Key": f"{self.prefix}{name}"}


def place_of(call: Invocation, to: str) -> Place:
    """Returns the place that `--to` names; raises CommandError for a URL without a bucket."""
    if not to.startswith(S3):
        return Directory(Path(to))
    bucket, _, prefix = to.removeprefix(S3).partition("/")
    if not bucket:
        raise CommandError(f"{to} names no bucket: write s3://BUCKET/PREFIX")
    ending = "" if not prefix or prefix.endswith("/") else "/"
    return Prefix(call.target.client("s3"), bucket, prefix + ending)


def hours(low: datetime, high: datetime) -> list[datetime]:
    """Returns the starts of the whole hours that begin in [low, high) and end by `high`.

    The hour of `low` counts as a whole.
    """
    first = low.replace(minute=0, second=0, microsecond=0)
    return [first + HOUR * n for n in range(max((high - first) // HOUR, 0))]


class Export:
    """Writes one file per hour; skips those that are there, so that a repeated call goes on."""

    def __init__(self, call: Invocation, place: Place, masks: Masks, source: str | None) -> None:
        self._call = call
        self._place = place
        self._masks = masks
        self._source = source
        self._ledger = Ledger(table=call.target.table, blobs=call.target.blobs)

    def claim(self) -> None:
        """Writes what the files are, or compares it with those that are there.

        Raises:
            CommandError: the place has files of another inbox or selection.
        """
        target = self._call.target
        wanted = {
            "stack": target.name,
            "table": target.table_name,
            "source": self._source,
            "personal": "shown" if self._masks.show else "masked",
        }
        found = self._place.read(SETTINGS)
        if found is None:
            with tempfile.TemporaryFile() as file:
                file.write(f"{json.dumps(wanted, indent=2)}\n".encode())
                file.seek(0)
                self._place.write(SETTINGS, file)
            return
        if json.loads(found) != wanted:
            raise CommandError(
                f"--to has files of another export (its {SETTINGS}:"
                f" {' '.join(found.decode(errors='replace').split())}): choose another place"
            )

    def hour(self, start: datetime) -> dict[str, Any]:
        """Writes the file of an hour and returns its name and its number of events."""
        name = f"{start:%Y-%m-%dT%H}.jsonl.gz"
        if self._place.has(name):
            return {"file": name, "events": None}
        with tempfile.TemporaryFile() as file:
            count = 0
            # Without a time in its header, the same hour has the same bytes.
            with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
                for line in self._lines(start):
                    packed.write(line)
                    count += 1
            file.seek(0)
            self._place.write(name, file)
        return {"file": name, "events": count}

    def _lines(self, start: datetime) -> Iterator[bytes]:
        end = start + HOUR - MILLISECOND
        names = (
            name
            for name in self._ledger.received(start, end)
            if self._source in {None, name.source}
        )
        for event in read_ahead(self._event, names, at_once=READERS):
            if event is not None:
                line = f"{json.dumps(event, ensure_ascii=False)}\n"
                yield line.encode(errors="backslashreplace")

    def _event(self, name: Received) -> dict[str, Any] | None:
        """Returns an event as JSON data; one whose body is erased or gone has none."""
        now = self._call.clock.now()
        try:
            overview = self._overview(name, now, body=True)
        except (Permanent, Skipped) as error:
            overview = self._overview(name, now, body=False)
            told = event_object(overview, now=now) if overview else {}
            return {**told, "body_missing": str(error)} if overview else None
        if overview is None:
            return None
        event = self._masks.event(overview.event)
        headers = sent_headers(event.headers)
        return {**event_object(overview, now=now), "headers": headers, **body_object(event.body)}

    def _overview(self, name: Received, now: datetime, *, body: bool) -> Overview | None:
        return self._ledger.overview(name.source, name.event_id, now=now, with_body=body)


def export_hours(call: Invocation, export: Export, wanted: list[datetime]) -> None:
    """Writes the files of these hours and prints each."""
    export.claim()
    total = 0
    for start in wanted:
        written = export.hour(start)
        total += written["events"] or 0
        if call.as_json:
            call.output.json(written)
        else:
            number = written["events"]
            told = "is there already" if number is None else counted(number, "event")
            call.output.line(f"{written['file']}: {told}")
    call.output.note(f"Wrote {counted(total, 'event')} of {counted(len(wanted), 'whole hour')}.")
