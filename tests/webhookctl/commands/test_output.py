"""Rich on a terminal, plain into a pipe."""

import io
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from webhook_inbox.client.suggestions import quoted
from webhook_inbox.domain.printable import counted
from webhookctl.display.output import Output
from webhookctl.display.table import Column, Fit
from webhookctl.display.untrusted import printable, printable_lines


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Terminal]:
    """Connects both streams to a narrow terminal, from when it is called."""

    def connect() -> Terminal:
        stream = Terminal()
        monkeypatch.setattr("sys.stdout", stream)
        monkeypatch.setattr("sys.stderr", stream)
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setenv("COLUMNS", "40")
        monkeypatch.delenv("NO_COLOR", raising=False)
        return stream

    return connect


HEADINGS = (Column("EVENT_ID", Fit.ID), Column("ERROR", Fit.NOTE))
ROWS = (("evt-1", "[bold]not markup[/bold]"), ("evt-2", "x" * 100))


def test_a_terminal_gets_colours_and_nothing_is_cut_off(
    on_terminal: Callable[[], Terminal],
) -> None:
    terminal = on_terminal()
    Output(as_json=False).table(HEADINGS, ROWS)
    shown = terminal.getvalue()
    assert "\x1b[" in shown
    assert "[bold]not markup[/bold]" in shown
    assert shown.count("x") == 100


def test_a_pipe_gets_neither(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=False).table(HEADINGS, ROWS)
    assert capsys.readouterr().out.splitlines() == [
        "EVENT_ID  ERROR",
        "evt-1     [bold]not markup[/bold]",
        "evt-2     " + "x" * 100,
    ]


def test_colours_asked_for_by_the_environment_stay_out_of_a_pipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    Output(as_json=False).table(HEADINGS, ROWS)
    assert "\x1b" not in capsys.readouterr().out


def test_a_table_without_rows_is_its_headings(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=False).table(HEADINGS, [])
    assert capsys.readouterr().out == "EVENT_ID  ERROR\n"


def test_progress_on_a_terminal_is_a_bar(on_terminal: Callable[[], Terminal]) -> None:
    terminal = on_terminal()
    with Output(as_json=False).progress("replayed", 4) as advance:
        advance(3)
    assert "3/4" in terminal.getvalue()


def test_progress_into_a_pipe_is_lines_beside_the_results(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Output(as_json=False).progress("replayed", 4) as advance:
        advance(3)
        advance(1)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "replayed 3 of 4\nreplayed 4 of 4\n")


def test_absent_values_show_as_a_dash_and_zero_as_zero(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Output(as_json=False).fields({"a": None, "bcd": "", "e": 0})
    assert capsys.readouterr().out == "a    -\nbcd  -\ne    0\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain Zoë", "plain Zoë"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x9b2J\x7f", "\\x9b2J\\x7f"),
        ("evt_\u202e1-tve", "evt_\\u202e1-tve"),
        ("a\u200bb\u2060c\ufeffd", "a\\u200bb\\u2060c\\ufeffd"),
        ("\u2028\u2029\xa0\xad", "\\u2028\\u2029\\xa0\\xad"),
        ("\u034f\ufe0f\u3164\U000e0101\U000e0041", "\\u034f\\ufe0f\\u3164\\U000e0101\\U000e0041"),
        ("\udcff", "\\udcff"),
    ],
)
def test_what_a_terminal_would_obey_is_spelled_out(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_things_are_counted_as_people_do() -> None:
    assert counted(1, "run") == "1 run"
    assert counted(0, "run") == "0 runs"
    assert counted(2, "delivery", "deliveries") == "2 deliveries"


def test_a_text_keeps_its_line_breaks_and_tabs() -> None:
    assert printable_lines("a\r\nb\n\n\tc\rd\x1b\n") == "a\nb\n\n\tc\\rd\\x1b\n"


HOSTILE = (
    "plain",
    "it's; rm -rf ~",
    "$(touch owned) `touch owned` !x",
    "\x1b]52;c;b3duZWQ=\x07",
    "evt\u202e1\u200b",
    "it's \\ \x9b2J Zo\xeb \U000e0041\x85",
    "--yes",
    "",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_shell_reads_a_quoted_argument_as_the_text_itself(text: str, tmp_path: Path) -> None:
    shown = quoted(text)
    assert printable(shown) == shown
    script = f"printf %s {shown}"
    read = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]},
        capture_output=True,
        check=True,
    )
    assert read.stdout.decode() == text
    assert list(tmp_path.iterdir()) == []
