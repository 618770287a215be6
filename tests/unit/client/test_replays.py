"""`client.replays`: a plan is a fixed selection; its replay is audited first, stops and resumes."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.webhookctl.commands.conftest import _alone, cli, inbox
from tests.webhookctl.commands.stage import CALLER, Cli, Inbox, failed
from webhook_inbox.client.client import InboxClient
from webhook_inbox.client.connection import Selection
from webhook_inbox.client.errors import EndedEarly, Refused, WrongArgument
from webhook_inbox.client.replays import ReplayFilter, ReplayOptions, ReplayPlan
from webhook_inbox.domain.errors import Permanent, Unavailable
from webhook_inbox.domain.model import EventStatus, Status

__all__ = ["_alone", "cli", "inbox"]

DEAD = ReplayFilter(status=(EventStatus.DEAD_LETTER,))
SLOWLY = ReplayOptions(rate=0.2)


@pytest.fixture
def client(cli: Cli, inbox: Inbox) -> InboxClient:
    """A client that may change an inbox with three dead runs."""
    inbox.fails("acme.notify", Permanent("422: no such order"))
    for number in range(3):
        inbox.deliver(f"evt-{number}", type_="refunded")
        inbox.work()
    inbox.script("acme.notify")
    return InboxClient(cli._connect(Selection()), write=True, clock=inbox.clock)


def plan(client: InboxClient, options: ReplayOptions = SLOWLY) -> ReplayPlan:
    return client.replays.plan(DEAD, options, by=client.actor())


def audited(inbox: Inbox) -> list[Any]:
    return [row for row in inbox.rows("audit#") if row["action"] == "replay"]


def pending(inbox: Inbox) -> int:
    runs = [inbox.run(f"evt-{number}", "acme.notify") for number in range(3)]
    return sum(run.status is Status.PENDING for run in runs)


def test_a_plan_sends_nothing_and_a_reading_client_makes_it(
    client: InboxClient, inbox: Inbox
) -> None:
    reader = client.reading()
    planned = plan(reader)
    assert (planned.report.sent, planned.complete, planned.is_cut) == (3, True, False)
    with pytest.raises(Refused, match="only reads"):
        reader.replays.start(planned, by=reader.actor())
    assert (pending(inbox), audited(inbox)) == (0, [])


def test_the_audit_is_written_before_the_first_run_is_sent(
    client: InboxClient, inbox: Inbox, cli: Cli
) -> None:
    planned = plan(client)
    calls = len(cli.replay.payloads)
    inbox.plan.fail("PutItem")
    with pytest.raises(Unavailable):
        client.replays.start(planned, by=client.actor())
    assert (len(cli.replay.payloads), pending(inbox)) == (calls, 0)
    replay = client.replays.start(planned, by=client.actor("kim"))
    [row] = audited(inbox)
    assert (row["by"], row["on_behalf_of"], "counts" in row) == (CALLER, "kim", False)
    assert len(cli.replay.payloads) == calls
    assert list(replay) == [1, 1, 1]
    assert (replay.done, replay.total, replay.report.sent, replay.error) == (3, 3, 3, None)
    assert audited(inbox)[0]["counts"] == {"replayed": 3}


def test_a_stopped_replay_is_concluded_and_its_selection_sends_the_rest(
    client: InboxClient, inbox: Inbox
) -> None:
    replay = client.replays.start(plan(client), by=client.actor())
    assert next(replay) == 1
    replay.stop()
    assert list(replay) == []
    [row] = audited(inbox)
    assert (row["counts"], row["stopped"].partition(";")[0]) == ({"replayed": 1}, "interrupted")
    rest = client.replays.resume(replay.plan.selection, by=client.actor())
    assert rest.report.sent == 2
    assert sum(client.replays.start(rest, by=client.actor())) == 2
    assert {inbox.run(f"evt-{number}", "acme.notify").generation for number in range(3)} == {1}


def during_a_step(cli: Cli, act: Callable[[], None]) -> None:
    """Lets something happen after the function has sent the runs of its first step."""
    invoke = cli.replay.invoke

    def invoked(**call: Any) -> dict[str, Any]:
        answer = invoke(**call)
        if not cli.replay.payloads[-1]["dry_run"]:
            act()
        return answer

    cli.replay.invoke = invoked  # type: ignore[method-assign]


def test_a_stop_during_a_step_counts_that_step(client: InboxClient, inbox: Inbox, cli: Cli) -> None:
    replay = client.replays.start(plan(client), by=client.actor())
    during_a_step(cli, replay.stop)
    assert list(replay) == [1]
    assert audited(inbox)[0]["counts"] == {"replayed": 1}


def test_ctrl_c_during_a_step_concludes_what_was_counted(
    client: InboxClient, inbox: Inbox, cli: Cli
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    replay = client.replays.start(plan(client), by=client.actor())
    next(replay)
    during_a_step(cli, interrupt)
    with pytest.raises(KeyboardInterrupt):
        next(replay)
    replay.stop()
    assert replay.stopped
    [row] = audited(inbox)
    assert (row["counts"], row["stopped"].partition(";")[0]) == ({"replayed": 1}, "interrupted")


def test_a_canary_waits_for_its_outcome(
    client: InboxClient, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox.clock, "sleep", lambda _: inbox.work())
    planned = plan(client, ReplayOptions())
    canary = client.replays.start(planned, by=client.actor(), first=1)
    assert (list(canary), list(canary.wait())) == ([1], [1])
    assert (canary.ended, canary.report.outcomes, canary.error) == (1, {"done": 1}, None)
    inbox.clock.advance(seconds=1)
    inbox.fails("acme.notify", Permanent("422"))
    again = client.replays.start(planned, by=client.actor(), first=1)
    assert (list(again), list(again.wait())) == ([1], [1])
    assert isinstance(again.error, EndedEarly)
    assert str(planned.command()) in str(again.error)


def test_nothing_to_send_has_no_row_in_the_audit(client: InboxClient, inbox: Inbox) -> None:
    planned = client.replays.plan(ReplayFilter(event_ids=("absent",)), by=client.actor())
    replay = client.replays.start(planned, by=client.actor())
    assert (list(replay), replay.report.counts, audited(inbox)) == ([], {"missing": 1}, [])
    replay.stop()


def test_the_errors_of_a_plan(client: InboxClient, cli: Cli) -> None:
    by = client.actor()
    for wrong in (ReplayFilter(source=""), ReplayFilter(source="acne")):
        with pytest.raises(WrongArgument):
            client.replays.plan(wrong, by=by)
    with pytest.raises(WrongArgument, match="there is no selection 0123456789ab"):
        client.replays.resume("0123456789ab", by=by)
    with pytest.raises(Refused, match="does not take refunded"):
        client.replays.plan(ReplayFilter(event_ids=("evt-0",), handler="acme.fulfil"), by=by)
    cli.replay.answer = failed("Task timed out")
    with pytest.raises(EndedEarly, match="Task timed out; this call sent nothing"):
        client.replays.plan(DEAD, by=by)


@pytest.mark.parametrize(
    ("filters", "fault"),
    [
        (ReplayFilter(), "no filter is given"),
        (ReplayFilter(where="a =="), "not a JMESPath expression"),
    ],
)
def test_a_wrong_filter_is_refused_without_a_call(
    client: InboxClient, filters: ReplayFilter, fault: str
) -> None:
    function = client.target.client("lambda")
    before = list(function.payloads)
    with pytest.raises(WrongArgument, match=fault):
        client.replays.plan(filters, by=client.actor())
    assert function.payloads == before
