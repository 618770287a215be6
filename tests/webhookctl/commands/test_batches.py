"""Batches and their items, as an operator sees them."""

import pytest

from tests.unit.support.batches import Batches, mail, mails
from tests.webhookctl.commands.stage import Cli


@pytest.fixture
def inbox() -> Batches:
    """An inbox in memory, with a source of batches."""
    return Batches()


@pytest.fixture
def cli(inbox: Batches, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    made = Cli(inbox, capsys, monkeypatch)
    made.urls = {"mail": "https://inbox.example/webhooks/mail"}
    return made


def test_a_batch_and_its_items_are_listed(cli: Cli, inbox: Batches) -> None:
    batch = inbox.sent(mail("a"), mail("b", "open"))
    inbox.run_until_quiet()
    listed = {shown["event_id"]: shown for shown in cli("inbox", "list", "--json").objects}
    assert {key: (shown["type"], shown["status"]) for key, shown in listed.items()} == {
        batch: ("batch", "done"),
        "a": ("delivered", "done"),
    }
    assert "done" in cli("inbox", "list", "--type", "batch").out
    assert "done" in cli("inbox", "list", "--type", "delivered").out


@pytest.mark.moto
def test_a_batch_shows_what_became_of_its_items(cli: Cli, inbox: Batches) -> None:
    batch = inbox.sent(mail("a"), mail("b", "open"), mail("c"))
    inbox.run_until_quiet()
    [run] = cli("inbox", "inspect", batch, "--json").data["runs"]
    assert (run["handler"], run["status"]) == ("split", "done")
    assert run["items"] == {"accepted": 2, "ignored": 1, "of": 3}
    shown = cli("inbox", "inspect", batch).out
    assert "after 1 attempt, items: 2 accepted, 1 ignored, of 3\n" in shown


def test_a_batch_that_is_being_split_shows_how_far_it_is(cli: Cli, inbox: Batches) -> None:
    batch = inbox.sent(*mails(60))
    inbox.hook = lambda operation: inbox.clock.advance(seconds=operation == "PutItem")
    inbox.work_once()
    shown = cli("inbox", "inspect", batch, "--json").data
    assert shown["status"] == "deferred"
    assert shown["runs"][0]["items"] == {"accepted": 45, "of": 60}
    assert shown["runs"][0]["last_error"] == "45 of 60 items are taken"


def test_a_batch_with_a_conflict_says_which_and_what_to_do(cli: Cli, inbox: Batches) -> None:
    inbox.sent(mail("a"))
    inbox.run_until_quiet()
    batch = inbox.sent(mail("a", reason="other"), mail("b"))
    inbox.run_until_quiet()
    shown = cli("inbox", "inspect", batch, "--json").data
    assert shown["status"] == "dead_letter"
    assert f"replay {batch}" in shown["next_action"]
    assert "1 of 2 items were not taken: item 1: a is known" in shown["runs"][0]["last_error"]
    assert (
        "a delivery with this id and different content was rejected"
        in cli("inbox", "inspect", "a").out
    )


def test_other_runs_have_no_items(cli: Cli, inbox: Batches) -> None:
    inbox.sent(mail("a"))
    inbox.run_until_quiet()
    [run] = cli("inbox", "inspect", "a", "--json").data["runs"]
    assert "items" not in run
    assert "items" not in cli("inbox", "inspect", "a").out
