"""Scenarios that take up to two minutes: started with the inbox, checked by the last tests.

A lane detects a lost worker after its visibility timeout; the other tests run meanwhile.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.inquiry import FRAGILE
from tests.e2e.whole_inbox import WholeInbox
from tests.waiting import eventually
from webhook_inbox.domain.model import Status

HANDLERS_AT_WORK = 4
AT_WORK = {Status.PROCESSING}
ROUNDS = 5


@dataclass(frozen=True)
class Misfortunes:
    """Events of the laboratory by what becomes of their handlers.

    Attributes:
        killed: their workers were killed in the middle of them.
        lethal: kills its process every time.
        once_lethal: kills its process the first time.
        hanging: hangs as long as its gate exists.
        gate: of the hanging one.
        unhindered: a task of the default lane, accepted when the others were dying and hanging.
    """

    killed: list[str]
    lethal: str
    once_lethal: str
    hanging: str
    gate: Path
    unhindered: str


def set_off(inbox: WholeInbox, directory: Path) -> Misfortunes:
    """Lets workers die and handlers hang, and does not wait for what becomes of it."""
    killed = _killed_at_work(inbox, directory)
    gate = _gate(directory / "hanging")
    return Misfortunes(
        killed=killed,
        lethal=_send(inbox, "lethal", "die", _gate(directory / "lethal")),
        once_lethal=_send(inbox, "patient", "die once", _gate(directory / "once")),
        hanging=_send(inbox, "brief", "hang", gate),
        gate=gate,
        unhindered=inbox.accept("task"),
    )


def _killed_at_work(inbox: WholeInbox, directory: Path) -> list[str]:
    """Returns the events of handlers whose workers were killed in the middle of them."""
    # The first round starts the workers: cold ones are not at work together for long.
    with _at_work(inbox, directory / "warm") as events:
        pass
    for number in range(ROUNDS):
        for event_id in events:
            inbox.settled("lab", event_id)
        with _at_work(inbox, directory / f"killed-{number}") as events:
            # Other lanes keep theirs: on a slow machine, a cold start outlasts this lane's timeout.
            killed = inbox.kill_workers(inbox.processor(FRAGILE))
            # No worker is left to settle them.
            statuses = {run.status for e in events for run in inbox.runs("lab", e).values()}
            if killed >= HANDLERS_AT_WORK and statuses == AT_WORK:
                return events
    raise AssertionError(f"in {ROUNDS} rounds {HANDLERS_AT_WORK} handlers never worked together")


@contextlib.contextmanager
def _at_work(inbox: WholeInbox, file: Path) -> Iterator[list[str]]:
    """Brings handlers to their middle, and lets them go on at the end."""
    gate = _gate(file)
    accept = lambda: _send(inbox, "patient", "wait", gate)  # noqa: E731
    events = inbox.at_once(HANDLERS_AT_WORK, accept)
    eventually(lambda: all(map(inbox.effects, events)), what="every handler in its middle")
    try:
        yield events
    finally:
        gate.unlink()


def _gate(file: Path) -> Path:
    file.touch()
    return file


def _send(inbox: WholeInbox, type_: str, mood: str, gate: Path) -> str:
    return inbox.accept(type_, mood=mood, **{"while": str(gate)})
