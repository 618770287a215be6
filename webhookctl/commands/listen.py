"""`listen`: copies the events of an inbox to an address on this machine."""

import json
import os
import secrets
import sys
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from webhook_inbox.client.arrivals import Arrivals
from webhook_inbox.client.metered import MeteredTable
from webhook_inbox.client.names import require_known
from webhook_inbox.client.personal import Masks
from webhook_inbox.client.search import EventQuery
from webhook_inbox.client.times import iso, spelled
from webhook_inbox.domain.errors import Permanent, Skipped
from webhook_inbox.domain.ports import Table
from webhook_inbox.domain.timestamps import from_ms, to_ms
from webhook_inbox.ledger.queries import Ledger, Received
from webhookctl.commands.tail import HANGING, Connection
from webhookctl.deliveries.forward import PREFIX, Forwarder
from webhookctl.display.times import moment
from webhookctl.errors import CommandError
from webhookctl.invocation import (
    EventType,
    Invocation,
    SecretEnv,
    ShowPersonal,
    Since,
    Source,
    secret_of,
    takes_options,
)

# The pauses before an event is forwarded again; after the last one it is given up.
PAUSES: Final = (timedelta(seconds=2), timedelta(seconds=10))
# The events that wait for another attempt; the oldest beyond these is given up.
WAITING: Final = 100
KEY_BYTES: Final = 32
# How far back the place of an earlier `listen` is continued.
KEPT: Final = timedelta(days=7)
# The XDG base directory specification: where state that outlives a restart is kept.
STATE_HOME: Final = "XDG_STATE_HOME"


@takes_options
def listen(
    call: Invocation,
    *,
    forward: Annotated[
        str, typer.Option("--forward", metavar="URL", help="Where to POST each event.")
    ],
    source: Source = None,
    type_: EventType = None,
    since: Since = None,
    secret_env: SecretEnv = None,
    allow_remote: Annotated[
        bool,
        typer.Option("--allow-remote", help="Forward to another machine; payloads leave this one."),
    ] = False,
    show_personal: ShowPersonal = False,
) -> None:
    """Copy each new event to an address on this machine, until Ctrl-C; changes no run.

    Signs as Standard Webhooks. Without --since it continues where the last one with this target and
    address ended. A failed copy is tried 3 times and never delays the others for long.
    """
    target, output = call.target, call.output
    require_known(target, source=source, handler=None)
    file = PlaceFile(target.name, target.table_name, forward, source or "", type_ or "")
    place = file.read()
    kept = str(place.get("secret") or PREFIX + b64encode(secrets.token_bytes(KEY_BYTES)).decode())
    secret = secret_of(secret_env, otherwise="none") if secret_env else kept
    forwarder = Forwarder(forward, secret, remote=allow_remote)
    table = MeteredTable(target.table)
    arrivals = _arrivals(call, table, {} if since else place, since)
    if secret_env is None:
        output.note(f"Requests are signed as Standard Webhooks with SIGNING_SECRET={secret}.")
    masks = call.client.masks(
        show_to=call.personal_reader(show=show_personal), command="listen", source=source
    )
    copies = Copies(call, Ledger(table=table, blobs=target.blobs), forwarder, masks)
    copies.restore(place.get("waiting"))
    wanted, ready = EventQuery(source, type_), Ready(call, forward)

    def poll() -> None:
        try:
            for event in arrivals.poll():
                ready.say()
                if wanted.names(event):
                    copies.forward(event)
            ready.say()
            copies.repeat()
        finally:
            file.write({"secret": kept, **arrivals.state(), "waiting": copies.state()})

    following = Connection(output, call.clock, to=target.name)
    following.follow(poll, live=lambda: f"Forwarding new events to {forward}.")


@dataclass(slots=True)
class Waiting:
    """A copy that failed: the number of its next attempt, and when that is due."""

    event: Received
    attempt: int
    due: datetime


class Copies:
    """Forwards events, and the failed ones again a bounded number of times."""

    def __init__(
        self, call: Invocation, ledger: Ledger, forwarder: Forwarder, masks: Masks
    ) -> None:
        self._call = call
        self._masks = masks
        self._ledger = ledger
        self._forwarder = forwarder
        self._waiting: list[Waiting] = []

    def forward(self, event: Received, *, attempt: int = 1) -> None:
        """Forwards an event once; a failure is shown, and repeated later.

        Raises:
            Unavailable: the ledger or the bucket failed, before anything was sent.
        """
        failure = self._sent(event, attempt)
        again = bool(failure) and attempt <= len(PAUSES)
        if again:
            due = self._call.clock.now() + PAUSES[attempt - 1]
            self._waiting.append(Waiting(event, attempt + 1, due))
        outcome = ("failed" if again else "given up") if failure else "forwarded"
        self._show(event, outcome, attempt, failure)
        if len(self._waiting) > WAITING:
            oldest = self._waiting.pop(0)
            why = f"{WAITING} later ones wait for another attempt"
            self._show(oldest.event, "given up", oldest.attempt - 1, why)

    def repeat(self) -> None:
        """Forwards the failed ones that are due.

        Raises:
            Unavailable: the ledger or the bucket failed; those left stay due.
        """
        now = self._call.clock.now()
        for each in [each for each in self._waiting if each.due <= now]:
            self.forward(each.event, attempt=each.attempt)
            self._waiting.remove(each)

    def state(self) -> list[list[Any]]:
        """Returns the failed ones as JSON data."""
        return [
            [e.source, e.event_id, e.type, to_ms(e.received_at), each.attempt]
            for each in self._waiting
            for e in (each.event,)
        ]

    def restore(self, state: object) -> None:
        """Takes over the failed ones of an earlier `listen`; they are due now."""
        now = self._call.clock.now()
        for each in state if isinstance(state, list) else ():
            try:
                source, event_id, type_, at, attempt = each
                event = Received(str(source), str(event_id), str(type_), from_ms(int(at)))
                self._waiting.append(Waiting(event, int(attempt), now))
            except (TypeError, ValueError):
                continue

    def _sent(self, event: Received, attempt: int) -> str:
        """Returns why an event was not forwarded, "" if it was."""
        now = self._call.clock.now()
        try:
            found = self._ledger.overview(event.source, event.event_id, now=now, with_body=True)
        except (Permanent, Skipped) as error:
            return f"its body cannot be read: {error}"
        if found is None:
            return "it has expired"
        return self._forwarder.send(self._masks.event(found.event), attempt=attempt, now=now)

    def _show(self, event: Received, outcome: str, attempt: int, failure: str) -> None:
        output = self._call.output
        if self._call.as_json:
            about = {"source": event.source, "type": event.type, "event_id": event.event_id}
            told = {"outcome": outcome, "attempt": attempt, "error": failure or None}
            output.json({**about, "received_at": iso(event.received_at), **told})
            return
        at = spelled(event.received_at)[11:19]
        why = f"  attempt {attempt}: {failure}" if failure else ""
        line = f"{at}  {outcome:<9}  {event.source}  {event.type}  {event.event_id}{why}"
        output.text(line, hanging=HANGING)


def _arrivals(
    call: Invocation, table: Table, place: Mapping[str, Any], since: str | None
) -> Arrivals:
    """Returns the events behind an earlier place, since a time, or from now on."""
    now = call.clock.now()
    if since is not None:
        return Arrivals(table, call.clock, since=moment(since, now))
    try:
        arrivals = Arrivals.resumed(table, call.clock, place)
    except (KeyError, TypeError, ValueError):
        return Arrivals(table, call.clock, since=now)
    if arrivals.newest < now - KEPT:
        call.output.note(f"The last one ended over {KEPT.days} days ago: use --since to go back.")
        return Arrivals(table, call.clock, since=now)
    call.output.note(f"Continues behind {spelled(arrivals.newest)}; use --since for another time.")
    return arrivals


class PlaceFile:
    """A file of the user's only; another target or address has another one."""

    def __init__(self, *names: str) -> None:
        digest = sha256("\0".join(names).encode(errors="replace")).hexdigest()[:16]
        base = os.environ.get(STATE_HOME, "")
        home = Path(base) if Path(base).is_absolute() else Path.home() / ".local" / "state"
        self.path = home / "webhookctl" / f"listen-{digest}.json"

    def read(self) -> Mapping[str, Any]:
        """Returns the content; nothing without a file, or if it cannot be used."""
        try:
            data = json.loads(self.path.read_text())
        except (FileNotFoundError, ValueError):
            return {}
        except OSError as error:
            raise CommandError(f"{self.path}: cannot be read: {error.strerror}") from error
        return data if isinstance(data, dict) else {}

    def write(self, data: Mapping[str, Any]) -> None:
        """Replaces the content at once, so that a crash leaves the old or the new one."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = self.path.with_suffix(f".{os.getpid()}")
        draft.unlink(missing_ok=True)
        draft.touch(mode=0o600, exist_ok=False)
        draft.write_text(json.dumps(data))
        draft.replace(self.path)


class Ready:
    """The first line of the output: the ledger has answered, and no event is forwarded yet."""

    def __init__(self, call: Invocation, url: str) -> None:
        self._call = call
        self._url = url
        self._said = False

    def say(self) -> None:
        """Prints one line for a program that waits for it, once; a terminal has the note."""
        if self._said:
            return
        self._said, target = True, self._call.target.name
        if self._call.as_json:
            self._call.output.json({"ready": True, "from": target, "to": self._url})
        elif not sys.stdout.isatty():
            self._call.output.line(f"ready: {target} to {self._url}")
