"""Builds deliveries from sample files, signed as their provider would."""

import json
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from webhook_inbox.domain.errors import InboxError, Rejected
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import Clock
from webhook_inbox.domain.provider import Provider, Sample, Sent
from webhook_inbox.ingest import events
from webhookctl.errors import CommandError

NOT_RENAMED: Final = (
    "its id does not stand in it as one JSON value, so it cannot be replaced: edit a copy of it"
)
# An id's type prefix, such as `evt_…`.
_PREFIX: Final = re.compile(r"[A-Za-z]+_")
# White space that JSON ignores; one character per bit.
_BITS: Final = (" ", "\t")


@dataclass(frozen=True, slots=True)
class Draft:
    """A signed delivery; `id_in_body` says whether the body contains the event id."""

    file: Path
    source: str
    event_id: str
    type: str
    body: bytes
    headers: Mapping[str, str]
    query: str = ""
    id_in_body: bool = False


def samples_of(root: Path, source: str, provider: str) -> Iterator[Path]:
    """Yields the samples of a source in a repository, then those of its provider."""
    for folder in dict.fromkeys((source, provider)):
        yield from (root / "events" / "ingest" / folder).glob("*.json")


class Forge:
    """Builds deliveries of one source."""

    def __init__(self, *, provider: Provider, spec: SourceSpec, secret: str, clock: Clock) -> None:
        self._provider = provider
        self._spec = spec
        self._secret = secret
        self._clock = clock

    def draft(
        self,
        file: Path,
        *,
        type_: str | None = None,
        event_id: str | None = None,
        new_id: bool = False,
    ) -> Draft:
        """Builds a delivery from a file.

        Args:
            file: the body.
            type_: the event type, where the body lacks it; by default from the file's name,
                `type__variant.json`.
            event_id: the event id; by default the file's own or a new one.
            new_id: whether to replace the id in the body by a new one.

        Raises:
            CommandError: the provider could not have sent this delivery.
        """
        body, kind, fresh = file.read_bytes(), type_ or _named(file), uuid.uuid4().hex
        found = self._signed(file, Sample(fresh, kind, body)).event_id
        if found == fresh:
            # The id is in a header; a replay guard recognizes the content, though.
            body = _distinct(file, body) if new_id and self._provider.guard else body
            return self._signed(file, Sample(event_id or fresh, kind, body))
        if event_id or new_id:
            body = _renamed(file, body, found, event_id)
        draft = self._signed(file, Sample(fresh, kind, body))
        if event_id not in {None, draft.event_id}:
            raise CommandError(f"{file}: {NOT_RENAMED}")
        return replace(draft, id_in_body=True)

    def _signed(self, file: Path, sample: Sample) -> Draft:
        now = self._clock.now()
        try:
            sent = self._provider.send(sample, self._secret, now)
            identity = events.name_of(self._delivery(sent, now), self._provider)
        except Rejected as error:
            reason = f"{file} is no event of {self._spec.provider}: {error.detail}"
            raise CommandError(reason) from error
        except InboxError as error:
            raise CommandError(f"source {self._spec.name}: {error}") from error
        named = (self._spec.name, identity.event_id, identity.type)
        return Draft(file, *named, sent.body, sent.headers, sent.query)

    def _delivery(self, sent: Sent, now: datetime) -> Delivery:
        return Delivery(
            source=self._spec.name,
            method="POST",
            path=f"/webhooks/{self._spec.name}",
            query=sent.query,
            headers=sent.headers,
            body=sent.body,
            received_at=now,
            verified=True,
        )


def _named(file: Path) -> str:
    # A slash of a type is percent-encoded in the file's name.
    return unquote(file.name.partition(".json")[0].partition("__")[0])


def _renamed(file: Path, body: bytes, found: str, event_id: str | None) -> bytes:
    """Returns the body with another id, by default a new one with the same prefix."""
    old = json.dumps(found).encode()
    if event_id is None and old not in body:
        return _distinct(file, body)  # The id is derived from the content.
    if body.count(old) != 1:
        raise CommandError(f"{file}: {NOT_RENAMED}")
    prefix = _PREFIX.match(found)
    fresh = (prefix[0] if prefix else "") + uuid.uuid4().hex
    return body.replace(old, json.dumps(event_id or fresh).encode())


def _distinct(file: Path, body: bytes) -> bytes:
    """Returns an equivalent body that was never sent, with random white space at its end."""
    try:
        json.loads(body)
    except (ValueError, RecursionError) as error:
        raise CommandError(
            f"{file} is not JSON, so it has to be changed by hand to be another event"
        ) from error
    bits = f"{uuid.uuid4().int & 0xFFFFFFFF:032b}"
    return body + "".join(_BITS[int(bit)] for bit in bits).encode()
