"""`inbox list`: the newest events first, or those that need by_due."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.webhookctl.commands.stage import MANIFEST, Cli, Inbox
from webhook_inbox.client.search import WINDOW
from webhook_inbox.domain.errors import Deferred, Held, Permanent, Transient
from webhook_inbox.domain.model import EventStatus
from webhook_inbox.ledger.schema import EVENT_LIFE, run_key

HEADINGS = ["RECEIVED", "SOURCE", "TYPE", "EVENT_ID", "STATUS", "RUNS"]


@pytest.fixture
def inbox() -> Inbox:
    """An inbox in memory: the tests of `send` list one in DynamoDB."""
    return Inbox()


def ids(cli: Cli, *arguments: str) -> list[str]:
    shown = cli("inbox", "list", "--json", *arguments)
    assert shown.code == 0, shown.err
    return [event["event_id"] for event in shown.objects]


@pytest.mark.moto
def test_each_line_is_the_object_that_inspect_prints(cli: Cli, inbox: Inbox) -> None:
    for number in range(3):
        inbox.deliver(f"evt-{number}")
    inbox.work()
    shown = cli("inbox", "list", "--json").objects
    assert shown == [
        cli("inbox", "inspect", f"evt-{number}", "--json").data for number in (2, 1, 0)
    ]
    assert list(shown[0]) == [
        "source",
        "event_id",
        "type",
        "agent",
        "received_at",
        "status",
        "fingerprint",
        "next_action",
        "runs",
        "history",
    ]


@pytest.mark.moto
def test_the_newest_come_first_across_hours_and_shards(cli: Cli, inbox: Inbox) -> None:
    sent = []
    for number in range(12):
        inbox.deliver(f"evt-{number}")
        sent.append(f"evt-{number}")
        inbox.clock.advance(minutes=25)
    assert ids(cli) == sent[::-1]


@pytest.mark.moto
def test_more_than_a_page_of_an_hour_is_read(cli: Cli, inbox: Inbox, small_pages: None) -> None:
    sent = [f"evt-{number}" for number in range(20)]
    for event_id in sent:
        inbox.deliver(event_id)
    assert ids(cli) == sent[::-1]


def test_until_is_exact_although_the_index_rounds_times_up(cli: Cli, inbox: Inbox) -> None:
    inbox.fails("acme.notify", Permanent("422"))
    inbox.clock.advance(seconds=0.4)
    inbox.deliver("evt-before", type_="refunded")
    inbox.clock.advance(seconds=0.1)
    until = inbox.clock.now().isoformat()
    inbox.deliver("evt-at", type_="refunded")
    inbox.work()
    assert ids(cli, "--status", "dead_letter", "--until", until) == ["evt-before"]


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhook_inbox.ledger.queries.PAGE", 1)


def spied(inbox: Inbox) -> list[int]:
    """Returns the sizes of the pages of rows that are read from now on."""
    sizes: list[int] = []
    get_many = inbox.table.get_many
    inbox.table.get_many = lambda keys: sizes.append(len(keys)) or get_many(keys)  # type: ignore[method-assign,func-returns-value]
    return sizes


@pytest.mark.moto
def test_dead_events_are_read_page_by_page_newest_first(cli: Cli, inbox: Inbox) -> None:
    """The whole index was read and kept, whatever the limit."""
    inbox.fails("acme.notify", Permanent("422"))
    for number in range(150):
        inbox.deliver(f"evt-{number}", type_="refunded")
        inbox.clock.advance(seconds=2)
    inbox.work()
    sizes = spied(inbox)
    newest = [f"evt-{number}" for number in range(149, 144, -1)]
    assert ids(cli, "--status", "dead_letter", "--limit", "5") == newest
    assert sizes == [100]


def test_dead_events_are_found_without_reading_the_waiting_ones(cli: Cli, inbox: Inbox) -> None:
    inbox.fails("acme.notify", Deferred(inbox.now + timedelta(days=2), "later"))
    for number in range(30):
        inbox.deliver(f"parked-{number}", type_="refunded")
    inbox.work()
    sizes = spied(inbox)
    assert ids(cli, "--status", "dead_letter") == []
    assert sizes == []


@pytest.mark.parametrize("kept", [1, 4, 5000])
@pytest.mark.moto
def test_waiting_events_are_listed_newest_first_however_few_a_pass_keeps(
    cli: Cli, inbox: Inbox, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr("webhook_inbox.client.search.KEPT", kept)
    inbox.fails("acme.notify", Transient("503"))
    sent = []
    for number in range(9):
        inbox.deliver(f"evt-{number}", type_="refunded")
        sent.append(f"evt-{number}")
        # The order of their due times is another one.
        inbox.work()
        inbox.clock.advance(seconds=1.5)
    assert ids(cli, "--status", "failed") == sent[::-1]
    assert ids(cli, "--status", "failed", "--limit", "3") == sent[:5:-1]


@pytest.mark.parametrize(
    ("status", "error"),
    [("failed", Transient("503")), ("dead_letter", Permanent("422")), ("held", Held("look"))],
)
@pytest.mark.parametrize("kept", [4, 5000])
def test_the_newest_of_a_second_are_listed_in_their_exact_order(
    cli: Cli,
    inbox: Inbox,
    monkeypatch: pytest.MonkeyPatch,
    status: str,
    error: Exception,
    kept: int,
) -> None:
    """The due index knows the times of events to the second only."""
    monkeypatch.setattr("webhook_inbox.client.search.KEPT", kept)
    inbox.fails("acme.notify", error)
    sent = [f"evt-{number * 7 % 12}" for number in range(12)]
    for event_id in sent:
        inbox.deliver(event_id, type_="refunded")
        inbox.clock.advance(seconds=0.13)
        inbox.work()
    assert ids(cli, "--status", status) == sent[::-1]
    for limit in (1, 3, 7):
        assert ids(cli, "--status", status, "--limit", str(limit)) == sent[::-1][:limit]


def test_a_time_filters_to_the_millisecond(cli: Cli, inbox: Inbox) -> None:
    inbox.fails("acme.notify", Permanent("422"))
    inbox.clock.advance(seconds=0.2)
    inbox.deliver("before", type_="refunded")
    inbox.clock.advance(seconds=0.2)
    inbox.deliver("after", type_="refunded")
    inbox.work()
    since = "2026-01-01T00:00:00.300Z"
    assert ids(cli, "--status", "dead_letter", "--since", since) == ["after"]


@pytest.mark.parametrize(
    ("status", "error"), [("failed", Transient("503")), ("dead_letter", Permanent("422"))]
)
def test_a_time_ends_to_the_millisecond(
    cli: Cli, inbox: Inbox, status: str, error: Exception
) -> None:
    """The due index knows the times of events to the second only."""
    inbox.fails("acme.notify", error)
    inbox.clock.advance(seconds=0.2)
    inbox.deliver("before", type_="refunded")
    inbox.clock.advance(seconds=0.2)
    inbox.deliver("after", type_="refunded")
    inbox.work()
    until = ("2026-01-01T00:00:00.100Z", "2026-01-01T00:00:00.300Z", "2026-01-01T00:00:00.900Z")
    found = [ids(cli, "--status", status, "--until", each) for each in until]
    assert found == [[], ["before"], ["after", "before"]]


def test_only_rows_that_may_match_are_read(cli: Cli, inbox: Inbox) -> None:
    inbox.fails("acme.notify", Transient("503"))
    for number in range(5):
        inbox.deliver(f"evt-{number}", type_="refunded")
    inbox.work()
    sizes = spied(inbox)
    assert ids(cli, "--status", "failed", "--source", "github") == []
    assert sizes == []


def test_an_event_with_several_waiting_runs_is_listed_once(cli: Cli, inbox: Inbox) -> None:
    for handler in ("acme.notify", "acme.fulfil"):
        inbox.fails(handler, Transient("503"))
    inbox.deliver("evt-1")
    inbox.work()
    assert ids(cli, "--status", "failed").count("evt-1") == 1


def test_the_limit_cuts_off_the_oldest_and_says_so(cli: Cli, inbox: Inbox) -> None:
    for number in range(4):
        inbox.deliver(f"evt-{number}")
    shown = cli("inbox", "list", "--limit", "2")
    assert [line.split()[3] for line in shown.out.splitlines()] == ["EVENT_ID", "evt-3", "evt-2"]
    assert "Showing the newest 2" in shown.err


def test_without_a_time_the_last_day_is_looked_at(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver("old")
    inbox.clock.advance(seconds=WINDOW.total_seconds() + 1)
    assert ids(cli) == []
    assert ids(cli, "--since", "3d") == ["old"]
    assert ids(cli, "--since", "2026-01-01T00:00:00Z") == ["old"]
    assert "No events found in the last 24 hours" in cli("inbox", "list").err


def test_an_unknown_source_is_an_error_that_names_the_known_ones(cli: Cli) -> None:
    shown = cli("inbox", "list", "--source", "acne")
    assert (shown.code, shown.out) == (2, "")
    assert (
        shown.err
        == 'webhookctl: no source acne; known sources: acme, github, stripe; did you mean "acme"?\n'
    )
    assert cli("inbox", "list", "--source", "acme").code == 0


def test_a_source_that_left_the_configuration_is_listed_while_it_has_events(
    cli: Cli, inbox: Inbox
) -> None:
    inbox.deliver("evt-1")
    del cli.urls["acme"]
    assert ids(cli, "--source", "acme") == ["evt-1"]


def test_an_unknown_handler_is_an_error_that_names_the_deployed_ones(cli: Cli) -> None:
    shown = cli("inbox", "list", "--handler", "acme.fulfill")
    assert shown.code == 2
    names = ", ".join(MANIFEST.handlers)
    assert shown.err == (
        f"webhookctl: no handler acme.fulfill; known handlers: {names};"
        ' did you mean "acme.fulfil"?\n'
    )
    assert cli("inbox", "list", "--handler", "acme.fulfil").code == 0


def test_a_dead_run_that_outlives_its_event_is_still_listed(cli: Cli, inbox: Inbox) -> None:
    inbox.fails("acme.notify", Permanent("422"))
    inbox.deliver("evt-1", type_="refunded")
    inbox.work()
    inbox.clock.advance(seconds=EVENT_LIFE.total_seconds() + 3600)
    (shown,) = cli("inbox", "list", "--status", "dead_letter", "--json").objects
    assert (shown["source"], shown["event_id"], shown["type"]) == ("acme", "evt-1", "refunded")
    assert shown["received_at"].startswith("2026-01-01T00:00:00")
    assert [(run["handler"], run["status"]) for run in shown["runs"]] == [
        ("acme.notify", "dead_letter")
    ]
    assert shown["next_action"].startswith("Ask the provider to send it again")
    assert ids(cli, "--status", "dead_letter", "--source", "github") == []


def test_since_leaves_out_what_came_before(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver("before")
    inbox.clock.advance(hours=3)
    inbox.deliver("after")
    assert ids(cli, "--since", "2h") == ["after"]


def test_events_of_a_source_and_of_types(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver("a", type_="paid")
    inbox.deliver("b", type_="refunded")
    inbox.deliver("c", source="github", type_="issues")
    assert ids(cli, "--source", "github") == ["c"]
    assert ids(cli, "--type", "pa*") == ["a"]
    assert ids(cli, "--source", "github", "--type", "paid") == []


def each_status(inbox: Inbox) -> None:
    """Leaves one event in every status that can be reached, named by it."""
    outcomes = {
        "done": None,
        "failed": Transient("503"),
        "dead_letter": Permanent("422"),
        "deferred": Deferred(inbox.now.replace(hour=5), "later"),
        "pending": Permanent("422"),
    }
    for name, error in outcomes.items():
        inbox.script("acme.notify", error)
        inbox.deliver(name, type_="refunded")
        inbox.work()
    inbox.replay(source="acme", event_ids=["pending"])
    inbox.queues["default"].receive(10, hidden_for=3600)
    inbox.deliver("skipped", type_="unheard")
    inbox.deliver("processing", type_="refunded")
    inbox.begin()
    inbox.deliver("accepted", type_="refunded")


def test_events_in_each_status(cli: Cli, inbox: Inbox) -> None:
    each_status(inbox)
    for status in set(EventStatus) - {EventStatus.HELD}:
        assert ids(cli, "--status", status) == [status]


@pytest.mark.moto
def test_held_events(cli: Cli, inbox: Inbox) -> None:
    inbox.fails("acme.notify", Deferred(inbox.now.replace(hour=5)))
    inbox.deliver(type_="refunded")
    inbox.work()
    row = inbox.table.get(run_key("acme", "evt-1", "acme.notify"))
    assert row is not None
    inbox.table.put({**row, "status": "held"})
    assert ids(cli, "--status", "held") == ["evt-1"]


@pytest.mark.parametrize("status", ["dead_letter", "failed"])
def test_what_needs_attention_is_found_however_old_it_is(
    cli: Cli, inbox: Inbox, status: str
) -> None:
    inbox.script("acme.notify", {"failed": Transient("503")}.get(status, Permanent("422")))
    inbox.deliver("old", type_="refunded")
    inbox.work_once()
    inbox.clock.advance(days=20)
    assert ids(cli, "--status", status) == ["old"]
    assert ids(cli, "--status", status, "--since", "2h") == []


def test_a_second_attempt_at_work_is_found_however_old_its_event_is(cli: Cli, inbox: Inbox) -> None:
    inbox.script("acme.notify", Transient("503"))
    inbox.deliver("old", type_="refunded")
    inbox.work_once()
    inbox.clock.advance(days=2)
    inbox.begin()
    assert ids(cli, "--status", "processing") == ["old"]


def test_a_second_attempt_of_a_young_event_is_listed_once(cli: Cli, inbox: Inbox) -> None:
    inbox.script("acme.notify", Transient("503"))
    inbox.deliver("young", type_="refunded")
    inbox.work_once()
    inbox.clock.advance(hours=1)
    inbox.begin()
    assert ids(cli, "--status", "processing") == ["young"]


def test_with_a_handler_the_status_is_its_runs(cli: Cli, inbox: Inbox) -> None:
    inbox.fails("acme.fulfil", Permanent("422"))
    inbox.deliver("both")
    inbox.deliver("one", type_="refunded")
    inbox.work()
    assert ids(cli, "--handler", "acme.fulfil") == ["both"]
    assert ids(cli, "--handler", "acme.fulfil", "--status", "dead_letter") == ["both"]
    assert ids(cli, "--handler", "acme.notify", "--status", "dead_letter") == []
    assert ids(cli, "--handler", "acme.notify", "--status", "done") == ["one", "both"]


def test_a_run_that_has_not_begun_is_found_by_its_handler(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver()
    assert ids(cli, "--handler", "acme.notify", "--status", "accepted") == ["evt-1"]


def test_into_a_pipe_columns_are_aligned_and_nothing_is_cut_off(cli: Cli, inbox: Inbox) -> None:
    long = "an-event-with-a-very-long-name-" * 9
    inbox.deliver(long)
    inbox.deliver("short", type_="refunded")
    inbox.work()
    shown = cli("inbox", "list").out
    heading, *lines = shown.splitlines()
    assert heading.split() == HEADINGS
    assert "\x1b" not in shown
    assert "─" not in shown
    assert lines[1].split()[3] == long
    column = heading.index("STATUS")
    assert [line[column:].split()[0] for line in lines] == ["done", "done"]
    assert lines[1].startswith("2026-01-01T00:00:00.000Z  acme ")


def test_an_empty_inbox_is_no_error(cli: Cli) -> None:
    shown = cli("inbox", "list")
    assert (shown.code, shown.out) == (0, "")
    assert cli("inbox", "list", "--status", "dead_letter").err == "No events found.\n"
    assert cli("inbox", "list", "--json").out == ""


@pytest.mark.parametrize("since", ["yesterday", "2w", "0h", "-2h", "2026-13-01"])
def test_a_time_that_is_none_is_a_wrong_call(cli: Cli, since: str) -> None:
    shown = cli("inbox", "list", f"--since={since}")
    assert shown.code == 2
    assert f"'{since}' is not a time: use a duration such as 30m, 2h or 7d" in shown.err


def test_a_status_that_is_none_is_a_wrong_call(cli: Cli) -> None:
    shown = cli("inbox", "list", "--status", "lost")
    assert shown.code == 2
    assert "dead_letter" in shown.err


def test_the_events_of_a_tenant_are_selected(cli: Cli, inbox: Inbox) -> None:
    acme = replace(inbox.manifest.sources["acme"], tenant=("header", "x-tenant"))
    inbox.deploy(replace(inbox.manifest, sources={**inbox.manifest.sources, "acme": acme}))
    inbox.fails("acme.fulfil", Permanent("a 422"))
    for number, name in enumerate(("t-1", "t-2", "t-1")):
        inbox.deliver(f"evt-{number}", headers={"x-tenant": name})
    inbox.work()

    assert ids(cli, "--tenant", "t-1") == ["evt-2", "evt-0"]
    assert ids(cli, "--tenant", "t-1", "--status", "dead_letter") == ["evt-2", "evt-0"]
    assert cli("inbox", "inspect", "evt-1", "--json").data["tenant"] == "t-2"


def test_a_run_in_progress_shows_its_attempt_and_when_it_ends_at_the_latest(
    cli: Cli, inbox: Inbox
) -> None:
    inbox.deliver(type_="refunded")
    inbox.begin(seconds=40)
    assert "acme.notify: attempt 1, ends in 40 s at the latest" in cli("inbox", "list").out
    inbox.clock.advance(seconds=90)
    assert "acme.notify: attempt 1, lease expired 50 s ago" in cli("inbox", "list").out
