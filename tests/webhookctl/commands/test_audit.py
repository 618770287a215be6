"""`audit`, and the history of an event: who did what, and why."""

from datetime import timedelta
from typing import Any

import pytest

from tests.unit.support.holding import hold
from tests.webhookctl.commands.stage import CALLER, KIM, PREFIX, Cli, Inbox, client, documents
from webhook_inbox import Permanent
from webhook_inbox.adapters.aws.dynamodb import DynamoTable
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.secret_document import SOURCES

WHY = ("--reason", "looked at it", "--by", "kim")


@pytest.fixture
def dead(inbox: Inbox) -> Inbox:
    """An event whose run is dead."""
    inbox.fails("acme.notify", Permanent("422: no such order"))
    inbox.deliver("evt-1", type_="refunded")
    inbox.work()
    inbox.clock.advance(minutes=1)
    return inbox


def rows(cli: Cli, *options: str) -> list[Any]:
    return cli("audit", "--json", *options).objects


# -- the list


def test_an_action_is_listed_with_actor_reason_and_result(cli: Cli, dead: Inbox) -> None:
    cli("skip", "evt-1", *WHY)
    assert rows(cli) == [
        {
            "at": "2026-01-01T00:01:00.001Z",
            "action": "skip",
            "by": CALLER,
            "proof": "sts",
            "on_behalf_of": "kim",
            "request_id": None,
            "reason": "looked at it",
            "forced": False,
            "counts": {"skipped": 1},
            "stopped": None,
            "request": {"source": "acme", "handler": "acme.notify"},
            "event_ids": ["evt-1"],
        }
    ]


def test_for_people_it_is_a_table(cli: Cli, dead: Inbox) -> None:
    cli("skip", "evt-1", *WHY)
    heading, row = cli("audit").out.splitlines()
    assert heading.split() == ["AT", "ACTION", "ABOUT", "RESULT", "DETAILS"]
    assert row.startswith("2026-01-01T00:01:00.001Z  skip    evt-1  1 skipped  ")
    assert f"by {KIM}; looked at it; source acme, handler acme.notify" in row


def test_the_newest_is_first_and_filters_choose(cli: Cli, dead: Inbox) -> None:
    cli("skip", "evt-1", *WHY)
    dead.clock.advance(minutes=1)
    cli("handlers", "pause", "acme.notify", "--reason", "the CRM moves", "--by", "ada")
    assert [row["action"] for row in rows(cli)] == ["pause", "skip"]
    assert [row["action"] for row in rows(cli, "--limit", "1")] == ["pause"]
    assert [row["action"] for row in rows(cli, "--action", "skip")] == ["skip"]
    assert [row["action"] for row in rows(cli, "--by", "ada")] == ["pause"]
    assert [row["action"] for row in rows(cli, "--event", "evt-1")] == ["skip"]
    assert [row["action"] for row in rows(cli, "--since", "30s")] == ["pause"]
    assert [row["action"] for row in rows(cli, "--until", "30s")] == ["skip"]


def test_the_window_is_a_day_by_default(cli: Cli, dead: Inbox) -> None:
    cli("skip", "evt-1", *WHY)
    dead.clock.advance(hours=25)
    shown = cli("audit")
    assert (shown.out, shown.code) == ("", 0)
    assert "--since 7d" in shown.err
    assert len(rows(cli, "--since", "3d")) == 1


@pytest.mark.parametrize(
    "command", ["audit", "inbox list", "inbox search a", "inbox errors", "replay --source acme"]
)
def test_a_window_that_ends_before_it_begins_is_refused(cli: Cli, command: str) -> None:
    shown = cli(*command.split(), "--since", "5m", "--until", "10m")
    assert shown.code == 2
    assert "--since 5m is not before --until 10m" in shown.err


def test_no_window_reads_more_days_than_actions_are_kept(cli: Cli, dead: Inbox) -> None:
    cli("skip", "evt-1", *WHY)
    before = len(dead.plan.operations())
    assert len(rows(cli, "--since", "0001-01-01", "--until", "9999-12-31")) == 1
    assert len(dead.plan.operations()) - before < 80


def test_an_event_with_a_long_id_is_found(cli: Cli, dead: Inbox) -> None:
    cli("replay", "e" * 600, "evt-1", "--yes")
    assert [row["action"] for row in rows(cli, "--event", "e" * 600)] == ["replay"]


def test_an_action_that_was_cut_off_is_not_finished(
    cli: Cli, dead: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    dry_run, invoke = iter([True]), cli.replay.invoke
    monkeypatch.setattr(
        cli.replay, "invoke", lambda **call: invoke(**call) if next(dry_run, False) else crash()
    )
    assert cli("replay", "--status", "dead_letter", "--yes").code == 1
    [row] = rows(cli)
    assert (row["action"], row["counts"]) == ("replay", None)
    assert "  not finished  " in cli("audit").out


def crash() -> None:
    raise RuntimeError("the connection is gone")


# -- replays


def test_a_replay_is_one_row_with_the_caller_and_the_counts(cli: Cli, dead: Inbox) -> None:
    dead.fails("acme.notify", Permanent("422: no such order"))
    dead.deliver("evt-2", type_="refunded")
    dead.work()
    cli("replay", "--handler", "acme.notify", "--rate", "0.2", "--yes", *WHY)
    [row] = rows(cli)
    assert (row["by"], row["proof"], row["on_behalf_of"]) == (CALLER, "sts", "kim")
    assert row["counts"] == {"replayed": 2}
    assert row["request"]["handler"] == "acme.notify"
    [entry] = dead.run("evt-1", "acme.notify").replays
    assert (entry["by"], entry["proof"], entry["on_behalf_of"]) == (CALLER, "sts", "kim")


def test_a_dry_run_is_no_action(cli: Cli, dead: Inbox) -> None:
    cli("replay", *WHY)
    assert rows(cli) == []


def test_a_forced_replay_is_marked(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver("evt-1", type_="refunded")
    inbox.work()
    cli("replay", "evt-1", "--handler", "acme.notify", "--force", "--yes", *WHY)
    [row] = rows(cli)
    assert (row["forced"], row["event_ids"]) == (True, ["evt-1"])
    assert "  replay, forced  evt-1" in cli("audit").out


def test_an_invocation_that_only_claims_a_name_is_unverified(cli: Cli, dead: Inbox) -> None:
    dead.replay(requested_by=CALLER, reason="trust me")
    [row] = rows(cli)
    assert (row["by"], row["proof"], row["reason"]) == (CALLER, "claimed", "trust me")
    assert f"by {CALLER} (unverified); trust me" in cli("audit").out
    shown = cli("inbox", "inspect", "evt-1").out
    assert f"replay by {CALLER} (unverified): trust me" in shown


# -- the history of an event


def test_an_action_is_in_the_history_before_any_attempt(cli: Cli, inbox: Inbox) -> None:
    hold(inbox, "evt-1", type_="refunded")
    inbox.clock.advance(minutes=1)
    cli("hold", "approve", "evt-1", *WHY)
    shown = cli("inbox", "inspect", "evt-1", "--json").data
    [entry] = [each for each in shown["history"] if each["kind"] == "action"]
    assert (entry["action"], entry["by"], entry["on_behalf_of"]) == ("approve", CALLER, "kim")
    assert (entry["reason"], entry["handler"]) == ("looked at it", "acme.notify")
    assert (
        f"    -  0 s ago  approve by {KIM}: looked at it\n" in cli("inbox", "inspect", "evt-1").out
    )


def test_the_history_is_one_list_in_the_order_of_times(cli: Cli, dead: Inbox) -> None:
    dead.replay(event_ids=["evt-1"], reason="once more")
    dead.clock.advance(minutes=1)
    dead.fails("acme.notify", Permanent("422: no such order"))
    dead.work()
    dead.clock.advance(minutes=1)
    cli("skip", "evt-1", *WHY)
    shown = cli("inbox", "inspect", "evt-1", "--json").data["history"]
    assert [each.get("action") or each["outcome"] for each in shown] == [
        "dead",
        "replay",
        "dead",
        "skip",
    ]
    people = cli("inbox", "inspect", "evt-1").out
    history = people[people.index("  history\n") :].splitlines()[1:5]
    assert [line.split()[0] for line in history] == ["1", "-", "2", "-"]


# -- other actions


def test_a_changed_secret_is_audited_without_its_value(cli: Cli, inbox: Inbox) -> None:
    cli("secrets", "set", "acme", *WHY, stdin="a-new-value-of-the-secret\n")
    [row] = rows(cli)
    assert (row["action"], row["request"]) == (
        "set secret",
        {"secret": "acme", "document": SOURCES},
    )
    assert row["counts"] == {"created": 1}
    assert "a-new-value-of-the-secret" not in str(list(inbox.table.query("audit#2026-01-01")))


@pytest.mark.moto
def test_without_its_audit_row_no_secret_is_set(
    cli: Cli, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch)
    assert cli("secrets", "set", "acme", *WHY, stdin="a-new-value\n").code == 1
    assert documents().read(SOURCES) == {}


def refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    def put(*_: object, **__: object) -> None:
        raise Unavailable("dynamodb", "PutItem", "AccessDeniedException")

    monkeypatch.setattr(DynamoTable, "put", put)


@pytest.mark.moto
def test_without_its_audit_row_nothing_is_replayed(
    cli: Cli, dead: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch)
    assert cli("replay", "--status", "dead_letter", "--yes").code == 1
    assert dead.run("evt-1", "acme.notify").status is Status.DEAD_LETTER


def test_an_opened_enrolment_is_audited(cli: Cli, inbox: Inbox) -> None:
    client("secretsmanager").create_secret(Name=PREFIX + SOURCES, SecretString="{}")
    cli.manifest = None
    cli("secrets", "enrol", "acme", *WHY)
    [row] = rows(cli)
    assert (row["action"], row["counts"]) == ("enrol secret", {"opened": 1})
    assert row["request"] == {"source": "acme", "span": "15m"}


def test_a_pause_that_was_in_force_already_changed_nothing(cli: Cli, inbox: Inbox) -> None:
    for _ in range(2):
        cli("handlers", "pause", "acme.notify", *WHY)
        inbox.clock.advance(seconds=timedelta(seconds=1).total_seconds())
    assert [row["counts"] for row in rows(cli)] == [{"unchanged": 1}, {"paused": 1}]
