"""`replay`: a dry run unless told otherwise, followed to its end."""

import getpass
import json
import re
from typing import Any

import pytest

from tests.webhookctl.commands.stage import CALLER, MANIFEST, Cli, Inbox, answered, failed
from webhook_inbox.domain.errors import Permanent
from webhook_inbox.domain.model import Status

DEAD = ("replay", "--status", "dead_letter")


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


def selection_of(cli: Cli) -> str:
    """Returns the id of the newest selection."""
    heads = [row for row in cli.inbox.rows("selection#") if row["sk"] == "head"]
    newest: dict[str, str] = max(heads, key=lambda row: row["created_at"])
    return newest["pk"].removeprefix("selection#")


def test_without_yes_nothing_is_sent(cli: Cli, dead: Inbox) -> None:
    shown = cli(*DEAD)
    assert shown.code == 0
    assert statuses(dead) == [Status.DEAD_LETTER] * 3
    assert shown.out.startswith("dry run: nothing was sent\n  3 runs found\n")
    assert "  3 would be sent again\n" in shown.out
    id_ = selection_of(cli)
    assert shown.err == (
        f"Send these 3 runs with `webhookctl replay --selection {id_} --yes`, or all that match"
        " when it runs with `webhookctl replay --status dead_letter --yes`.\n"
    )
    assert [payload["dry_run"] for payload in cli.replay.payloads] == [True]


def test_with_yes_the_runs_are_sent_and_finish(cli: Cli, dead: Inbox) -> None:
    shown = cli(*DEAD, "--yes", "--reason", "orders are back")
    assert shown.code == 0
    assert statuses(dead) == [Status.PENDING] * 3
    assert "  3 sent again\n" in shown.out
    assert dead.run("evt-1", "acme.notify").replays[0]["reason"] == "orders are back"
    dead.work()
    assert statuses(dead) == [Status.DONE] * 3


def test_the_report_as_json_is_the_functions(cli: Cli, dead: Inbox) -> None:
    shown = cli("replay", "evt-1", "--json").data
    assert (shown["dry_run"], shown["matched"], shown["counts"]) == (True, 1, {"would_replay": 1})
    assert shown["selection"] == selection_of(cli)
    assert shown["sample"] == [
        {
            "source": "acme",
            "event_id": "evt-1",
            "handler": "acme.notify",
            "status": "dead_letter",
            "last_error": "permanent: 422: no such order",
            "outcome": "would_replay",
        }
    ]
    assert shown["estimate"]["writes"] == 8


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
    assert cli(*DEAD).out.endswith("Showing 10 of 11.\n")


def test_every_filter_reaches_the_function(cli: Cli, dead: Inbox) -> None:
    cli(
        *("replay", "--source", "acme", "--type", "refund*", "--handler", "acme.notify"),
        *("--error-contains", "order", "--since", "3h"),
        *("--until", "2026-01-01T01:30:00", "--limit", "2", "--rate", "50"),
        *("--reason", "why", "--by", "ada", "--status", "dead_letter", "--status", "failed"),
        *(
            "--error-class",
            "KeyError",
            "--error-group",
            "0123456789ab",
            "--tenant",
            "t1",
            "--where",
            "total > `5`",
        ),
    )
    assert cli.replay.payloads == [
        {
            "status": ["dead_letter", "failed"],
            "error_class": "KeyError",
            "error_group": "0123456789ab",
            "tenant": "t1",
            "where": "total > `5`",
            "fix": True,
            "seconds": 20,
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
            "new_keys": False,
            "dry_run": True,
        }
    ]


def test_filters_choose(cli: Cli, dead: Inbox) -> None:
    cli("replay", "--until", "2026-01-01T00:30:00Z", "--yes")
    assert statuses(dead) == [Status.PENDING, Status.DEAD_LETTER, Status.DEAD_LETTER]


def test_several_events_may_be_named(cli: Cli, dead: Inbox) -> None:
    cli("replay", "evt-0", "evt-2", "--yes")
    assert statuses(dead) == [Status.PENDING, Status.DEAD_LETTER, Status.PENDING]


def test_the_cursor_is_followed_to_the_end(cli: Cli, dead: Inbox) -> None:
    shown = cli(*DEAD, "--rate", "0.2", "--yes")
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


def test_a_search_that_ran_out_of_time_is_continued(cli: Cli) -> None:
    report = {"dry_run": True, "matched": 2, "counts": {"would_replay": 2}, "cursor": "c"}
    report["selection"] = "0123456789ab"
    last = {**report, "matched": 3, "counts": {"would_replay": 3}, "cursor": None, "new_field": 1}
    answers = iter([answered(report), answered(last)])
    cli.replay.invoke = lambda **_: next(answers)  # type: ignore[method-assign]
    assert cli(*DEAD, "--json").data["counts"] == {"would_replay": 3}


def test_the_limit_holds_over_all_invocations(cli: Cli, dead: Inbox) -> None:
    shown = cli(*DEAD, "--rate", "0.2", "--limit", "2", "--yes")
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
    named = ("replay", "fine", "--handler", "acme.notify", "--force", "--reason", "agreed")
    shown = cli(*named, "--yes")
    assert shown.code == 0
    assert dead.run("fine", "acme.notify").status is Status.PENDING


def test_force_repeats_finished_work_of_a_list_that_was_shown(cli: Cli, dead: Inbox) -> None:
    shown = cli("replay", "--status", "done", "--since", "4h", "--force", "--reason", "agreed")
    assert "  1 of them are finished and would be repeated;" in shown.out
    command = ("--selection", selection_of(cli), "--reason", "agreed", "--force", "--yes")
    assert f"`webhookctl replay {' '.join(command)}`.\n" in shown.err
    assert cli("replay", *command).code == 0
    assert dead.run("fine", "acme.notify").status is Status.PENDING


def test_new_keys_are_a_choice_of_their_own_and_are_in_the_audit(cli: Cli, dead: Inbox) -> None:
    named = ("replay", "fine", "--handler", "acme.notify", "--force", "--reason", "restored")
    assert cli(*named, "--new-keys").code == 0
    assert dead.run("fine", "acme.notify").key_version == 0
    shown = cli(*named, "--new-keys", "--yes")
    assert shown.code == 0, shown.err
    run = dead.run("fine", "acme.notify")
    assert (run.status, run.key_version) == (Status.PENDING, 1)
    [row] = [json.loads(line) for line in cli("audit", "--json").out.splitlines()]
    assert row["forced"]
    assert row["request"]["new_keys"] == "True"
    assert row["counts"] == {"replayed": 1}


def test_new_keys_need_a_list_and_a_reason(cli: Cli) -> None:
    shown = cli("replay", "fine", "--handler", "acme.notify", "--new-keys", "--yes")
    assert (shown.code, "--new-keys needs --reason" in shown.err) == (2, True)
    shown = cli("replay", *DEAD[1:], "--new-keys", "--reason", "restored", "--yes")
    assert (shown.code, "--new-keys --yes needs EVENT_ID and --handler" in shown.err) == (2, True)


@pytest.mark.parametrize("more", [DEAD[1:], ["fine"], ["--handler", "acme.notify"]])
def test_force_without_a_list_is_a_wrong_call(cli: Cli, more: list[str]) -> None:
    shown = cli("replay", "--force", "--yes", "--reason", "agreed", *more)
    assert shown.code == 2
    assert "--force --yes needs EVENT_ID and --handler, or --selection" in shown.err
    assert cli.replay.payloads == []


@pytest.mark.parametrize("option", ["--force", "--new-keys"])
@pytest.mark.parametrize(
    "filters", ["fine", "fine --handler acme.notify", "--status done --since 9h"]
)
def test_the_commands_of_a_dry_run_have_the_reason_that_they_need(
    cli: Cli, dead: Inbox, option: str, filters: str
) -> None:
    repeats = dict.fromkeys(("--force", option))
    listed = cli("replay", *filters.split(), *repeats)
    commands = re.findall("`webhookctl (replay .*?)`", listed.err)
    assert commands
    for command in commands:
        shown = cli(*command.split())
        assert (shown.code, " sent again" in shown.out) == (0, True), shown.err
        dead.work()


def test_force_needs_a_reason(cli: Cli) -> None:
    shown = cli("replay", "fine", "--handler", "acme.notify", "--force", "--yes")
    assert (shown.code, "--force needs --reason" in shown.err) == (2, True)


def test_an_empty_filter_is_refused(cli: Cli, dead: Inbox) -> None:
    shown = cli("replay", "--yes")
    assert shown.code == 2
    assert "give at least one filter: EVENT_ID, --status" in shown.err
    assert statuses(dead) == [Status.DEAD_LETTER] * 3


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--selection", "0123456789ab", "--source", "acme"), "leave the filters out"),
        (("--status", "done"), "--status done needs --since"),
        ((*DEAD[1:], "--stop-at-failures", "often"), "is not a percentage such as 20%"),
        ((*DEAD[1:], "--stop-at-failures", "0%"), "is not a percentage such as 20%"),
    ],
)
def test_a_wrong_call_names_the_options(cli: Cli, words: tuple[str, ...], text: str) -> None:
    shown = cli("replay", *words)
    assert (shown.code, text in shown.err) == (2, True)


# -- selections


def test_a_selection_sends_the_runs_that_were_shown_and_no_others(cli: Cli, dead: Inbox) -> None:
    cli("replay", "evt-0", "evt-1")
    dead.fails("acme.notify", Permanent("422: no such order"))
    dead.deliver("later", type_="refunded")
    dead.work_once()
    shown = cli("replay", "--selection", selection_of(cli), "--yes")
    assert (shown.code, "  2 sent again\n" in shown.out) == (0, True)
    assert statuses(dead) == [Status.PENDING, Status.PENDING, Status.DEAD_LETTER]
    assert dead.run("later", "acme.notify").status is Status.DEAD_LETTER


def test_a_selection_that_is_sent_twice_sends_nothing_twice(cli: Cli, dead: Inbox) -> None:
    cli(*DEAD)
    again = ("replay", "--selection", selection_of(cli), "--yes")
    cli(*again)
    shown = cli(*again)
    assert "  3 unchanged: replayed or changed since they were listed\n" in shown.out
    assert [dead.run(f"evt-{n}", "acme.notify").generation for n in range(3)] == [1, 1, 1]


def test_an_unknown_selection_is_an_error_with_a_remedy(cli: Cli, dead: Inbox) -> None:
    shown = cli("replay", "--selection", "0123456789ab", "--yes")
    assert shown.code == 2
    assert shown.err == (
        "webhookctl: replay: selection: there is no selection 0123456789ab, or it has expired after"
        " 7 days: list the runs again, for example with `webhookctl replay --status dead_letter`\n"
    )


def test_a_canary_is_sent_alone_and_its_outcome_shown(
    cli: Cli, dead: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead.clock, "sleep", lambda _: dead.work())
    shown = cli(*DEAD, "--first", "1", "--yes")
    assert shown.code == 0
    assert statuses(dead) == [Status.DONE, Status.DEAD_LETTER, Status.DEAD_LETTER]
    assert "  the first 1 of 3 runs\n" in shown.out
    assert "  since then: 1 done\n" in shown.out
    rest = ("replay", "--selection", selection_of(cli), "--yes")
    assert shown.err.endswith(f"Continue with the rest: `webhookctl {' '.join(rest)}`.\n")
    assert cli(*rest).code == 0
    dead.work()
    assert statuses(dead) == [Status.DONE] * 3
    assert [dead.run(f"evt-{n}", "acme.notify").generation for n in range(3)] == [1, 1, 1]


def test_a_canary_that_fails_again_is_an_error_that_names_the_run(
    cli: Cli, dead: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead.fails("acme.notify", Permanent("422: still no such order"))
    monkeypatch.setattr(dead.clock, "sleep", lambda _: dead.work())
    shown = cli(*DEAD, "--first", "1", "--yes")
    assert shown.code == 1
    assert "evt-0" in shown.out
    assert "1 of the first 1 failed again. Correct the cause; `webhookctl replay" in shown.err


def test_the_outcome_of_a_canary_is_waited_for_two_minutes(cli: Cli, dead: Inbox) -> None:
    before = dead.now
    shown = cli(*DEAD, "--first", "1", "--yes")
    assert "  since then: 1 pending\n" in shown.out
    assert 120 <= (dead.now - before).total_seconds() < 130


def test_a_replay_stops_when_too_many_runs_fail_again(cli: Cli, inbox: Inbox) -> None:
    inbox.fails("acme.notify", Permanent("422: no such order"))
    for number in range(60):
        inbox.deliver(f"evt-{number}", type_="refunded")
    inbox.work()
    invoke = cli.replay.invoke

    def then_work(**parts: Any) -> Any:
        answer = invoke(**parts)
        inbox.work()
        return answer

    cli.replay.invoke = then_work  # type: ignore[method-assign]
    shown = cli(*DEAD, "--yes", "--rate", "4")
    assert shown.code == 1
    assert "  20 sent again\n" in shown.out
    assert "failure rate 100%: 20 of the latest 20 replayed runs" in shown.err
    [row] = cli("audit", "--json").objects
    assert (row["counts"], row["stopped"][:17]) == ({"replayed": 20}, "failure rate 100%")
    assert "  20 replayed, stopped  " in cli("audit").out
    inbox.script("acme.notify")
    rest = cli("replay", "--selection", selection_of(cli), "--yes", "--rate", "4")
    assert (rest.code, "  40 sent again\n" in rest.out) == (0, True)
    assert rest.err.splitlines()[0] == "processed 20 of 40"
    assert "processed 40 of 40" in rest.err
    assert {inbox.run(f"evt-{n}", "acme.notify").generation for n in range(60)} == {1}


def test_an_interrupted_replay_prints_the_command_that_resumes(cli: Cli, dead: Inbox) -> None:
    invoke = cli.replay.invoke

    def interrupted(**parts: Any) -> Any:
        if len(cli.replay.payloads) == 2:
            raise KeyboardInterrupt
        return invoke(**parts)

    cli.replay.invoke = interrupted  # type: ignore[method-assign]
    shown = cli(*DEAD, "--yes", "--rate", "0.2")
    assert shown.code == 130
    command = f"replay --selection {selection_of(cli)} --rate 0.2 --yes"
    assert f"Continue with `webhookctl {command}`." in shown.err
    [row] = cli("audit", "--json").objects
    assert (row["counts"], row["stopped"].split(";")[0]) == ({"replayed": 1}, "interrupted")
    cli.replay.invoke = invoke  # type: ignore[method-assign]
    assert "  2 sent again\n" in cli(*command.split()).out
    assert {dead.run(f"evt-{n}", "acme.notify").generation for n in range(3)} == {1}


def test_a_search_that_does_not_end_does_not_hold_the_replay_up(cli: Cli, dead: Inbox) -> None:
    """The command sends the runs found so far, then continues the search."""
    invoke, slow = cli.replay.invoke, []

    def slowly(**parts: Any) -> Any:
        payload = json.loads(parts["Payload"])
        if payload.get("fix"):
            slow.append(payload)
            dead.clock.advance(seconds=25)
            stop = {"seconds": 1} if "selection" in payload else {}
            table = dead.table
            query, calls = table.get_many, []

            def late(*keys: Any, **more: Any) -> Any:
                calls.append(keys)
                dead.clock.advance(seconds=400)
                return query(*keys, **more)

            table.get_many = late  # type: ignore[method-assign]
            try:
                return invoke(**{**parts, "Payload": json.dumps({**payload, **stop}).encode()})
            finally:
                table.get_many = query  # type: ignore[method-assign]
        return invoke(**parts)

    cli.replay.invoke = slowly  # type: ignore[method-assign]
    shown = cli(*DEAD, "--yes")
    assert shown.code == 0
    assert "at least 2 found so far" in shown.err
    assert statuses(dead) == [Status.PENDING] * 3
    assert len(slow) > 1


def test_an_unknown_event_is_an_error(cli: Cli, dead: Inbox) -> None:
    shown = cli("replay", "evt-9")
    assert shown.code == 1
    assert "  1 not found: no event with this id\n" in shown.out


def test_an_unknown_source_is_an_error_that_names_the_known_ones(cli: Cli, dead: Inbox) -> None:
    shown = cli("replay", "--source", "acne")
    assert (shown.code, shown.out) == (2, "")
    assert (
        shown.err
        == 'webhookctl: no source acne; known sources: acme, github, stripe; did you mean "acme"?\n'
    )


def test_so_is_an_unknown_handler_that_names_the_deployed_ones(cli: Cli, dead: Inbox) -> None:
    shown = cli("replay", "--handler", "acme.fulfill", "--yes")
    assert (shown.code, shown.out) == (2, "")
    names = ", ".join(MANIFEST.handlers)
    assert f"webhookctl: no handler acme.fulfill; known handlers: {names}; " in shown.err
    assert shown.err.endswith('did you mean "acme.fulfil"?\n')
    # One that has left the code may still have dead letters.
    assert cli("replay", "--handler", "acme.notify").code == 0


def test_a_handler_that_does_not_take_the_event_is_told(cli: Cli, dead: Inbox) -> None:
    shown = cli("replay", "fine", "--handler", "acme.fulfil", "--yes")
    assert shown.code == 1
    assert "acme.fulfil does not take refunded of acme, the type of fine: add it" in shown.err
    assert shown.err.endswith("name another handler; its handlers are acme.notify\n")


def test_nothing_to_replay_is_none(cli: Cli) -> None:
    shown = cli(*DEAD, "--yes")
    assert shown.code == 0
    assert shown.err == "Nothing to replay; see `webhookctl inbox list --status dead_letter`.\n"


def test_the_functions_error_is_shown_in_its_words(cli: Cli) -> None:
    cli.replay.answer = failed("dynamodb Query: ThrottlingException")
    shown = cli(*DEAD, "--yes")
    assert (shown.code, shown.out) == (1, "")
    assert shown.err.startswith(
        "webhookctl: the replay function failed: dynamodb Query: ThrottlingException; this call"
        " sent nothing"
    )


def test_a_call_that_failed_while_it_sent_says_what_stays(cli: Cli, dead: Inbox) -> None:
    cli(*DEAD)
    invoke, told = cli.replay.invoke, failed("Task timed out")
    cli.replay.invoke = lambda **call: (  # type: ignore[method-assign]
        invoke(**call) if b'"dry_run": true' in call["Payload"] else told
    )
    shown = cli("replay", "--selection", selection_of(cli), "--yes")
    assert "runs sent so far stay sent, and no run of a selection is sent twice" in shown.err


def test_a_page_that_failed_is_repeated_from_its_cursor(cli: Cli, dead: Inbox) -> None:
    dead.plan.fail("UpdateItem", times=1)
    shown = cli(*DEAD, "--yes", "--rate", "15")
    assert shown.code == 0
    assert "  3 sent again\n" in shown.out
    assert statuses(dead) == [Status.PENDING] * 3


def test_a_replay_that_cannot_go_on_prints_the_command_that_resumes(cli: Cli, dead: Inbox) -> None:
    # Two runs of the first page are replayed; after that the ledger takes no update.
    dead.plan.fail("UpdateItem", skip=2, times=5)
    shown = cli(*DEAD, "--yes", "--limit", "3")
    assert shown.code == 1
    assert "  2 sent again\n" in shown.out
    assert "the replay stopped: " in shown.err
    command = f"replay --selection {selection_of(cli)} --yes"
    assert f"`webhookctl {command}` continues with the rest" in shown.err
    dead.plan.heal()
    rest = cli(*command.split())
    assert (rest.code, "  1 sent again\n" in rest.out) == (0, True)
    assert statuses(dead) == [Status.PENDING] * 3


def test_a_function_that_dies_without_a_word_points_at_its_log(cli: Cli) -> None:
    cli.replay.answer = {**answered(None), "FunctionError": "Unhandled"}
    assert "the replay function failed: see its log" in cli(*DEAD).err


def test_a_faulty_request_is_told_by_the_function(cli: Cli) -> None:
    shown = cli(*DEAD, "--reason", "x" * 501)
    assert shown.code == 2
    assert "reason: String should have at most 500 characters" in shown.err


def test_who_asks_is_the_callers_identity_in_aws(cli: Cli) -> None:
    cli(*DEAD)
    assert cli.replay.payloads[0]["requested_by"].startswith("arn:aws:sts::123456789012:")


def test_who_asks_is_the_user_of_this_machine(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.local = True
    monkeypatch.setattr(getpass, "getuser", lambda: "ada")
    cli(*DEAD)
    assert cli.replay.payloads[0]["requested_by"] == "ada"


def with_a_failing_search(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the first call of a search find a part, and all later ones fail."""
    invoke = cli.replay.invoke

    def fails(**call: Any) -> dict[str, Any]:
        asked = json.loads(call["Payload"])
        assert len(cli.replay.payloads) < 50
        if asked.get("fix") and asked.get("selection"):
            return failed("Task timed out")
        found = invoke(**call)
        if not asked.get("fix"):
            return found
        report = json.loads(found["Payload"].read())
        return answered({**report, "cursor": report["position"]})

    monkeypatch.setattr(cli.replay, "invoke", fails)


def test_a_dry_run_without_an_end_does_not_say_that_nothing_matches(
    cli: Cli, dead: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_a_failing_search(cli, monkeypatch)
    shown = cli("replay", "--type", "none")
    assert "at least 0 runs found" in shown.out
    assert "Nothing to replay" not in shown.err
    assert "The search has not ended (the replay function failed: Task timed out)" in shown.err


def test_a_search_that_keeps_failing_ends_the_command(
    cli: Cli, dead: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_a_failing_search(cli, monkeypatch)
    shown = cli(*DEAD, "--yes")
    assert shown.code == 1
    assert statuses(dead) == [Status.PENDING] * 3
    assert "the search failed: the replay function failed: Task timed out." in shown.err
    assert "`webhookctl replay --status dead_letter --yes` continues" in shown.err
