"""The actions for an event in its state, and those that its next action suggests."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Final
from urllib.parse import urlencode

from webhook_inbox.client.effects import Standing
from webhook_inbox.client.event_state import EventRun, EventState
from webhook_inbox.client.suggestions import Command, Program
from webhook_inbox.domain.audit import AuditedAction, AuditEntry
from webhook_inbox.domain.model import SETTLED, Run, Status, StoredEvent
from webhookctl.console import actions
from webhookctl.console.actions import FormAction
from webhookctl.console.views import event_path

REPLAY: Final = "Replay the run"
REPEAT: Final = "Repeat the finished run"
PLANS: Final = "Shows first what would be sent, and sends nothing yet."
KEEPS: Final = "Effects keep their keys: a recorded effect is not performed again."
FINISHED: Final = {str(status) for status in SETTLED}
GONE: Final = "the event has expired: ask the provider to send it again"


@dataclass(frozen=True, slots=True)
class Offer:
    """A button.

    Attributes:
        label: its text.
        explains: what it does.
        href: the page that it opens, "" for a form.
        fields: the form of a replay that it plans.
        refused: why it is not possible now, "" if it is.
        danger: whether it cannot be undone.
    """

    label: str
    explains: str
    href: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    refused: str = ""
    danger: bool = False


@dataclass(frozen=True, slots=True)
class NextStep:
    """A step of the next action: a sentence, or a command with the button that does the same."""

    text: str
    command: bool = False
    offer: Offer | None = None


@dataclass(frozen=True, slots=True)
class EventOffers:
    """The offers of an event and of its runs.

    Attributes:
        runs: the offers of each run by its handler.
        event: those of the event itself.
    """

    runs: Mapping[str, Sequence[Offer]]
    event: Sequence[Offer]


def offers_of(state: EventState, now: datetime) -> EventOffers:
    """Returns the offers of an event; those that its state forbids have the reason."""
    runs = {each.handler: tuple(_of_run(state, each, now)) for each in state.runs}
    return EventOffers(runs, tuple(_of_event(state)))


def next_steps_of(state: EventState, offers: EventOffers, program: Program) -> list[NextStep]:
    """Returns the steps of the next action, each command with its button."""
    return [
        NextStep(str(step), command=True, offer=_offer_of(_words(step, program), state, offers))
        if isinstance(step, Command)
        else NextStep(str(step))
        for step in state.next_action
    ]


def _words(command: Command, program: Program) -> tuple[str, ...]:
    return command.words[len(program.words) :]


def _offer_of(words: tuple[str, ...], state: EventState, offers: EventOffers) -> Offer | None:
    """Returns the button for a suggested command; None for one that no page performs.

    Names of handlers need no quotes in a shell, so they are compared as they are.
    """
    named = dict(pairwise(words))
    of_run = offers.runs.get(named.get("--handler", ""), ())
    match words:
        case ("replay", *_) if "--handler" in words:
            label = REPEAT if "--force" in words else REPLAY
        case ("replay", *_):
            return _replay(state.event, "", "")
        case ("hold", "approve", *_):
            label = (actions.HAPPENED if "--happened" in words else actions.APPROVE).title
        case ("hold", "deny", *_):
            label = actions.DENY.title
        case ("skip", *_):
            label = actions.SKIP.title
        case ("complete", *_):
            label = actions.COMPLETE.title
        case ("handlers" | "tenants" as group, "resume", *_):
            return _resume(state, tenant=group == "tenants")
        case _:
            return _page(words, state)
    return next((each for each in of_run if each.label == label), None)


def _page(words: tuple[str, ...], state: EventState) -> Offer | None:
    """Returns the link to the page that shows what a command lists."""
    match words:
        case ("hold", "list", *_):
            return Offer("Approvals", "Lists the runs that wait for a decision.", "/approvals")
        case ("handlers" | "tenants", "list", *_):
            return Offer("Handlers", "Lists handlers, tenants and their pauses.", "/handlers")
        case ("inbox", "inspect", *_):
            first = next((r.hold.identical_to for r in state.runs if r.hold), None)
            path = event_path(state.event.source, first or "")
            return Offer("The first event", "Opens the event with the same body.", path)
    return None


def _resume(state: EventState, *, tenant: bool) -> Offer | None:
    group = "tenant" if tenant else "handler"
    each = next((run for run in state.runs if run.paused == group), None)
    if each is None or each.run is None:
        return None
    if tenant:
        return _form(actions.RESUME_TENANT, "", name=each.run.tenant)
    return _form(actions.RESUME_HANDLER, "", name=each.handler)


def _form(action: FormAction, refused: str, **names: str) -> Offer:
    href = action.address(**names)
    return Offer(action.title, action.explains, href, refused=refused, danger=action.danger)


def _replay(event: StoredEvent, handler: str, refused: str, *, force: bool = False) -> Offer:
    fields = {"event_id": event.event_id, "source": event.source}
    fields |= {"handler": handler} if handler else {}
    fields |= {"force": "yes"} if force else {}
    explains = f"{KEEPS} {PLANS}" if force else f"Sends the run to its queue again. {PLANS}"
    return Offer(REPEAT if force else REPLAY, explains, fields=fields, refused=refused)


def _of_run(state: EventState, each: EventRun, now: datetime) -> Iterator[Offer]:
    """Yields the offers of a run; one that has not begun has no row."""
    event, run, name = state.event, each.run, each.handler
    status = each.status.replace("_", " ")
    gone = GONE if state.expires_at <= now else ""
    erased = "its payload is erased" if event.erased_at else ""
    finished = "" if status not in FINISHED else f"it is {status}: repeat it instead"
    yield _replay(event, name, gone or erased or finished or _busy(run, now))
    unfinished = "" if status in FINISHED else f"it is {status}, not finished: replay it instead"
    yield _replay(event, name, gone or erased or unfinished, force=True)
    named = {"event_id": event.event_id, "source": event.source, "handler": name}
    dead = run is not None and run.status is Status.DEAD_LETTER
    yield _form(actions.SKIP, "" if dead else f"it is {status}, not dead", **named)
    yield from _decisions(each, named, status)
    if each.job:
        yield _form(actions.COMPLETE, "", **named, effect=each.job)


def _busy(run: Run | None, now: datetime) -> str:
    if run is None or run.status not in {Status.PROCESSING, Status.HELD}:
        return ""
    if run.status is Status.HELD:
        return "it waits for a decision: approve or deny it"
    leased = run.claimed_until is not None and run.claimed_until >= now
    return f"attempt {run.attempt_count} is in progress" if leased else ""


def _decisions(each: EventRun, named: Mapping[str, str], status: str) -> Iterator[Offer]:
    hold = each.hold
    refused = "" if hold else f"it is {status}, and waits for no decision"
    names = {**named, "hold": hold.hold if hold else ""}
    subject = next((effect for effect in each.effects if hold and effect.name == hold.effect), None)
    doubtful = subject is not None and (subject.unrecorded or subject.state is Standing.IN_DOUBT)
    yield _form(actions.APPROVE, refused, **names)
    why = "" if doubtful else "no effect of it is in doubt"
    yield _form(actions.HAPPENED, refused or why, **names)
    yield _form(actions.DENY, refused, **names)


def _of_event(state: EventState) -> Iterator[Offer]:
    event = state.event
    erased = "its payload is erased already" if event.erased_at else ""
    yield _form(actions.ERASE, erased, event_id=event.event_id, source=event.source)
    id_ = _released(state.actions)
    query = urlencode({"source": event.source, "id": id_})
    yield Offer(
        "The rejected delivery",
        "Opens the delivery that was rejected at first, and then released as this event.",
        f"/rejected/delivery?{query}",
        refused="" if id_ else "its delivery was valid at its arrival",
    )


def _released(actions: Sequence[AuditEntry]) -> str:
    """Returns the id of the rejected delivery that an event was released from, "" for none."""
    released = (each for each in actions if each.action == AuditedAction.RELEASE)
    return next((each.request.get("rejected", "") for each in released), "")
