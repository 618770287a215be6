"""Every way in which work ends without its effect: it is listed with its reason, and replayable."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pytest

from tests.unit.support.world import GITHUB, handler
from tests.webhookctl.commands.stage import MANIFEST, Cli, Inbox
from webhook_inbox.domain.audit import Actor, Proof
from webhook_inbox.domain.errors import Held, Permanent, Skipped
from webhook_inbox.domain.manifest import DestinationSpec, HandlerSpec, Manifest, Order
from webhook_inbox.domain.model import Overview, SkipReason
from webhook_inbox.handlers.approvals.decisions import Approvals
from webhook_inbox.handlers.approvals.hold import ApprovalRequest
from webhook_inbox.handlers.current_state import current
from webhook_inbox.handlers.policies import Deny, enforce
from webhook_inbox.ingest.rejected import PER_MINUTE
from webhook_inbox.ledger.pauses import PauseRequest, pause
from webhook_inbox.replay.skip import skip

NAME = "acme.notify"
ANN = Actor("ann", Proof.LOCAL)
EVENT = "evt-1"
FORCED = ("--handler", NAME, "--force", "--reason", "needed after all")
NAMED = ("--handler", NAME)


def deployed(spec: HandlerSpec, **more: object) -> Manifest:
    return replace(MANIFEST, handlers={**MANIFEST.handlers, spec.name: spec}, **more)


def by_handler(inbox: Inbox) -> None:
    inbox.script(NAME, Skipped("a test order"))
    _run(inbox)


def by_policy(inbox: Inbox) -> None:
    denies = [Deny("over the limit")]
    inbox.behaviours[NAME] = lambda *_: enforce(denies.pop() if denies else None, {})
    _run(inbox)


def by_person(inbox: Inbox) -> None:
    inbox.script(NAME, Held("a large refund"))
    _run(inbox)
    approvals = Approvals(MANIFEST, inbox.ports)
    [run] = inbox.overview().runs
    approvals.deny(ApprovalRequest(run), by=ANN, reason="fraud")


def by_a_newer_version(inbox: Inbox) -> None:
    order = Order("latest", "id", version="version")
    inbox.deploy(deployed(handler(NAME, "refunded", order=order)))
    inbox.deliver("evt-2", type_="refunded", body=b'{"id": "o-1", "version": 2}')
    inbox.work()
    inbox.deliver(type_="refunded", body=b'{"id": "o-1", "version": 1}')
    inbox.work()


def by_a_rate(inbox: Inbox) -> None:
    crm = DestinationSpec("crm", "https://crm.example", rate=0.01, on_limit="drop")
    spec = handler(NAME, "refunded", destinations=("crm",))
    inbox.deploy(deployed(spec, destinations={"crm": crm}))
    inbox.deliver("evt-0", type_="refunded")
    _run(inbox)


def by_an_operator(inbox: Inbox) -> None:
    inbox.script(NAME, Permanent("422"))
    _run(inbox)
    [run] = inbox.overview().runs
    skip(inbox.table, inbox.randomness, run, by=ANN, reason="a test", now=inbox.now)


def by_a_missing_handler(inbox: Inbox) -> None:
    inbox.deploy(replace(MANIFEST, handlers={"acme.fulfil": MANIFEST.handlers["acme.fulfil"]}))
    _run(inbox)
    inbox.deploy(MANIFEST)


def by_an_identical_body(inbox: Inbox) -> None:
    sources = {**MANIFEST.sources, "github": replace(GITHUB, identical_body="drop")}
    inbox.deploy(replace(MANIFEST, sources=sources))
    inbox.deliver("evt-0", source="github")
    inbox.deliver(source="github")
    inbox.work()


def by_a_loop(inbox: Inbox) -> None:
    inbox.deliver(type_="refunded", headers={"x-agent-call-chain": f"planner,{NAME}"})
    inbox.work()


def by_a_deleted_object(inbox: Inbox) -> None:
    found: list[object] = [{"id": "o-1"}, None]
    inbox.behaviours[NAME] = lambda event, _: current(event, lambda _: found.pop(), key="id")
    inbox.deliver(type_="refunded", body=b'{"id": "o-1"}')
    inbox.work()


def by_an_applied_number(inbox: Inbox) -> None:
    order = Order("sequence", "id", version="version")
    inbox.deploy(deployed(handler(NAME, "refunded", order=order)))
    for event_id in ("evt-0", EVENT):
        inbox.deliver(
            event_id,
            type_="refunded",
            body=f'{{"id": "o-1", "version": 1, "e": "{event_id}"}}'.encode(),
        )
        inbox.work()


def by_a_pause(inbox: Inbox) -> None:
    pause(inbox.table, inbox.randomness, PauseRequest(NAME, ANN, "the ERP moves", inbox.now))
    _run(inbox)


def _run(inbox: Inbox) -> None:
    inbox.deliver(type_="refunded")
    inbox.work()


class Ending(NamedTuple):
    """A way in which work ends: status, the words of the list, the stored code, the replay."""

    end: Callable[[Inbox], None]
    status: str
    words: str
    code: str
    replay: tuple[str, ...] = FORCED
    handler: str = NAME


ENDINGS = [
    Ending(by_handler, "skipped", "a test order", "handler"),
    Ending(by_policy, "skipped", "denied: over the limit", "denied"),
    Ending(by_person, "skipped", "denied by ann: fraud", "denied"),
    Ending(by_a_newer_version, "skipped", "stale: version 1, and 2 was applied by evt-2", "stale"),
    Ending(by_a_rate, "skipped", "dropped: destination crm: over", "limit"),
    Ending(by_an_operator, "skipped", "skipped by ann: a test; last error", "operator"),
    Ending(by_a_missing_handler, "skipped", "no handler wanted the type 'refunded'", "", NAMED),
    Ending(
        by_an_identical_body,
        "skipped",
        "dropped: its body was received before as evt-0",
        "identical-body",
        ("--handler", "github.announce"),
        "github.announce",
    ),
    Ending(by_a_loop, "skipped", f"agent loop: planner → {NAME} → {NAME}", "loop"),
    Ending(by_a_deleted_object, "skipped", "o-1 no longer exists", "gone"),
    Ending(by_an_applied_number, "skipped", "already applied: number 1", "applied"),
    Ending(by_a_pause, "deferred", "the ERP moves", "", NAMED),
]


@pytest.mark.parametrize("ending", ENDINGS, ids=[each.end.__name__ for each in ENDINGS])
def test_it_is_listed_with_its_reason_and_replayed(cli: Cli, inbox: Inbox, ending: Ending) -> None:
    ending.end(inbox)
    listed = cli("inbox", "list", "--status", ending.status).out
    assert EVENT in listed
    assert ending.words in listed
    assert ending.words in cli("inbox", "inspect", EVENT).out
    event = cli("inbox", "inspect", EVENT, "--json").data
    reasons = [run.get("skip_reason") for run in event["runs"]]
    assert ending.code in {event.get("dropped", ""), *reasons} or not ending.code

    # The rate has a free slot again.
    inbox.clock.advance(hours=1)
    before = [name for name, event_id, _ in inbox.handled if event_id == EVENT]
    shown = cli("replay", EVENT, *ending.replay, "--yes", "--by", "ann", "--json")
    assert shown.code == 0, shown.err
    assert set(shown.data["counts"]) <= {"replayed", "added"}
    if ending.end is by_a_pause:
        cli("handlers", "resume", NAME, "--by", "ann")
        inbox.clock.advance(seconds=10)
    inbox.work()
    runs = {run.handler: run for run in _event(inbox, ending).runs}
    assert (str(runs[ending.handler].status), runs[ending.handler].skip_reason) == ("done", "")
    after = [name for name, event_id, _ in inbox.handled if event_id == EVENT]
    assert after == [*before, ending.handler]


def _event(inbox: Inbox, ending: Ending) -> Overview:
    return inbox.overview(EVENT, ending.handler.partition(".")[0])


def test_every_reason_is_in_the_table() -> None:
    assert {each.code for each in ENDINGS} >= {*SkipReason}


def test_an_ignored_type_is_counted_with_the_way_back(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver(source="github", type_="star")
    assert "star" in cli("inbox", "ignored").out
    assert "`types`" in cli("inbox", "ignored").err


def test_the_minutes_of_refused_deliveries_are_named(cli: Cli, inbox: Inbox) -> None:
    for number in range(PER_MINUTE + 1):
        inbox.deliver(f"evt-{number}", secret="wrong")
        inbox.clock.advance(seconds=0.01)
    assert "further ones may have been rejected" in cli("rejected", "list").err
