"""`replay`: a dry run unless told otherwise, followed to its end."""

import getpass
from collections.abc import Iterator

import pytest
from moto import mock_aws

from tests.webhookctl.commands.stage import CALLER, MANIFEST, Cli, Inbox, answered, failed
from webhook_inbox.domain.errors import Permanent
from webhook_inbox.domain.model import Status


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    """An inbox in memory, and moto for who asks: other commands' tests have one in DynamoDB."""
    with mock_aws():
        yield Inbox()


@pytest.fixture
def dead(inbox: Inbox) -> Inbox:
    """An inbox with three dead letters and one finished event."""
    inbox.fails("acme.notify", Permanent("422: no such order"))
    for number in range(3):
        inbox.deliver(f"evt-{number}", type_="refunded")
        inbox.clock.advance(hours=1)
    inbox.work_once(), inbox.work_once(), inbox.work_once()
    inbox.script("acme.notify")
    inbox.deliver("fine", type_="refunded")
    inbox.work()
    return inbox


def statuses(inbox: Inbox) -> list[Status]:
    return [inbox.run(f"evt-{n}", "acme.notify").status for n in range(3)]


def test_without_yes_nothing_is_sent(cli: Cli, dead: Inbox) -> None:
    shown = cli("replay")
    assert shown.code == 0
    assert statuses(dead) == [Status.DEAD_LETTER] * 3
    assert shown.out.startswith("dry run: nothing was sent\n  3 runs found\n")
    assert "  3 would be sent again\n" in shown.out
    assert shown.err == "Add --yes to send them.\n"
    assert [payload["dry_run"] for payload in cli.replay.payloads] == [True]


def test_with_yes_the_runs_are_sent_and_finish(cli: Cli, dead: Inbox) -> None:
    shown = cli("replay", "--yes", "--reason", "orders are back")
    assert shown.code == 0
    assert statuses(dead) == [Status.PENDING] * 3
    assert "  3 sent again\n" in shown.out
    assert dead.run("evt-1", "acme.notify").replays[0]["reason"] == "orders are back"
    dead.work()
    assert statuses(dead) == [Status.DONE] * 3


def test_the_report_as_json_is_the_functions(cli: Cli, dead: Inbox) -> None:
    shown = cli("replay", "evt-1", "--json")
    assert shown.data == {
        "dry_run": True,
        "matched": 1,
        "counts": {"would_replay": 1},
        "sample": [
            {
                "source": "acme",
                "event_id": "evt-1",
                "handler": "acme.notify",
                "status": "dead_letter",
                "last_error": "permanent: 422: no such order",
                "outcome": "would_replay",
            }
        ],
        "cursor": None,
        "dlq_removed": 0,
        "failed": "",
    }


def test_a_table_shows_which_runs(cli: Cli, dead: Inbox) -> None:
    shown = cli("replay", "evt-1").out
    heading, line = shown.splitlines()[-2:]
    assert heading.split() == ["SOURCE", "EVENT_ID", "HANDLER", "STATUS", "OUTCOME", "LAST_ERROR"]
    assert line.split()[:4] == ["acme", "evt-1", "acme.notify", "dead_letter"]
    assert line.endswith("would be sent again  permanent: 422: no such order")


def test_a_table_that_is_not_all_says_so(cli: Cli, inbox: Inbox) -> None:
    inbox.fails("acme.notify", Permanent("422: no such order"))
    for number in range(11):
        inbox.deliver(f"evt-{number}", type_="refunded")
    inbox.work()
    assert cli("replay").out.endswith("Showing 10 of 11.\n")


def test_every_filter_reaches_the_function(cli: Cli, dead: Inbox) -> None:
    cli(
        *("replay", "--source", "acme", "--type", "refund*", "--handler", "acme.notify"),
        *("--error-contains", "order", "--since", "3h"),
        *("--until", "2026-01-01T01:30:00", "--limit", "2", "--rate", "50"),
        *("--reason", "why", "--by", "ada"),
    )
    assert cli.replay.payloads == [
        {
            "source": "acme",
            "type": "refund*",
            "handler": "acme.notify",
            "error_contains": "order",
            "received_after": "2026-01-01T00:00:00.004Z",
            "received_before": "2026-01-01T01:30:00.000Z",
            "limit": 2,
            "rate_per_second": 50.0,
            "reason": "why",
            "requested_by": CALLER,
            "on_behalf_of": "ada",
            "force": False,
            "dry_run": True,
            "cursor": None,
        }
    ]


def test_filters_choose(cli: Cli, dead: Inbox) -> None:
    cli("replay", "--until", "2026-01-01T00:30:00Z", "--yes")
    assert statuses(dead) == [Status.PENDING, Status.DEAD_LETTER, Status.DEAD_LETTER]


def test_several_events_may_be_named(cli: Cli, dead: Inbox) -> None:
    cli("replay", "evt-0", "evt-2", "--yes")
    assert statuses(dead) == [Status.PENDING, Status.DEAD_LETTER, Status.PENDING]


def test_the_cursor_is_followed_to_the_end(cli: Cli, dead: Inbox) -> None:
    shown = cli("replay", "--rate", "0.2", "--yes")
    replays = [payload for payload in cli.replay.payloads if not payload["dry_run"]]
    assert [payload["limit"] for payload in replays] == [1, 1, 1]
    assert replays[0]["cursor"] is None
    assert len({payload["cursor"] for payload in replays}) == 3
    assert statuses(dead) == [Status.PENDING] * 3
    assert shown.err.splitlines()[:3] == [f"processed {n} of 3" for n in (1, 2, 3)]


def test_the_runs_of_a_named_event_are_stepped_through_once_each(cli: Cli, inbox: Inbox) -> None:
    inbox.fails("acme.notify", Permanent("422"))
    inbox.fails("acme.fulfil", Permanent("422"))
    inbox.deliver("two-runs")
    inbox.work()
    shown = cli("replay", "two-runs", "--rate", "0.2", "--yes", "--json")
    assert shown.data["counts"] == {"replayed": 2}
    assert [inbox.run("two-runs", name).generation for name in ("acme.fulfil", "acme.notify")] == [
        1,
        1,
    ]


def test_an_invocation_that_ran_out_of_time_is_followed_too(cli: Cli) -> None:
    report = {"dry_run": True, "matched": 2, "counts": {"replayed": 2}, "sample": [], "cursor": "c"}
    last = {**report, "matched": 1, "counts": {"replayed": 1}, "cursor": None, "new_field": 1}
    answers = iter([answered(report), answered(last)])
    cli.replay.invoke = lambda **_: next(answers)  # type: ignore[method-assign]
    assert cli("replay", "--json").data["counts"] == {"replayed": 3}


def test_the_limit_holds_over_all_invocations(cli: Cli, dead: Inbox) -> None:
    shown = cli("replay", "--rate", "0.2", "--limit", "2", "--yes")
    assert sum(status is Status.PENDING for status in statuses(dead)) == 2
    assert "More than 2 match: raise --limit." in shown.err


def test_what_was_left_alone_is_told(cli: Cli, dead: Inbox) -> None:
    shown = cli("replay", "fine", "evt-0", "--yes")
    assert "  1 sent again\n" in shown.out
    assert "  1 unchanged: finished" in shown.out


def test_where_nothing_is_sent_nothing_says_replayed(cli: Cli, dead: Inbox) -> None:
    shown = cli("replay", "fine", "--yes")
    assert shown.out.startswith("nothing was sent\n  1 run found\n")
    assert "replayed" not in shown.out + shown.err


def test_force_repeats_finished_work_that_is_named(cli: Cli, dead: Inbox) -> None:
    shown = cli("replay", "fine", "--handler", "acme.notify", "--force", "--yes")
    assert shown.code == 0
    assert dead.run("fine", "acme.notify").status is Status.PENDING


@pytest.mark.parametrize("more", [[], ["fine"], ["--handler", "acme.notify"]])
def test_force_without_names_is_a_wrong_call(cli: Cli, more: list[str]) -> None:
    shown = cli("replay", "--force", *more)
    assert shown.code == 2
    assert "--force needs EVENT_ID and --handler" in shown.err
    assert cli.replay.payloads == []


def test_an_unknown_event_is_an_error(cli: Cli, dead: Inbox) -> None:
    shown = cli("replay", "evt-9")
    assert shown.code == 1
    assert "  1 not found: no event with this id\n" in shown.out


def test_an_unknown_source_is_an_error_that_names_the_known_ones(cli: Cli, dead: Inbox) -> None:
    shown = cli("replay", "--source", "acne")
    assert (shown.code, shown.out) == (1, "")
    assert (
        shown.err
        == 'webhookctl: no source acne; known sources: acme, github, stripe; did you mean "acme"?\n'
    )


def test_so_is_an_unknown_handler_that_names_the_deployed_ones(cli: Cli, dead: Inbox) -> None:
    shown = cli("replay", "--handler", "acme.fulfill", "--yes")
    assert (shown.code, shown.out) == (1, "")
    names = ", ".join(MANIFEST.handlers)
    assert f"webhookctl: no handler acme.fulfill; known handlers: {names}; " in shown.err
    assert shown.err.endswith('did you mean "acme.fulfil"?\n')
    # One that has left the code may still have dead letters.
    assert cli("replay", "--handler", "acme.notify").code == 0


def test_nothing_to_replay_is_none(cli: Cli) -> None:
    shown = cli("replay", "--yes")
    assert shown.code == 0
    assert shown.err == "Nothing to replay; see `webhookctl inbox list --status dead_letter`.\n"


def test_the_functions_error_is_shown_in_its_words(cli: Cli) -> None:
    cli.replay.answer = failed("dynamodb Query: ThrottlingException")
    shown = cli("replay", "--yes")
    assert (shown.code, shown.out) == (1, "")
    assert shown.err.startswith(
        "webhookctl: the replay function failed: dynamodb Query: ThrottlingException; runs sent"
    )


def test_a_page_that_failed_is_repeated_from_its_cursor(cli: Cli, dead: Inbox) -> None:
    dead.plan.fail("UpdateItem", times=1)
    shown = cli("replay", "--yes", "--rate", "15")
    assert shown.code == 0
    assert "  3 sent again\n" in shown.out
    assert statuses(dead) == [Status.PENDING] * 3


def test_a_replay_that_cannot_go_on_prints_its_cursor(cli: Cli, dead: Inbox) -> None:
    # Two runs of the first page are replayed; after that the ledger takes no update.
    dead.plan.fail("UpdateItem", skip=2, times=5)
    shown = cli("replay", "--yes", "--limit", "3")
    assert shown.code == 1
    assert "  2 sent again\n" in shown.out
    assert "the replay stopped: " in shown.err
    _, _, after = shown.err.partition("--cursor ")
    dead.plan.heal()
    rest = cli("replay", "--yes", "--cursor", after.split()[0])
    assert (rest.code, "  1 sent again\n" in rest.out) == (0, True)
    assert statuses(dead) == [Status.PENDING] * 3


def test_a_function_that_dies_without_a_word_points_at_its_log(cli: Cli) -> None:
    cli.replay.answer = {**answered(None), "FunctionError": "Unhandled"}
    assert "the replay function failed: see its log" in cli("replay").err


def test_a_faulty_request_is_told_by_the_function(cli: Cli) -> None:
    shown = cli("replay", "--reason", "x" * 501)
    assert shown.code == 1
    assert "reason: String should have at most 500 characters" in shown.err


def test_who_asks_is_the_callers_identity_in_aws(cli: Cli) -> None:
    cli("replay")
    assert cli.replay.payloads[0]["requested_by"].startswith("arn:aws:sts::123456789012:")


def test_who_asks_is_the_user_of_this_machine(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.local = True
    monkeypatch.setattr(getpass, "getuser", lambda: "ada")
    cli("replay")
    assert cli.replay.payloads[0]["requested_by"] == "ada"
