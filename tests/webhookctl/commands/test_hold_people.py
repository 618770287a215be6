"""`hold` where several people approve: the caller counts as one of them."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from moto import mock_aws

from tests.unit.support.approving import FINANCE, ApprovingWorld
from tests.unit.support.people import person
from tests.webhookctl.commands.stage import Cli
from webhook_inbox import Approval
from webhook_inbox.domain.model import ApprovalOutcome, Status
from webhook_inbox.handlers.approvals.approvers import person_of
from webhook_inbox.handlers.approvals.hold import ApprovalRequest
from webhook_inbox.handlers.approvals.request_row import DecisionOutcome

WHY = ("--reason", "looked at it")
APPROVE = ("hold", "approve", "evt-1", *WHY)


@pytest.fixture
def inbox() -> Iterator[ApprovingWorld]:
    """An inbox in memory whose refund two people approve; the caller is moto's."""
    with mock_aws():
        yield ApprovingWorld()


@pytest.fixture
def cli(
    inbox: ApprovingWorld, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Cli:
    found = Cli(inbox, capsys, monkeypatch)
    found.manifest = inbox.manifest
    return found


@pytest.fixture
def moto_is_asked(cli: Cli, inbox: ApprovingWorld) -> None:
    """Makes moto's caller, `user/moto`, one of the people."""
    people = {**FINANCE.people, "moto": "chat:/moto"}
    inbox.deploy(replace(inbox.manifest, approvers={"finance": replace(FINANCE, people=people)}))
    cli.manifest = inbox.manifest


@pytest.mark.usefixtures("moto_is_asked")
def test_the_caller_is_one_of_two(cli: Cli, inbox: ApprovingWorld) -> None:
    inbox.asked()
    said = cli(*APPROVE)
    assert "approved; 1 of 2 approved (" in said.out
    assert "the run stays held" in said.out
    assert inbox.status is Status.HELD

    assert "you decided before; 1 of 2 approved" in cli(*APPROVE).out
    assert inbox.says("bob") is DecisionOutcome.RECORDED
    inbox.work()
    assert (inbox.status, len(inbox.refunds)) == (Status.DONE, 1)


@pytest.mark.usefixtures("moto_is_asked")
def test_the_last_approval_sends_the_run(cli: Cli, inbox: ApprovingWorld) -> None:
    inbox.asked()
    inbox.says("ann")
    assert "approved; its run is sent" in cli(*APPROVE).out
    inbox.work()
    assert inbox.status is Status.DONE


def test_a_denial_ends_the_run(cli: Cli, inbox: ApprovingWorld) -> None:
    inbox.asked()
    inbox.says("ann")
    assert "denied; its run is skipped" in cli("hold", "deny", "evt-1", *WHY).out
    assert inbox.status is Status.SKIPPED
    assert inbox.request().state == "denied"


def test_the_list_shows_who_has_approved_and_who_was_not_told(
    cli: Cli, inbox: ApprovingWorld
) -> None:
    inbox.chat.down = {"/bob"}
    inbox.asked()
    inbox.says("ann")
    shown = cli("hold", "list").out
    assert "1 of 2 approved (ann); expires 2026-01-03T00:00:00.001Z" in shown
    assert "bob was not told, and is tried again: POST [address]: 503" in shown
    [data] = cli("hold", "list", "--json").objects
    assert data["people"] == {
        "group": "finance",
        "count": 2,
        "approved_by": ["ann"],
        "expires_at": "2026-01-03T00:00:00.001Z",
    }
    assert data["unannounced"] == {"bob": "POST [address]: 503"}


@pytest.mark.usefixtures("moto_is_asked")
def test_a_request_that_has_expired_is_not_decided(cli: Cli, inbox: ApprovingWorld) -> None:
    request = inbox.asked()
    inbox.clock.advance(seconds=(request.until - inbox.now).total_seconds())
    refused = cli(*APPROVE)
    assert refused.code == 1
    assert "the request is expired, and no decision was recorded" in refused.err
    assert inbox.request().decisions == {}


def test_a_caller_who_is_not_asked_is_no_second_person(cli: Cli, inbox: ApprovingWorld) -> None:
    inbox.asked()
    inbox.says("ann")
    refused = cli(*APPROVE)
    assert refused.code == 1
    assert (
        "arn:aws:sts::123456789012:user/moto is not one of the people who are asked" in refused.err
    )
    assert "ann, bob" in refused.err
    assert "the link in their message" in refused.err
    assert list(inbox.request().decisions) == ["ann"]
    assert inbox.status is Status.HELD


@pytest.mark.usefixtures("moto_is_asked")
def test_a_caller_whose_group_cannot_be_read_approves_nothing(
    cli: Cli, inbox: ApprovingWorld
) -> None:
    inbox.asked()
    cli.manifest = None
    assert "the people of finance, which cannot be read" in cli(*APPROVE).err
    assert inbox.request().decisions == {}


def test_a_bulk_approval_by_a_caller_who_is_not_asked_counts_nothing(
    cli: Cli, inbox: ApprovingWorld
) -> None:
    inbox.asked()
    bulk = cli("hold", "approve", "--subject", "effect:refund", "--yes", *WHY)
    assert "1 decided by named people, and this caller is not one" in bulk.out
    assert inbox.request().decisions == {}


def test_an_operator_who_is_asked_counts_once(inbox: ApprovingWorld) -> None:
    inbox.asked()
    inbox.says("ann")
    hold = ApprovalRequest(inbox.held())
    caller = person("arn:aws:sts::123456789012:assumed-role/Operator/Ann@example.com")
    decision = inbox.approvals.approve(hold, by=caller, reason="again")
    assert decision.outcome is ApprovalOutcome.REPEATED
    assert inbox.status is Status.HELD


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("arn:aws:iam::123456789012:user/ann", "ann"),
        ("arn:aws:sts::123456789012:assumed-role/Ops/Ann@example.com", "ann"),
        ("arn:aws:iam::123456789012:user/finance/ann", "ann"),
        ("ann", "ann"),
        # Each IAM user may choose the name of its federated session.
        (
            "arn:aws:sts::123456789012:federated-user/ann",
            "arn:aws:sts::123456789012:federated-user/ann",
        ),
        ("arn:aws:iam::123456789012:user/zoe", "arn:aws:iam::123456789012:user/zoe"),
        ("joanna", "joanna"),
    ],
)
def test_a_person_is_known_by_the_end_of_the_arn(name: str, expected: str) -> None:
    assert person_of(person(name), {"ann": "chat:/ann"}) == expected


@pytest.mark.usefixtures("moto_is_asked")
def test_one_approval_of_one_person_needs_no_other(inbox: ApprovingWorld, cli: Cli) -> None:
    inbox.approval = Approval(by="finance")
    inbox.asked()
    assert "approved; its run is sent" in cli(*APPROVE).out
