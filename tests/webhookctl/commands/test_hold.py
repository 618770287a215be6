"""`hold`: what waits for approval, and the person's word."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.unit.support.holding import FINGERPRINT, SUBJECT, committed, effect, hold, hold_next
from tests.webhookctl.commands.stage import KIM, Cli, Inbox
from webhook_inbox.adapters.aws.dynamodb import DynamoTable
from webhook_inbox.domain.conditions import Condition
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.ports import Change, Item, Key
from webhook_inbox.handlers.effects.journal import decode

WHY = ("--reason", "looked at it", "--by", "kim")


def row(inbox: Inbox, key: Key) -> Item:
    found = inbox.table.get(key)
    assert found is not None
    return found


# -- list


def test_what_waits_is_listed_with_what_it_is_about(cli: Cli, inbox: Inbox) -> None:
    asked = hold(inbox)
    [shown] = cli("hold", "list", "--json").objects
    assert shown == {
        "source": "acme",
        "event_id": "evt-1",
        "handler": asked.run.handler,
        "type": "paid",
        "hold": asked.id,
        "subject": SUBJECT,
        "reason": "it is unknown whether it happened",
        "shows": '{"amount": 42}',
        "fingerprint": FINGERPRINT,
        "held_at": "2026-01-01T00:00:00.001Z",
    }


def test_what_waits_longest_comes_first(cli: Cli, inbox: Inbox) -> None:
    hold(inbox, "evt-1", type_="refunded")
    inbox.clock.advance(minutes=1)
    hold(inbox, "evt-2", type_="refunded")
    shown = cli("hold", "list", "--json").objects
    assert [each["event_id"] for each in shown] == ["evt-1", "evt-2"]


def test_a_limit_keeps_those_that_wait_longest(cli: Cli, inbox: Inbox) -> None:
    for number in range(4):
        hold(inbox, f"evt-{number}", type_="refunded")
        inbox.clock.advance(minutes=1)
    shown = cli("hold", "list", "--limit", "2")
    assert [word for word in shown.out.split() if word.startswith("evt-")] == ["evt-0", "evt-1"]
    assert "Showing the oldest 2" in shown.err


def test_for_people_it_is_a_table_that_says_how_to_decide(cli: Cli, inbox: Inbox) -> None:
    asked = hold(inbox)
    shown = cli("--stack", "Orders", "hold", "list")
    assert re.search(rf"acme +evt-1 +{asked.run.handler} +{asked.id} +effect:refund", shown.out)
    assert "decide with `webhookctl --stack Orders hold approve EVENT_ID --hold ID" in shown.err


def test_a_source_and_a_handler_narrow_it_down(cli: Cli, inbox: Inbox) -> None:
    hold(inbox, "evt-1", source="github")
    hold(inbox, "evt-2", type_="refunded")
    assert len(cli("hold", "list", "--json").objects) == 2
    [one] = cli("hold", "list", "--json", "--source", "github").objects
    [two] = cli("hold", "list", "--json", "--handler", "acme.notify").objects
    assert (one["event_id"], two["event_id"]) == ("evt-1", "evt-2")


def test_nothing_that_waits_is_said(cli: Cli) -> None:
    shown = cli("hold", "list")
    assert (shown.code, shown.out) == (0, "")
    assert shown.err == "No runs wait for approval.\n"


def test_an_unknown_source_is_told(cli: Cli) -> None:
    shown = cli("hold", "list", "--source", "acne")
    assert (shown.code, shown.err) == (
        2,
        'webhookctl: no source acne; known sources: acme, github, stripe; did you mean "acme"?\n',
    )


# -- approve and deny


def held(inbox: Inbox, event_id: str = "evt-1") -> str:
    """Brings the only run of an event to be held, and returns the hold's id."""
    return hold(inbox, event_id, type_="refunded").id


def notify(inbox: Inbox, event_id: str = "evt-1") -> Status:
    return inbox.run(event_id, "acme.notify").status


def test_a_run_whose_lane_is_unknown_goes_on_within_minutes(cli: Cli, inbox: Inbox) -> None:
    held(inbox)
    cli.manifest = None
    shown = cli("hold", "approve", "evt-1", *WHY)
    assert shown.code == 0
    assert shown.out == (
        "acme.notify of evt-1, held for effect:refund: approved; the reconciler sends its run"
        " within two minutes\n"
    )
    assert "Follow it with `webhookctl inbox inspect evt-1 --source acme`" in shown.err
    inbox.pass_minutes(1)
    assert notify(inbox) is Status.DONE


def test_an_approved_run_is_sent_at_once(cli: Cli, inbox: Inbox) -> None:
    hold(inbox)
    shown = cli("hold", "approve", "evt-1", "--handler", "acme.fulfil", *WHY)
    assert "approved; its run is sent" in shown.out
    inbox.work()
    assert inbox.run().status is Status.DONE


def test_who_approved_is_the_caller_unless_told(cli: Cli, inbox: Inbox) -> None:
    held(inbox)
    cli("hold", "approve", "evt-1", "--reason", "looked at it")
    word = inbox.run(handler="acme.notify").approvals[SUBJECT]
    assert word["by"].startswith("arn:aws:sts::123456789012:")
    assert word["reason"] == "looked at it"


def test_a_decision_as_json_says_what_came_of_it(cli: Cli, inbox: Inbox) -> None:
    id_ = held(inbox)
    shown = cli("hold", "deny", "evt-1", "--json", *WHY).data
    assert (shown["hold"], shown["outcome"], shown["status"]) == (id_, "denied", "skipped")
    assert (shown["event_id"], shown["handler"]) == ("evt-1", "acme.notify")
    assert shown["committed"] is None


def test_a_denied_run_is_finished(cli: Cli, inbox: Inbox) -> None:
    held(inbox)
    shown = cli("hold", "deny", "evt-1", *WHY)
    assert "denied; its run is skipped" in shown.out
    run = inbox.run(handler="acme.notify")
    assert (run.status, run.last_error) == (Status.SKIPPED, f"denied by {KIM}: looked at it")
    assert cli("hold", "list").out == ""


@pytest.mark.parametrize("verb", ["approve", "deny"])
def test_a_reason_is_asked_for(cli: Cli, inbox: Inbox, verb: str) -> None:
    held(inbox)
    shown = cli("hold", verb, "evt-1")
    assert shown.code == 2
    assert "--reason" in shown.err
    assert notify(inbox) is Status.HELD


@pytest.mark.parametrize("verb", ["approve", "deny"])
def test_the_id_that_was_seen_decides_about_that_hold(cli: Cli, inbox: Inbox, verb: str) -> None:
    id_ = held(inbox)
    assert cli("hold", verb, "evt-1", "--hold", id_, *WHY).code == 0
    assert notify(inbox) is not Status.HELD


@pytest.mark.parametrize("verb", ["approve", "deny"])
def test_a_run_that_is_held_anew_is_not_decided_by_what_was_seen(
    cli: Cli, inbox: Inbox, verb: str
) -> None:
    id_ = held(inbox)
    inbox.replay(event_ids=["evt-1"])
    again = hold_next(inbox, subject="policy", shows="amount 99")
    shown = cli("hold", verb, "evt-1", "--hold", id_, *WHY)
    assert shown.code == 1
    assert shown.err == (
        f"webhookctl: {id_} is no current approval request of evt-1: acme.notify of acme is held"
        f" for policy as {again.id} (amount 99). Inspect the event and decide again\n"
    )
    assert notify(inbox) is Status.HELD


def test_a_run_that_is_not_held_says_how_it_stands(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver(type_="refunded")
    inbox.work()
    shown = cli("hold", "approve", "evt-1", *WHY)
    assert shown.code == 1
    assert shown.err == (
        "webhookctl: acme.notify of acme is done: no approval request; see `webhookctl hold list`\n"
    )


@pytest.mark.moto
def test_a_decision_that_came_second_says_how_the_run_stands(
    cli: Cli, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    held(inbox)
    update, once = DynamoTable.update, iter([True])

    def meanwhile(
        self: DynamoTable, key: Key, change: Change, *, when: Condition | None = None
    ) -> Item:
        if next(once, False):
            inbox.replay(event_ids=["evt-1"])
        return update(self, key, change, when=when)

    monkeypatch.setattr(DynamoTable, "update", meanwhile)
    shown = cli("hold", "approve", "evt-1", *WHY)
    assert shown.code == 1
    assert shown.err == (
        "webhookctl: the run changed meanwhile, and no decision was recorded:"
        " acme.notify of acme is pending\n"
    )


def test_an_expired_event_cannot_be_decided(cli: Cli, inbox: Inbox) -> None:
    held(inbox)
    inbox.clock.advance(days=36)
    shown = cli("hold", "approve", "evt-1", *WHY)
    assert shown.code == 1
    assert "no run for an event evt-1" in shown.err


def test_of_several_held_runs_one_is_chosen(cli: Cli, inbox: Inbox) -> None:
    hold(inbox)
    hold_next(inbox)
    shown = cli("hold", "deny", "evt-1", *WHY)
    assert shown.code == 1
    assert shown.err.endswith(": choose one with --handler, --source or --hold\n")
    assert "acme.fulfil of acme is held for effect:refund as" in shown.err
    assert cli("hold", "deny", "evt-1", "--handler", "acme.fulfil", *WHY).code == 0
    assert cli("hold", "deny", "evt-1", *WHY).code == 0
    assert {run.status for run in inbox.overview().runs} == {Status.SKIPPED}


def test_an_unknown_event_is_told(cli: Cli) -> None:
    shown = cli("hold", "approve", "evt-9", *WHY)
    assert (shown.code, shown.err) == (
        1,
        "webhookctl: no run for an event evt-9: see `webhookctl hold list`\n",
    )


# -- it happened


def test_an_effect_that_happened_is_recorded_with_its_result(cli: Cli, inbox: Inbox) -> None:
    asked = hold(inbox, type_="refunded")
    key = effect(inbox, asked.run)
    shown = cli("hold", "approve", "evt-1", "--happened", "--result", '{"id": "re_1"}', *WHY)
    assert shown.code == 0
    found = row(inbox, key)
    assert (found["status"], decode(found["result"])) == ("committed", {"id": "re_1"})
    assert found["word"] == {"by": KIM, "reason": "looked at it"}


def test_without_a_result_it_is_nothing(cli: Cli, inbox: Inbox) -> None:
    asked = hold(inbox, type_="refunded")
    key = effect(inbox, asked.run)
    cli("hold", "approve", "evt-1", "--happened", *WHY)
    assert decode(row(inbox, key)["result"]) is None


def test_a_result_without_happened_is_a_slip(cli: Cli, inbox: Inbox) -> None:
    held(inbox)
    shown = cli("hold", "approve", "evt-1", "--result", "{}", *WHY)
    assert shown.code == 2
    assert "--result needs --happened" in shown.err
    assert notify(inbox) is Status.HELD


def test_a_result_that_is_no_json_is_told(cli: Cli, inbox: Inbox) -> None:
    held(inbox)
    shown = cli("hold", "approve", "evt-1", "--happened", "--result", "{id: 1}", *WHY)
    assert shown.code == 2
    assert "--result is not JSON" in shown.err
    assert notify(inbox) is Status.HELD


def test_what_is_not_in_doubt_cannot_have_happened(cli: Cli, inbox: Inbox) -> None:
    held(inbox)
    shown = cli("hold", "approve", "evt-1", "--happened", *WHY)
    assert shown.code == 1
    assert shown.err == ("webhookctl: the effect refund has not been done: approve or deny it\n")
    assert notify(inbox) is Status.HELD


# -- what inspect says of it


def test_inspect_shows_what_a_run_is_held_for_and_how_to_answer(cli: Cli, inbox: Inbox) -> None:
    asked = hold(inbox, type_="refunded")
    effect(inbox, asked.run)
    shown = cli("inbox", "inspect", "evt-1", "--json").data
    [run] = shown["runs"]
    assert run["status"] == "held"
    assert run["held"] == {
        "hold": asked.id,
        "subject": SUBJECT,
        "reason": "it is unknown whether it happened",
        "shows": '{"amount": 42}',
        "fingerprint": FINGERPRINT,
        "held_at": "2026-01-01T00:00:00.001Z",
    }
    command = f"webhookctl hold approve evt-1 --source acme --handler acme.notify --hold {asked.id}"
    assert command in shown["next_action"]
    people = cli("inbox", "inspect", "evt-1").out
    assert f"    {asked.id}  effect:refund  since 2026-01-01T00:00:00.001Z" in people
    assert '    shows {"amount": 42}' in people


def test_the_command_that_inspect_names_works_as_it_stands(cli: Cli, inbox: Inbox) -> None:
    asked = hold(inbox, type_="refunded")
    effect(inbox, asked.run)
    words = cli("inbox", "inspect", "evt-1", "--json").data["next_action"]
    found = re.search(r"as in a run that is done: webhookctl (.*?) --result JSON", words)
    assert found is not None
    assert cli(*found[1].split()).code == 0
    assert notify(inbox) is Status.PENDING


def test_inspect_shows_who_approved_and_why(cli: Cli, inbox: Inbox) -> None:
    held(inbox)
    cli("hold", "approve", "evt-1", *WHY)
    [run] = cli("inbox", "inspect", "evt-1", "--json").data["runs"]
    assert run["approvals"] == {
        SUBJECT: {"by": KIM, "reason": "looked at it", "at": "2026-01-01T00:00:00.001Z"}
    }
    people = cli("inbox", "inspect", "evt-1").out
    assert f"    2026-01-01T00:00:00.001Z  effect:refund by {KIM}: looked at it" in people


@pytest.mark.moto
def test_a_commit_by_hand_shows_whose_word_it_is(cli: Cli, inbox: Inbox) -> None:
    asked = hold(inbox, type_="refunded")
    effect(inbox, asked.run)
    cli("hold", "approve", "evt-1", "--happened", *WHY)
    [run] = cli("inbox", "inspect", "evt-1", "--json").data["runs"]
    [shown] = run["effects"]
    assert (shown["state"], shown["found_by"]) == ("committed", "person")
    assert (shown["told_by"], shown["reason"]) == (KIM, "looked at it")
    assert f"by {KIM}  because looked at it" in cli("inbox", "inspect", "evt-1").out


def test_a_result_that_a_worker_recorded_late_is_not_overwritten(cli: Cli, inbox: Inbox) -> None:
    asked = hold(inbox, type_="refunded")
    key = effect(inbox, asked.run, **committed("the worker's"))
    shown = cli("hold", "approve", "evt-1", "--happened", "--result", '"guessed"', *WHY)
    assert shown.code == 0
    assert "The effect was already committed; its recorded result is kept." in shown.err
    assert decode(row(inbox, key)["result"]) == "the worker's"


# -- several at once


BODY = b'{"action": "opened", "member": "ann"}'
IDENTICAL = ("--subject", "identical-body")


def copies(inbox: Inbox, *event_ids: str) -> None:
    """Delivers one body under the id `first` and under these."""
    for event_id in ("first", *event_ids):
        inbox.deliver(event_id, source="github", body=BODY)
    inbox.work()


def statuses(inbox: Inbox, *event_ids: str) -> list[str]:
    return [str(inbox.overview(event_id, "github").status) for event_id in event_ids]


def test_an_identical_body_is_listed_with_the_first_event(cli: Cli, inbox: Inbox) -> None:
    copies(inbox, "second")
    [shown] = cli("hold", "list", *IDENTICAL, "--json").objects
    assert (shown["event_id"], shown["identical_to"]) == ("second", "first")
    inspected = cli("inbox", "inspect", "second", "--source", "github")
    assert "body identical to first" in inspected.out
    assert "inbox inspect first --source github" in inspected.out
    assert "hold approve second --source github" in inspected.out


def test_an_event_of_an_unreadable_type_is_listed_inspected_and_decided(
    cli: Cli, inbox: Inbox
) -> None:
    inbox.deliver("cut", source="github", body=BODY[:10])
    [shown] = cli("hold", "list", "--subject", "unreadable", "--json").objects
    assert (shown["event_id"], shown["handler"]) == ("cut", "github.announce")
    assert "its type cannot be read" in cli("inbox", "list", "--status", "held").out
    inspected = cli("inbox", "inspect", "cut", "--source", "github").out
    assert "type issues (unreadable)" in inspected
    assert (
        "Read the body. If it was cut, let the provider send the event again under a new id"
        in inspected
    )
    assert "hold approve cut --source github" in inspected
    assert "hold deny cut --source github" in inspected
    replayed = cli("replay", "cut", "--source", "github").out
    assert "1 unchanged: their events are held; decide with `webhookctl hold list`" in replayed
    skipped = cli("skip", "cut", "--source", "github", *WHY).err
    assert "is held: nothing to skip; see `webhookctl hold list`" in skipped

    assert "denied" in cli("hold", "deny", "cut", "--source", "github", *WHY).out
    assert statuses(inbox, "cut") == ["skipped"]


def test_a_filter_lists_what_it_would_decide(cli: Cli, inbox: Inbox) -> None:
    copies(inbox, "second", "third")
    hold(inbox, "evt-1")
    shown = cli("hold", "approve", *IDENTICAL, "--source", "github", *WHY)
    assert "second" in shown.out
    assert "third" in shown.out
    assert "evt-1" not in shown.out
    assert "Add --yes to decide 2 runs" in shown.err
    assert statuses(inbox, "second", "third") == ["held", "held"]


@pytest.mark.parametrize(("verb", "status"), [("approve", "done"), ("deny", "skipped")])
def test_a_filter_decides_all_of_them(
    cli: Cli, inbox: Inbox, checkout: Path, verb: str, status: str
) -> None:
    copies(inbox, "second", "third")
    hold(inbox, "evt-1")
    shown = cli("hold", verb, *IDENTICAL, *WHY, "--yes")
    assert shown.out.startswith("2 ")
    inbox.reconcile()  # sends the runs of a handler that this checkout does not have
    inbox.work()
    assert statuses(inbox, "second", "third") == [status, status]
    assert inbox.overview("evt-1").status == "held"
    audited = inbox.table.query(f"audit#{inbox.now:%Y-%m-%d}")
    whole, *each = sorted(audited, key=lambda row: -max(row["counts"].values()))
    outcome = "approved" if verb == "approve" else "denied"
    assert [(row["action"], row["counts"]) for row in each] == [(verb, {outcome: 1})] * 2
    assert (whole["action"], whole["counts"]) == (verb, {outcome: 2})
    assert whole["request"]["subject"] == "identical-body"


@pytest.mark.parametrize(
    "options",
    [
        ("--type", "issues.closed"),
        ("--handler", "acme.fulfil"),
        ("--reason-contains", "no such text"),
        ("--since", "1m"),
        ("--until", "1h"),
    ],
)
def test_each_filter_narrows_it_down(cli: Cli, inbox: Inbox, options: tuple[str, ...]) -> None:
    copies(inbox, "second")
    inbox.clock.advance(minutes=10)
    assert cli("hold", "list", *IDENTICAL, *options, "--json").objects == []
    assert cli("hold", "list", *IDENTICAL, "--since", "1h", "--type", "issues.*", "--json").objects


def test_a_limit_leaves_the_rest_to_the_same_command(
    cli: Cli, inbox: Inbox, checkout: Path
) -> None:
    copies(inbox, "second", "third", "fourth")
    first = cli("hold", "deny", *IDENTICAL, *WHY, "--yes", "--limit", "2")
    assert "the same command continues" in first.err
    assert cli("hold", "deny", *IDENTICAL, *WHY, "--yes", "--limit", "2").out.startswith("1 ")
    assert statuses(inbox, "second", "third", "fourth") == ["skipped"] * 3


def test_the_oldest_are_listed_first_up_to_the_limit(cli: Cli, inbox: Inbox) -> None:
    copies(inbox, "second", "third")
    shown = cli("hold", "list", "--limit", "1")
    assert "second" in shown.out
    assert "third" not in shown.out
    assert "Showing the oldest 1" in shown.err


@pytest.mark.moto
def test_a_table_that_fails_midway_says_how_far_it_got(
    cli: Cli, inbox: Inbox, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies(inbox, "second", "third")
    update, calls = DynamoTable.update, []

    def failing(table: DynamoTable, *args: Any, **options: Any) -> Item:
        calls.append(args)
        if len(calls) > 1:
            raise Unavailable("dynamodb", "UpdateItem", "throttled")
        return update(table, *args, **options)

    monkeypatch.setattr(DynamoTable, "update", failing)
    failed = cli("hold", "deny", *IDENTICAL, *WHY, "--yes")
    assert failed.code == 1
    assert "1 were decided so far, and the same command continues" in failed.err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "give EVENT_ID, or --subject"),
        (("--source", "github"), "give EVENT_ID, or --subject"),
        ((*IDENTICAL, "--hold", "0123abcd"), "--hold needs EVENT_ID"),
        (("second", *IDENTICAL), "with EVENT_ID, only"),
        (("second", "--yes"), "with EVENT_ID, only"),
    ],
)
def test_one_event_and_a_filter_exclude_each_other(
    cli: Cli, inbox: Inbox, options: tuple[str, ...], told: str
) -> None:
    copies(inbox, "second")
    refused = cli("hold", "approve", *options, *WHY)
    assert refused.code == 2
    assert told in " ".join(refused.err.split())
    assert statuses(inbox, "second") == ["held"]


def test_what_happened_is_told_of_one_event(cli: Cli, inbox: Inbox) -> None:
    refused = cli("hold", "approve", *IDENTICAL, *WHY, "--happened")
    assert refused.code == 2
