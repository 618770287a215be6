"""The first lines of the overview: what needs a person, and whether the inbox is healthy."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from webhook_inbox.client.health.result import CheckResult, Level
from webhook_inbox.client.rejected import RejectionFilter
from webhook_inbox.domain.errors import InboxError
from webhookctl.checkout import declared_configuration
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.errors import explain

LISTED: Final = 1000
DAY: Final = timedelta(days=1)
# Doctor's checks take seconds against a stack, in a thread of their own.
DOCTOR_SECONDS: Final = 60.0
# In the background, so longer than a page may take.
SECONDS: Final = 5.0
UNCOUNTED: Final = "the count took too long: open the page"
# The pages that resolve a finding of doctor, by its check.
PAGES: Final[Mapping[str, str]] = {
    "DLQs": "/dead-letters",
    "circuit": "/destinations",
    "held": "/approvals",
    "paused": "/handlers",
    "secrets": "/sources",
}
FINE: Final = frozenset({Level.OK, Level.SKIPPED})


@dataclass(frozen=True, slots=True)
class Need:
    """Something that a person resolves.

    Attributes:
        what: what is counted.
        path: the page that resolves it.
        count: how many there are; None if they could not be read.
        least: whether there may be more.
        error: why they could not be read.
    """

    what: str
    path: str
    count: int | None
    least: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class Health:
    """The inbox's health in one line.

    Attributes:
        word: healthy, needs you, or cannot tell.
        why: the reasons.
    """

    word: str
    why: str


def needs(inbox: ConsoleInbox) -> list[Need]:
    """Counts what needs a person, within the bounds of a page."""
    counts: Sequence[tuple[str, str, Callable[[ConsoleInbox], tuple[int, bool]]]] = (
        ("Dead runs", "/dead-letters", _dead),
        ("Waiting for approval", "/approvals", _held),
        ("Rejected in 24 h", "/rejected", _rejected),
        ("Open circuits", "/destinations", _circuits),
        ("Paused", "/handlers", _paused),
    )
    with ThreadPoolExecutor(len(counts)) as pool:
        return list(pool.map(lambda each: _counted(inbox, *each), counts))


def _counted(
    inbox: ConsoleInbox, what: str, path: str, count: Callable[[ConsoleInbox], tuple[int, bool]]
) -> Need:
    try:
        number, least = count(inbox)
    except InboxError as error:
        return Need(what, path, None, error=explain(error))
    if least and not number:
        return Need(what, path, None, error=UNCOUNTED)
    return Need(what, path, number, least)


def _dead(inbox: ConsoleInbox) -> tuple[int, bool]:
    found = inbox.reading(SECONDS).dead_letters.count_runs()
    return found.runs, not found.is_complete


def _held(inbox: ConsoleInbox) -> tuple[int, bool]:
    found = inbox.reading(SECONDS).holds.list(limit=LISTED)
    return len(list(found)), found.partial


def _rejected(inbox: ConsoleInbox) -> tuple[int, bool]:
    wanted = RejectionFilter(since=inbox.clock.now() - DAY)
    found = inbox.reading(SECONDS).rejected.list(wanted, limit=LISTED)
    waiting = sum(each.released_at is None for each in found)
    return waiting, found.partial or found.full


def _circuits(inbox: ConsoleInbox) -> tuple[int, bool]:
    found = inbox.reading().destinations.list()
    return sum(each.circuit not in {None, "closed"} for each in found), False


def _paused(inbox: ConsoleInbox) -> tuple[int, bool]:
    client = inbox.reading()
    handlers = sum(each.paused for each in client.handlers.list())
    return handlers + len(list(client.tenants.list())), False


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of doctor with its remedy, and the page that resolves it, "" without one."""

    level: str
    check: str
    figure: str
    remedy: str
    path: str


def findings(inbox: ConsoleInbox) -> list[Finding]:
    """Returns the findings of doctor that are not fine; takes seconds against a stack."""
    results = inbox.reading(DOCTOR_SECONDS).health.examine(
        configuration=declared_configuration(inbox.target.stage)
    )
    return [_finding(each) for each in results if each.level not in FINE]


def _finding(each: CheckResult) -> Finding:
    path = PAGES.get(each.check, "")
    return Finding(each.level, each.check, each.figure, each.remedy, path)


def health(counted: Sequence[Need], found: Sequence[Finding] | None, error: str) -> Health:
    """Returns the health: a need precedes what could not be read, since it is certain."""
    asked = [_told(need) for need in counted if need.count]
    bad = [each for each in found or () if each.level != Level.UNKNOWN]
    if bad:
        asked.append(f"findings of doctor: {len(bad)}")
    if asked:
        return Health("needs you", ", ".join(asked))
    unread = [f"{need.what}: {need.error}" for need in counted if need.count is None]
    unread += [
        f"{each.check}: {each.remedy}" for each in found or () if each.level == Level.UNKNOWN
    ]
    unread += [error] if error else []
    if unread:
        return Health("cannot tell", "; ".join(unread))
    if found is None:
        return Health("cannot tell", "the checks of doctor have not ended yet")
    return Health("healthy", "nothing waits for a person, and every check of doctor is ok")


def _told(need: Need) -> str:
    return f"{need.what.lower()}: {'at least ' if need.least else ''}{need.count}"
