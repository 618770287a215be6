"""`client.holds`: lists, decisions that are audited first, and operations that end early."""

from datetime import timedelta

import pytest

from tests.unit.support.holding import effect, hold
from tests.webhookctl.commands.conftest import _alone, cli, inbox
from tests.webhookctl.commands.stage import CALLER, Cli, Inbox
from webhook_inbox.client.client import InboxClient
from webhook_inbox.client.connection import Selection
from webhook_inbox.client.errors import NotFound, Refused, WrongArgument
from webhook_inbox.client.holds import HoldFilter
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.model import ApprovalOutcome, Status

__all__ = ["_alone", "cli", "inbox"]
WHY = "looked at it"
REFUNDS = HoldFilter(subject="effect:refund")


@pytest.fixture
def client(cli: Cli, inbox: Inbox) -> InboxClient:
    """A client that may change the inbox."""
    return InboxClient(cli._connect(Selection()), write=True, clock=inbox.clock)


def several(inbox: Inbox, count: int = 3) -> None:
    for number in range(count):
        hold(inbox, f"evt-{number}", type_="refunded")
        inbox.clock.advance(minutes=1)


def statuses(inbox: Inbox, count: int = 3) -> list[Status]:
    return [inbox.run(f"evt-{n}", "acme.notify").status for n in range(count)]


def audited(inbox: Inbox) -> list[str]:
    return [row["action"] for row in inbox.rows("audit#")]


def test_a_list_says_whether_its_limit_or_its_budget_ended_it(
    client: InboxClient, inbox: Inbox
) -> None:
    several(inbox)
    every = client.holds.list(limit=4)
    assert [each.event_id for each in every] == ["evt-0", "evt-1", "evt-2"]
    assert not every.full
    oldest = client.holds.list(limit=2)
    assert [each.event_id for each in oldest] == ["evt-0", "evt-1"]
    assert (oldest.full, oldest.partial) == (True, False)
    assert [each.event_id for each in client.holds.list(HoldFilter(handler="acme.fulfil"))] == []
    late = client.holds.list(HoldFilter(since=inbox.now - timedelta(seconds=90)))
    assert [each.event_id for each in late] == ["evt-2"]


def test_a_list_whose_budget_is_spent_is_partial(
    client: InboxClient, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    several(inbox)
    times = iter(range(1_000_000))
    monkeypatch.setattr("webhook_inbox.client.budget.monotonic", lambda: next(times) * 1000.0)
    found = client.reading(timedelta(seconds=0.6)).holds.list()
    assert len(list(found)) < 3
    assert found.partial


def test_a_reading_client_decides_nothing(client: InboxClient, inbox: Inbox) -> None:
    several(inbox, 1)
    holds, by = client.reading().holds, client.actor()
    with pytest.raises(Refused, match="only reads"):
        holds.approve("evt-0", reason=WHY, by=by)
    with pytest.raises(Refused, match="only reads"):
        holds.confirm_effect("evt-0", 7, reason=WHY, by=by)
    with pytest.raises(Refused, match="only reads"):
        holds.deny("evt-0", reason=WHY, by=by)
    with pytest.raises(Refused, match="only reads"):
        holds.approve_all(REFUNDS, limit=9, reason=WHY, by=by)
    with pytest.raises(Refused, match="only reads"):
        holds.deny_all(REFUNDS, limit=9, reason=WHY, by=by)
    assert (statuses(inbox, 1), audited(inbox)) == ([Status.HELD], [])


def test_a_decision_is_audited_before_it_is_made(client: InboxClient, inbox: Inbox) -> None:
    several(inbox, 1)
    inbox.plan.fail("PutItem")
    with pytest.raises(Unavailable):
        client.holds.approve("evt-0", reason=WHY, by=client.actor())
    assert statuses(inbox, 1) == [Status.HELD]
    decision = client.holds.approve("evt-0", reason=WHY, by=client.actor("kim"))
    assert (decision.outcome, decision.status) == (ApprovalOutcome.APPROVED, Status.PENDING)
    assert (decision.committed, decision.hold.event_id) == (None, "evt-0")
    rows = list(inbox.rows("audit#"))
    assert [(row["action"], row["by"], row["on_behalf_of"]) for row in rows] == [
        ("approve", CALLER, "kim")
    ]


def test_an_effect_that_happened_is_recorded(client: InboxClient, inbox: Inbox) -> None:
    request = hold(inbox, type_="refunded")
    with pytest.raises(Refused, match="has not been done"):
        client.holds.confirm_effect("evt-1", {"id": 7}, reason=WHY, by=client.actor())
    effect(inbox, request.run)
    with pytest.raises(Refused):
        client.holds.confirm_effect("evt-1", object(), reason=WHY, by=client.actor())
    decision = client.holds.confirm_effect("evt-1", {"id": 7}, reason=WHY, by=client.actor())
    assert (decision.outcome, decision.committed) == (ApprovalOutcome.APPROVED, True)


def test_the_kinds_of_errors(client: InboxClient, inbox: Inbox) -> None:
    several(inbox, 1)
    holds, by = client.holds, client.actor()
    with pytest.raises(NotFound, match="no run for an event evt-9"):
        holds.get("evt-9")
    with pytest.raises(WrongArgument, match="no source"):
        holds.deny("evt-0", source="odd", reason=WHY, by=by)
    with pytest.raises(Refused, match="is no current approval request"):
        holds.get("evt-0", hold="00000000")
    with pytest.raises(WrongArgument, match="one subject"):
        holds.deny_all(HoldFilter(source="acme"), limit=9, reason=WHY, by=by)
    with pytest.raises(WrongArgument, match="no handler"):
        list(holds.list(HoldFilter(handler="acme.x")))
    holds.deny("evt-0", reason=WHY, by=by)
    with pytest.raises(Refused, match="is skipped: no approval request"):
        holds.get("evt-0")


def test_an_operation_decides_while_it_is_iterated(client: InboxClient, inbox: Inbox) -> None:
    several(inbox)
    operation = client.holds.deny_all(REFUNDS, limit=9, reason=WHY, by=client.actor())
    assert (statuses(inbox), audited(inbox)) == ([Status.HELD] * 3, [])
    first = next(operation)
    assert (first.outcome, dict(operation.counts)) == ("denied", {"denied": 1})
    assert statuses(inbox).count(Status.SKIPPED) == 1
    operation.stop()
    assert (list(operation), operation.ended_by) == ([], "stopped")
    assert statuses(inbox).count(Status.HELD) == 2
    [whole] = [row for row in inbox.rows("audit#") if row["request"].get("limit")]
    assert whole["counts"] == {"denied": 1}
    rest = client.holds.deny_all(REFUNDS, limit=9, reason=WHY, by=client.actor()).complete()
    assert dict(rest.counts) == {"denied": 2}
    assert statuses(inbox) == [Status.SKIPPED] * 3


def test_an_operation_without_its_audit_decides_nothing(client: InboxClient, inbox: Inbox) -> None:
    several(inbox)
    inbox.plan.fail("PutItem")
    operation = client.holds.approve_all(REFUNDS, limit=9, reason=WHY, by=client.actor())
    with pytest.raises(Unavailable, match="0 were decided so far"):
        operation.complete()
    assert statuses(inbox) == [Status.HELD] * 3


def test_an_outage_interrupts_an_operation(client: InboxClient, inbox: Inbox) -> None:
    several(inbox)
    operation = client.holds.approve_all(REFUNDS, limit=9, reason=WHY, by=client.actor())
    next(operation)
    inbox.plan.fail("PutItem")
    with pytest.raises(Unavailable, match="1 were decided so far, and the same command continues"):
        operation.complete()
    assert statuses(inbox).count(Status.HELD) == 2
