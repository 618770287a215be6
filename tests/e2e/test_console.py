"""Each page and each action of the console in Chromium, before everything that a session runs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.driving import Console, launched, opening, serving
from tests.browser.seeded import Names, ShownInbox
from tests.e2e.inquiry import fresh
from tests.e2e.test_accepted import unique_issue
from tests.e2e.test_completed import PRESS, waits
from tests.e2e.whole_inbox import WholeInbox
from tests.unit.support import holding
from tests.waiting import eventually
from webhook_inbox.adapters.system import SystemClock
from webhook_inbox.client.connection import LOCAL
from webhook_inbox.client.target import Target
from webhook_inbox.domain.model import EventStatus, Status
from webhook_inbox.domain.secret_document import SOURCES
from webhook_inbox.handlers.approvals.hold import ApprovalRequest
from webhook_inbox.ledger.schema import run_key
from webhookctl.console import actions
from webhookctl.console.views import MENU
from webhookctl.invocation import Invocation

WORK, ANNOUNCE, HANDLER, CALLED = "lab.work", "github.announce", "agent.hand_over", "model"
REASON = "agreed in the incident"
TYPED = {"reason": REASON, "result": '{"pages": 3}', "name": "acct_12", "value": "a-new-secret"}


@dataclass
class Scene:
    """The subject of an action, and whether the action was performed."""

    subject: dict[str, str]
    is_done: Callable[[], bool]


class Stage:
    """Brings the inbox into the states that actions are for."""

    def __init__(self, inbox: WholeInbox, call: Invocation, gate: Path) -> None:
        self.inbox = inbox
        self.call = call
        self.gate = gate

    def held(self) -> Scene:
        """An event whose body arrived before under another id; approving lets it run."""
        issue, event_id = unique_issue(), fresh()
        first = fresh()
        self.inbox.deliver("github", "issues.opened", issue, event_id=first)
        self.inbox.settled("github", first)
        self.inbox.deliver("github", "issues.opened", issue, event_id=event_id)
        run = self._run(event_id)
        subject = {"event_id": event_id, "source": "github", "handler": ANNOUNCE}
        return Scene(
            {**subject, "hold": ApprovalRequest(run).id},
            lambda: self._run(event_id).status is not Status.HELD,
        )

    def doubtful(self) -> Scene:
        """A run that is held since its effect is in doubt, as a killed worker leaves it."""
        scene = self.held()
        key = run_key("github", scene.subject["event_id"], ANNOUNCE)
        row = self.inbox.table.get(key)
        assert row is not None
        doubt = {"subject": holding.SUBJECT, "fingerprint": holding.FINGERPRINT}
        self.inbox.table.put({**row, "held": {**row["held"], **doubt}})
        world: Any = SimpleNamespace(table=self.inbox.table, now=datetime.now(UTC))
        run = self._run(scene.subject["event_id"])
        holding.effect(world, run)
        scene.subject["hold"] = ApprovalRequest(run).id
        return scene

    def dead(self) -> Scene:
        event_id = self.inbox.accept("task", mood="raise", **{"while": str(self.gate)})
        self.inbox.becomes(event_id, WORK, Status.DEAD_LETTER)
        self.gate.unlink()
        subject = {"event_id": event_id, "source": "lab", "handler": WORK}
        return Scene(
            subject, lambda: self.inbox.run(event_id, WORK).status is not Status.DEAD_LETTER
        )

    def erasable(self) -> Scene:
        event_id = self.inbox.accept("task")
        self.inbox.settled("lab", event_id)
        return Scene({"event_id": event_id, "source": "lab"}, lambda: self._is_erased(event_id))

    def waiting(self) -> Scene:
        event_id = self.inbox.accept("print")
        waits(self.inbox, event_id, attempts=0)
        subject = {"event_id": event_id, "source": "lab", "handler": PRESS, "effect": "print"}
        return Scene(
            subject, lambda: self.inbox.settled("lab", event_id).status is EventStatus.DONE
        )

    def rejected(self) -> Scene:
        """A delivery that was signed with a secret which the inbox got afterwards."""
        event_id, body = fresh(), b'{"type": "paid"}'
        headers = self.inbox.signed("acme", "paid", body, event_id=event_id, secret="later")
        assert self.inbox.post("acme", body, headers).status == 401
        self.inbox.documents.set(SOURCES, "acme", "later")
        newest = self.inbox.rows("rejected#acme")[-1]["sk"].replace("#", "-")
        return Scene(
            {"source": "acme", "id": newest},
            lambda: self.inbox.overview("acme", event_id) is not None,
        )

    def secret(self) -> Scene:
        def is_set() -> bool:
            return TYPED["value"] in self.inbox.documents.read(SOURCES)["billing"]

        return Scene({"name": "billing"}, is_set)

    def handler(self, *, paused: bool) -> Scene:
        """A handler to resume, or one to pause."""

        def is_paused() -> bool:
            listed = self.call.client.handlers.list()
            return any(each.paused for each in listed if each.handler == HANDLER)

        if paused and not is_paused():
            self.call.client.handlers.pause(HANDLER, reason=REASON, by=self.call.actor(None))
        return Scene({"name": HANDLER}, lambda: is_paused() is not paused)

    def tenant(self, *, paused: bool) -> Scene:
        """A tenant to resume, or one to pause, whose name is typed."""
        name = TYPED["name"]

        def is_paused() -> bool:
            return name in {each.tenant for each in self.call.client.tenants.list()}

        if paused and not is_paused():
            self.call.client.tenants.pause(name, reason=REASON, by=self.call.actor(None))
        return Scene({"name": name} if paused else {}, lambda: is_paused() is not paused)

    def circuit(self, *, is_open: bool) -> Scene:
        """A circuit to close, or one to open."""

        def now_open() -> bool:
            listed = self.call.client.destinations.list()
            return any(each.opened_by_hand for each in listed if each.destination == CALLED)

        if is_open and not now_open():
            self.call.client.destinations.open(CALLED, reason=REASON, by=self.call.actor(None))
        return Scene({"name": CALLED}, lambda: now_open() is not is_open)

    def _run(self, event_id: str) -> Any:
        return self.inbox.runs("github", event_id)[ANNOUNCE]

    def _is_erased(self, event_id: str) -> bool:
        found = self.call.client.events.get(event_id, source="lab")
        return found.event.erased_at is not None


SCENES: dict[str, Callable[[Stage], Scene]] = {
    actions.APPROVE.path: Stage.held,
    actions.HAPPENED.path: Stage.doubtful,
    actions.DENY.path: Stage.held,
    actions.PAUSE_HANDLER.path: lambda stage: stage.handler(paused=False),
    actions.RESUME_HANDLER.path: lambda stage: stage.handler(paused=True),
    actions.PAUSE_TENANT.path: lambda stage: stage.tenant(paused=False),
    actions.RESUME_TENANT.path: lambda stage: stage.tenant(paused=True),
    actions.OPEN.path: lambda stage: stage.circuit(is_open=False),
    actions.CLOSE.path: lambda stage: stage.circuit(is_open=True),
    actions.SKIP.path: Stage.dead,
    actions.ERASE.path: Stage.erasable,
    actions.RELEASE.path: Stage.rejected,
    actions.COMPLETE.path: Stage.waiting,
    actions.SET_SECRET.path: Stage.secret,
}


@pytest.fixture(scope="module")
def console(inbox: WholeInbox) -> Iterator[Console]:
    """The console of the session."""
    target = Target.of(
        LOCAL,
        inbox.outputs,
        inbox.client,
        urls={name: f"{inbox.front_url}/webhooks/{name}" for name in inbox.manifest.sources},
        read_manifest=lambda: inbox.manifest,
        front=inbox.front_url,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(inbox.functions.parent)
        with serving(ShownInbox(target, SystemClock(), Names())) as served:
            yield served


@pytest.fixture(scope="module")
def page(console: Console) -> Iterator[Page]:
    """A page in Chromium; a fault that the browser reports fails the last test here."""
    with launched() as browser, opening(browser) as opens:
        yield opens(console)


@pytest.fixture
def stage(inbox: WholeInbox, console: Console, gate: Path) -> Stage:
    return Stage(inbox, console.inbox.call(), gate)


@pytest.mark.parametrize(("title", "path"), MENU)
def test_a_page_of_the_menu_opens(console: Console, page: Page, title: str, path: str) -> None:
    page.goto(path)
    expect(page.locator("nav a[aria-current]")).to_have_text(title)
    assert page.locator("main").inner_text()
    assert console.faults == []


def test_an_event_is_found_and_shown(inbox: WholeInbox, console: Console, page: Page) -> None:
    event_id = inbox.accept("task", note="an order")
    inbox.settled("lab", event_id)
    page.goto(f"/events?text={event_id}")
    page.get_by_role("link", name=event_id).click()
    expect(page.locator("main")).to_contain_text("attempt 1: done")
    page.get_by_text("Show headers and body").click()
    expect(page.locator(".tree")).to_contain_text("an order")


@pytest.mark.parametrize("action", actions.ACTIONS, ids=lambda each: each.path)
def test_an_action_is_performed(page: Page, stage: Stage, action: actions.FormAction) -> None:
    scene = SCENES[action.path](stage)
    page.goto(action.address(**scene.subject))
    for name in action.asks:
        page.locator(f"form.action [name={name}]").fill(TYPED[name])
    page.locator("form.action button").last.click()
    expect(page.locator(".done")).to_contain_text(f"{action.title}: done.")
    eventually(scene.is_done, what=action.title)
