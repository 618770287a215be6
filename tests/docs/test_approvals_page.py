"""The code of docs/approvals.md runs, and its tables say what it does."""

from types import ModuleType

import pytest

from tests.docs.blocks import blocks
from tests.docs.pages import APPROVALS as FILE
from webhook_inbox import Context, Event, Held, Router
from webhook_inbox.testing import Fake, HandlerRun, Inbox


@pytest.fixture(scope="module")
def page() -> ModuleType:
    module = ModuleType("page_approvals")
    for block in blocks(FILE):
        if block.language == "python":
            code = compile("\n" * block.line + block.text, str(FILE), "exec")
            exec(code, vars(module))
    return module


@pytest.fixture
def crm() -> Fake:
    return Fake().handles(lambda request: {"blocked": True} if request.method == "GET" else {})


@pytest.fixture
def inbox(page: ModuleType, crm: Fake) -> Inbox:
    return Inbox(page.shop, destinations={"crm": crm})


def asked(run: HandlerRun) -> tuple[str, str, str]:
    held = run.row.held
    return held["subject"], held["reason"], held["shows"]


def test_its_own_test_passes(page: ModuleType) -> None:
    page.test_a_large_refund_waits_for_its_approval()


def test_its_test_of_two_people_passes(page: ModuleType) -> None:
    page.test_a_refund_needs_two_people()


@pytest.mark.parametrize(("cents", "status"), [(10_000, "done"), (10_001, "held")])
def test_one_effect_is_approved(inbox: Inbox, crm: Fake, cents: int, status: str) -> None:
    run = inbox.run("shop.refund", {"id": "o-1", "cents": cents})
    assert run.status == status
    if status == "held":
        assert asked(run)[0] == "effect:refund"
        assert str(cents) in asked(run)[2]
        assert crm.done == []
        assert run.approve().status == "done"
    assert len(crm.done) == 1


def test_a_handler_asks_from_a_line_on(inbox: Inbox, crm: Fake) -> None:
    run = inbox.run("shop.ship", {"id": "o-1", "customer": "c-1"})
    assert asked(run) == ("handler", "the customer is blocked", "order o-1")
    assert crm.done == []
    assert run.approve().status == "done"
    assert [request.path for request in crm.done] == ["/shipments"]


@pytest.mark.parametrize(
    ("cents", "status"), [(100_000, "done"), (100_001, "held"), (1_000_001, "skipped")]
)
def test_a_policy_decides_before_anything_happens(
    inbox: Inbox, crm: Fake, cents: int, status: str
) -> None:
    run = inbox.run("shop.pay", {"id": "p-1", "cents": cents})
    assert run.status == status
    if status == "held":
        assert asked(run) == ("policy", "over 1000 EUR", f"{cents} cents")
        assert crm.requests == []
        assert run.approve().status == "done"
    assert len(crm.done) == (status != "skipped")


@pytest.mark.parametrize(
    ("handler", "event"),
    [
        ("shop.refund", {"id": "o-1", "cents": 10_001}),
        ("shop.ship", {"id": "o-1", "customer": "c-1"}),
        ("shop.pay", {"id": "p-1", "cents": 100_001}),
    ],
)
def test_an_approval_survives_a_retry_and_a_replay_and_a_denial_skips(
    inbox: Inbox, crm: Fake, handler: str, event: dict[str, object]
) -> None:
    run = inbox.run(handler, event)
    assert (run.status, run.attempts) == ("held", 0)
    crm.refuses()
    run.approve().settle()
    assert (run.status, len(crm.done)) == ("done", 1)
    run.replay(force=True)
    assert (run.status, len(crm.done)) == ("done", 1)

    assert inbox.run(handler, {**event, "id": "other"}).deny().status == "skipped"
    assert len(crm.done) == 1


def test_a_raised_held_is_not_remembered() -> None:
    router = Router("asks")

    @router.on("*")
    def ask(event: Event, ctx: Context) -> None:
        raise Held("again?")

    run = Inbox(router).run("asks.ask", {}, event_type="a")
    assert (run.status, run.approve().status) == ("held", "held")
