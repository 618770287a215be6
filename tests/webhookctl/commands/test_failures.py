"""`inbox errors`: the failed runs, grouped by their cause."""

import shlex
from dataclasses import replace
from typing import Any

import pytest

from tests.webhookctl.commands.stage import Cli, Inbox
from webhook_inbox.client import failures
from webhook_inbox.domain.errors import Permanent, Transient
from webhook_inbox.domain.model import Status
from webhook_inbox.ledger.queries import Ledger


def raises(inbox: Inbox, handler: str, *errors: BaseException) -> None:
    inbox.script(handler, *errors)
    for number, _ in enumerate(errors):
        inbox.deliver(f"evt-{number}", type_="refunded")
        inbox.work()
        inbox.clock.advance(seconds=1)


def groups(cli: Cli, *options: str) -> list[dict[str, Any]]:
    return cli("inbox", "errors", "--json", *options).objects


def test_failures_with_one_cause_are_one_group(cli: Cli, inbox: Inbox) -> None:
    wrong = [Permanent(f"order ord_{number} of {number} has no address") for number in range(5)]
    raises(inbox, "acme.notify", *wrong, Permanent("the ERP answered 422"), KeyError("id"))
    [first, *others] = groups(cli)
    assert (first["count"], first["dead"]) == (5, 5)
    assert first["message"] == "order <id> of <number> has no address"
    assert first["example"] == {"source": "acme", "event_id": "evt-4"}
    assert first["first_at"] < first["last_at"]
    kinds = {(each["error_class"], each["count"], each["dead"]) for each in others}
    assert kinds == {("Permanent", 1, 1), ("KeyError", 1, 0)}


def test_the_commands_select_this_group_and_no_other(cli: Cli, inbox: Inbox) -> None:
    wrong = [Permanent(f"order ord_{number} has no address") for number in range(5)]
    raises(inbox, "acme.notify", *wrong, Permanent("order ord_9 has no name"))
    for each in groups(cli):
        assert cli(*shlex.split(each["inspect"])[1:]).code == 0
        found = cli(*shlex.split(each["replay"])[1:], "--json", "--by", "me").data
        assert (found["dry_run"], found["matched"]) == (True, each["dead"])


def test_the_command_tells_groups_apart_whose_texts_contain_each_other(
    cli: Cli, inbox: Inbox
) -> None:
    wrong = [Permanent(f"failed {number}") for number in range(5)]
    more = [Permanent(f"failed {number} times") for number in range(4)]
    raises(inbox, "acme.notify", *wrong, *more, KeyError(7))
    commands = [each["replay"] for each in groups(cli) if each["replay"]]
    found = [cli(*shlex.split(each)[1:], "--json").data for each in commands]
    assert [each["matched"] for each in found] == [5, 4]
    assert [[*each["errors"]] for each in found] == [
        ["failed <number>"],
        ["failed <number> times"],
    ]


def test_the_window_is_part_of_the_command(cli: Cli, inbox: Inbox) -> None:
    raises(inbox, "acme.notify", *[Permanent("no address")] * 5)
    inbox.clock.advance(hours=2)
    inbox.script("acme.notify", *[Permanent("no address")] * 4)
    for number in range(4):
        inbox.deliver(f"new-{number}", type_="refunded")
    inbox.work()
    [found] = groups(cli, "--since", "1h", "--source", "acme")
    assert found["count"] == 4
    assert cli(*shlex.split(found["replay"])[1:], "--json", "--by", "me").data["matched"] == 4
    assert [each["count"] for each in groups(cli, "--until", "1h")] == [5]


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (("--status", "failed"), 1),
        (("--status", "dead_letter"), 2),
        (("--handler", "acme.fulfil"), 0),
        (("--type", "paid"), 0),
        (("--source", "acme"), 3),
    ],
)
def test_filters(cli: Cli, inbox: Inbox, options: tuple[str, ...], count: int) -> None:
    raises(inbox, "acme.notify", Permanent("a"), Permanent("a"), Transient("503"))
    assert sum(each["count"] for each in groups(cli, *options)) == count


def test_its_memory_is_bounded(cli: Cli, inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "GROUPS", 2)
    raises(inbox, "acme.notify", *(Permanent(word) for word in ("a", "b", "c", "d", "a")))
    shown = cli("inbox", "errors", "--json")
    assert [each["count"] for each in shown.objects] == [2, 1]
    assert "5 runs in 2 groups. The other groups have 2 runs" in shown.err


def test_what_people_read(cli: Cli, inbox: Inbox) -> None:
    raises(inbox, "acme.notify", Permanent("no \u202e address"))
    shown = cli("inbox", "errors")
    assert shown.out == (
        "1 x Permanent (acme.notify)\n"
        "message   no \\u202e address\n"
        "seen      first 1 s ago, last 1 s ago; 1 dead\n"
        "example   webhookctl inbox inspect evt-0 --source acme\n"
        "replay    webhookctl replay --handler acme.notify --error-group 397b80355595\n\n"
    )


@pytest.mark.parametrize(
    ("keys", "message"),
    [(["id", "id"], "KeyError: 'id'"), (["id", "name"], "KeyError: <text>")],
)
def test_an_error_that_all_runs_have_is_shown_with_its_own_texts(
    cli: Cli, inbox: Inbox, keys: list[str], message: str
) -> None:
    raises(inbox, "acme.notify", *map(KeyError, keys))
    assert f"\nmessage   {message}\n" in cli("inbox", "errors").out
    [found] = groups(cli)
    assert found["message"] == "KeyError: <text>"


def test_nothing_and_wrong_names(cli: Cli) -> None:
    assert "No failing or dead runs found." in cli("inbox", "errors").err
    assert "no handler acme.x" in cli("inbox", "errors", "--handler", "acme.x").err
    assert cli("inbox", "errors", "--status", "done").code == 2


def test_groups_of_one_line_have_one_replay_for_all(
    cli: Cli, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "line_of", lambda _: "functions/handlers/erp.py:22")
    raises(inbox, "acme.notify", *[Permanent(f"no {name}") for name in ("sku", "size", "color")])
    for each in groups(cli):
        found = cli(*shlex.split(each["replay_of_class"])[1:], "--json").data
        assert (found["dry_run"], found["matched"]) == (True, 3)
    told = "or all    every Permanent of acme.notify:\n          webhookctl replay --handler"
    assert told in cli("inbox", "errors").out


def test_one_group_of_a_line_has_its_own_replay_only(cli: Cli, inbox: Inbox) -> None:
    raises(inbox, "acme.notify", Permanent("no sku"))
    assert groups(cli)[0]["replay_of_class"] is None


def test_a_run_that_dies_while_the_command_reads_is_counted_once(
    cli: Cli, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    raises(inbox, "acme.notify", Permanent("no sku"))
    dead = inbox.run("evt-0", "acme.notify")
    failing = iter([replace(dead, status=Status.FAILED)])
    monkeypatch.setattr(Ledger, "due_runs", lambda *_, **__: failing)
    assert [(each["count"], each["dead"]) for each in groups(cli)] == [(1, 0)]
