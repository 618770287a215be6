"""`inbox tail`: events and changes of status as they happen, without gaps and repetitions."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from tests.webhookctl.commands.live import Waits
from tests.webhookctl.commands.stage import Cli, Inbox, Result
from webhook_inbox.client.tail import PAUSE
from webhook_inbox.domain.errors import Permanent, Transient
from webhook_inbox.ledger.schema import event_key


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


def follow(
    cli: Cli, inbox: Inbox, *steps: Callable[[], object], options: tuple[str, ...] = ()
) -> Result:
    """Tails until the steps are done; each happens between two polls."""
    clock = Waits(inbox, steps)
    cli.clock = clock
    shown = cli("inbox", "tail", "--json", *options)
    assert shown.code == 130, shown.err
    assert set(clock.slept) == {PAUSE}
    return shown


def told(shown: Result) -> list[tuple[str, str, str]]:
    return [(each["event_id"], each["change"], each["status"]) for each in shown.objects]


@pytest.mark.moto
def test_an_event_and_its_runs_are_each_shown_once(cli: Cli, inbox: Inbox) -> None:
    inbox.fails("acme.notify", Permanent("422"))
    shown = follow(
        cli, inbox, lambda: inbox.deliver("evt-1"), inbox.work, lambda: None, lambda: None
    )
    assert told(shown)[0] == ("evt-1", "received", "accepted")
    assert sorted(told(shown)[1:]) == [
        ("evt-1", "run", "dead_letter"),
        ("evt-1", "run", "done"),
    ]
    dead = next(each for each in shown.objects if each["status"] == "dead_letter")
    assert (dead["handler"], dead["reason"]) == ("acme.notify", "permanent: 422")


@pytest.mark.moto
def test_a_change_of_an_old_event_is_found_in_the_due_index(cli: Cli, inbox: Inbox) -> None:
    inbox.script("acme.fulfil", Transient("503"))
    inbox.deliver("evt-old")
    inbox.work()
    inbox.clock.advance(hours=2)
    assert told(follow(cli, inbox, inbox.work, lambda: None)) == [("evt-old", "run", "done")]


def test_an_entry_that_the_index_has_late_is_not_left_out(cli: Cli, inbox: Inbox) -> None:
    late = inbox.delivery("evt-late")

    def arrive() -> None:
        inbox.deliver("evt-1")
        inbox.ingest.receive(late)

    shown = follow(cli, inbox, lambda: inbox.deliver("evt-0"), arrive, lambda: None)
    received = [event_id for event_id, change, _ in told(shown) if change == "received"]
    assert sorted(received) == ["evt-0", "evt-1", "evt-late"]


def test_after_an_outage_it_continues_where_it_was(cli: Cli, inbox: Inbox) -> None:
    def outage() -> None:
        inbox.deliver("evt-1")
        inbox.plan.fail("Query")
        inbox.clock.advance(hours=3)  # as a laptop that slept

    shown = follow(cli, inbox, outage, lambda: inbox.deliver("evt-2"), lambda: None)
    assert [event_id for event_id, _, _ in told(shown)] == ["evt-1", "evt-2"]
    words = ("Connecting to WebhookInbox-test.", "Live. It reads every 2 s;", "Stale since ")
    assert [shown.err.index(each) for each in words] == sorted(map(shown.err.index, words))
    assert "Live again; nothing was left out." in shown.err
    assert "less than 0.01 dollars" in shown.err


def test_the_first_failure_ends_it(cli: Cli, inbox: Inbox) -> None:
    inbox.plan.fail("Query", skip=0, times=50)
    cli.clock = Waits(inbox, [])
    shown = cli("inbox", "tail")
    assert (shown.code, shown.out) == (1, "")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--source", "github"), {"evt-hub"}),
        (("--type", "ref*"), {"evt-refund"}),
        (("--handler", "acme.fulfil"), {"evt-1"}),
        (("--status", "dead_letter"), {"evt-refund"}),
        (("--since", "1h"), {"evt-before", "evt-1", "evt-refund", "evt-hub"}),
    ],
)
def test_filters(cli: Cli, inbox: Inbox, options: tuple[str, ...], expected: set[str]) -> None:
    inbox.deliver("evt-before", type_="other")
    inbox.clock.advance(minutes=30)
    inbox.fails("acme.notify", Permanent("422"))

    def arrive() -> None:
        inbox.deliver("evt-1")
        inbox.deliver("evt-refund", type_="refunded")
        inbox.deliver("evt-hub", source="github")

    inbox.behaviours["acme.fulfil"] = lambda *_: None
    if "--status" in options:
        inbox.behaviours["acme.notify"] = _fails_refunds
    shown = follow(cli, inbox, arrive, inbox.work, lambda: None, options=options)
    assert {event_id for event_id, _, _ in told(shown)} == expected


def _fails_refunds(event: object, _: object) -> None:
    if getattr(event, "type", "") == "refunded":
        raise Permanent("422")


def test_an_expired_event_is_passed_over(cli: Cli, inbox: Inbox) -> None:
    def arrive() -> None:
        inbox.deliver("evt-1")
        row = inbox.table.get(event_key("acme", "evt-1"))
        assert row is not None
        inbox.table.put({**row, "expires_at": 1})

    assert follow(cli, inbox, arrive, lambda: None).objects == []


def test_lines_for_people(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver("evt-1")
    cli.clock = Waits(inbox, [])
    at = (inbox.now - timedelta()).isoformat()[11:19]
    shown = cli("inbox", "tail")
    assert shown.out == f"{at}  accepted     acme  paid  evt-1\n"


def test_an_unknown_name_is_refused(cli: Cli) -> None:
    assert "no source acmee" in cli("inbox", "tail", "--source", "acmee").err


def test_on_a_terminal_an_entry_breaks_between_words(
    cli: Cli, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webhookctl.display.output._width", lambda _: 80)
    inbox.fails("acme.notify", Permanent("unprocessable " * 20))
    event_id = "evt-0123456789-0123456789-0123456789"
    cli.clock = Waits(inbox, (lambda: inbox.deliver(event_id), inbox.work, lambda: None))
    shown = cli("inbox", "tail").out
    assert max(map(len, shown.splitlines())) <= 80
    assert {each for each in shown.split() if each.startswith("unproc")} == {"unprocessable"}
    assert shown.split().count(event_id) == 3
    [more, *_] = [line for line in shown.splitlines() if line.startswith(" ")]
    assert len(more) - len(more.lstrip()) == 10
