"""Tables and commands fit into a terminal, and are complete in a pipe."""

import shlex
from datetime import UTC, datetime, timedelta

import pytest
from rich.cells import cell_len

from tests.unit.processor.test_failures import FAULTY, of_a_file
from tests.webhookctl.commands.stage import Cli, Inbox
from webhook_inbox.client.suggestions import Program
from webhook_inbox.domain.internal_errors import Postponed
from webhookctl.display.output import folded
from webhookctl.display.table import Column, Fit, fitted, plain, short, wrapped

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
COLUMNS = (
    Column("AT"),
    Column("SOURCE", Fit.NAME),
    Column("EVENT_ID", Fit.ID),
    Column("STATUS"),
    Column("WHY", Fit.NOTE),
)
ID = "evt_1NG8Du2eZvKYlo2CUI79vXWy"
LONG = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
ROWS = (
    (NOW - timedelta(minutes=3), "a-source-with-a-long-name", ID, "failed", "503 " * 80),
    (NOW + timedelta(hours=2), "github", LONG, "dead_letter", ""),
)


def lines(width: int) -> list[str]:
    return list(fitted(COLUMNS, ROWS, width=width, now=NOW))


def test_a_pipe_gets_complete_cells_and_times() -> None:
    heading, first, second = plain(COLUMNS, ROWS)
    assert heading.split() == [column.title for column in COLUMNS]
    assert first.startswith("2026-01-01T11:57:00.000Z  a-source-with-a-long-name  evt_1NG8Du2eZvKY")
    assert first.endswith("503")
    assert second.endswith(f"{LONG}  dead_letter  -")


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_no_line_exceeds_the_terminal_and_no_time_or_status_is_cut(width: int) -> None:
    shown = lines(width)
    assert max(map(cell_len, shown)) <= width
    for text in ("3 min ago", "in 2 h", "failed", "dead_letter"):
        assert any(text in line for line in shown)


def test_names_are_shortened_before_ids() -> None:
    eighty = "\n".join(lines(80))
    assert "a-source-with-a-long-name" not in eighty
    assert ID in eighty
    assert LONG in eighty
    assert "a-source…long-name" in eighty
    sixty = "\n".join(lines(60))
    assert LONG not in sixty
    assert "a-source-with-a-long-name" in "\n".join(lines(140))


def test_a_note_is_below_its_row_until_there_is_room_beside_it() -> None:
    narrow, wide = lines(80), lines(140)
    assert "WHY" not in narrow[0]
    assert narrow[2].startswith("  503 503")
    assert narrow[4].endswith(" …")
    assert "WHY" in wide[0]
    assert wide[1].rstrip().endswith("503")


def test_shortened_ids_remain_different() -> None:
    ids = [f"evt_0000000000{n:02}0000000000" for n in range(20)]
    rows = [("x" * 30, id_) for id_ in ids]
    columns = (Column("WHOLE"), Column("EVENT_ID", Fit.ID))
    _, *shown = fitted(columns, rows, width=45, now=NOW)
    assert len(set(shown)) == 20


def test_a_short_text_keeps_both_of_its_ends() -> None:
    assert short("abcdefghij", 10) == "abcdefghij"
    assert short("abcdefghij", 6) == "ab…hij"
    assert short("abcdefghij", 7) == "abc…hij"


def test_a_hostile_cell_stays_on_its_line() -> None:
    shown = list(fitted(COLUMNS[2:], [("evt\n\x1b[2J", "x\ny", "a\nb")], width=80, now=NOW))
    assert len(shown) == 2
    assert "\x1b" not in "".join(shown)


def test_durations_and_commands_do_not_break() -> None:
    text = "it begins in 5 min 3 s with `webhookctl hold list` then"
    for width in range(20, 60):
        shown = wrapped(text, width)
        assert any("in 5 min 3 s" in line for line in shown)
        assert any("`webhookctl hold list`" in line for line in shown)
    assert wrapped(text, None) == [text]


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_a_folded_command_is_read_as_the_command(width: int) -> None:
    command = Program(("webhookctl", "--local")).command(
        "hold approve",
        *("--source", "a shop", "--handler", "shop.fulfil", "--reason", "it's fine", "--happened"),
        argument=ID,
    )
    shown = folded(command, width)
    assert all(len(line) <= width for line in shown)
    assert shlex.split("\n".join(shown).replace("\\\n", "")) == shlex.split(command)
    assert folded(command, None) == [command]


# -- what the screens say of a handler's error


def test_an_error_names_the_handlers_file_and_line_first(cli: Cli, inbox: Inbox) -> None:
    path = "/var/task/handlers/orders.py"
    inbox.behaviours["acme.notify"] = of_a_file(path, "handlers.orders", FAULTY)
    inbox.deliver(type_="refunded")
    inbox.work_once()
    shown = cli("inbox", "inspect", "evt-1").out
    assert "why       functions/handlers/orders.py:8\n          JSONDecodeError: " in shown
    [run] = cli("inbox", "inspect", "evt-1", "--json").data["runs"]
    assert run["error_line"] == "functions/handlers/orders.py:8"
    assert "(functions/handlers/orders.py:8)" in cli("inbox", "list").out


def test_a_done_run_shows_no_error_even_if_an_earlier_version_stored_one(
    cli: Cli, inbox: Inbox
) -> None:
    inbox.deliver(type_="refunded")
    inbox.work()
    row = next(row for row in inbox.table.query("event#acme#evt-1", sk_prefix="run#"))
    inbox.table.put({**row, "last_error": "it was down"})
    assert cli("inbox", "inspect", "evt-1", "--json").data["runs"][0]["last_error"] is None
    assert "it was down" not in cli("inbox", "inspect", "evt-1").out
    assert "it was down" not in cli("inbox", "list").out


def test_list_says_once_why_a_run_waits(cli: Cli, inbox: Inbox) -> None:
    until = inbox.now + timedelta(hours=3)
    error = Postponed(until, "its circuit is open", waits_for="destination crm")
    inbox.fails("acme.notify", error)
    inbox.deliver()
    inbox.work()
    shown = cli("inbox", "list").out.splitlines()[1]
    told = "acme.notify: attempt 1 in 2 h 59 min: destination crm: its circuit is open"
    assert shown.endswith(f"deferred  {told}")
    assert shown.count("deferred") == 1


def test_a_shortened_id_is_told_as_one(cli: Cli) -> None:
    shown = cli("inbox", "inspect", "evt…1")
    assert shown.code == 1
    assert "evt…1 is a shortened id: give the complete one" in shown.err
