"""`inbox search`: a JMESPath condition on stored bodies."""

import json

import pytest

from tests.webhookctl.commands.stage import Cli, Inbox


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


def deliver(inbox: Inbox, count: int) -> None:
    for number in range(count):
        body = json.dumps({"customer": {"id": f"c-{number % 3}"}, "secret": "private"}).encode()
        inbox.deliver(f"evt-{number}", body=body)
        inbox.clock.advance(seconds=10)


@pytest.mark.moto
def test_it_finds_what_fulfils_the_condition_newest_first(cli: Cli, inbox: Inbox) -> None:
    deliver(inbox, 7)
    inbox.deliver("evt-text", body=b"no JSON")
    shown = cli("inbox", "search", "customer.id == 'c-1'", "--json")
    assert [each["event_id"] for each in shown.objects] == ["evt-4", "evt-1"]
    assert "Read 8 events" in shown.err
    assert "less than 0.01 dollars" in shown.err
    assert "private" not in shown.out


def test_a_value_is_shown_only_on_request(cli: Cli, inbox: Inbox) -> None:
    deliver(inbox, 1)
    assert "c-0" not in cli("inbox", "search", "customer.id").out
    assert '"c-0"' in cli("inbox", "search", "customer.id", "--show-value").out
    [found] = cli("inbox", "search", "customer", "--show-value", "--json").objects
    assert found["value"] == {"id": "c-0"}


def test_the_window_and_the_filters_decide_which_bodies_are_read(cli: Cli, inbox: Inbox) -> None:
    deliver(inbox, 3)
    inbox.clock.advance(hours=2)
    inbox.deliver("evt-new")
    assert "Read 1 event " in cli("inbox", "search", "nothing").err
    assert "Read 3 events" in cli("inbox", "search", "x", "--since", "1d", "--until", "1h").err
    assert "Read 0 events" in cli("inbox", "search", "x", "--type", "none", "--since", "1d").err
    assert "Read 0 events" in cli("inbox", "search", "x", "--source", "github").err


def test_it_stops_at_a_number_of_bodies_and_says_how_to_continue(cli: Cli, inbox: Inbox) -> None:
    deliver(inbox, 5)
    shown = cli("inbox", "search", "customer", "--max-events", "2", "--json")
    assert [each["event_id"] for each in shown.objects] == ["evt-4", "evt-3"]
    until = shown.err.rpartition("--until ")[2].rstrip(".\n")
    more = cli("inbox", "search", "customer", "--until", until, "--json")
    assert [each["event_id"] for each in more.objects] == ["evt-3", "evt-2", "evt-1", "evt-0"]
    first = cli("inbox", "search", "customer", "--limit", "1", "--json")
    assert len(first.objects) == 1
    assert "continue with --until" in first.err


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("a.b ==", "Incomplete expression"),
        ("x ] y", "column 2"),
        ("a == 'x", "Unclosed ' delimiter"),
        ("nosuch(@)", "no function nosuch()"),
        ("length(a, b)", "Expected 1 argument"),
        ("", "cannot be empty"),
    ],
)
def test_a_wrong_expression_is_a_usage_error(cli: Cli, expression: str, words: str) -> None:
    refused = cli("inbox", "search", expression)
    assert refused.code == 2
    assert words in " ".join(refused.err.split())


def test_a_body_that_cannot_be_read_is_passed_over(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver("broken")
    deliver(inbox, 1)
    row = inbox.event_row("broken")
    assert row is not None
    inbox.table.put({**row, "body_encoding": "zlib"})
    shown = cli("inbox", "search", "customer", "--json")
    assert [each["event_id"] for each in shown.objects] == ["evt-0"]
