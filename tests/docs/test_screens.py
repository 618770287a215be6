"""docs/screens.md shows the real screens, and each fits into its terminal."""

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import pytest
from rich.cells import cell_len

from scripts import screens
from webhookctl.display.table import short

IDS = (screens.DONE, screens.RETRYING, screens.DEAD, screens.IN_DOUBT)
SCREEN = re.compile(
    r"^(?P<width>80|140|80 and 140) columns:\n\n```text\n(?P<text>.*?)\n```", re.M | re.S
)
DURATION = re.compile(r"\b\d+ (?:s|min|h|d)\b")


@cache
def page() -> str:
    return screens.render()


def shown() -> Iterator[tuple[int, list[str]]]:
    """Yields each screen's least width and its lines."""
    for screen in SCREEN.finditer(page()):
        yield int(screen["width"].partition(" ")[0]), screen["text"].splitlines()


def test_the_page_is_fresh() -> None:
    assert screens.FILE.read_text(encoding="utf-8") == page()


def test_two_sessions_render_the_same_page() -> None:
    assert screens.render() == page()


@pytest.mark.parametrize("title", ["dev", "inbox list", "inbox inspect", "hold list", "replay"])
def test_each_command_is_shown(title: str) -> None:
    assert f"## `webhookctl {title}" in page()


def test_no_line_is_wider_than_its_terminal() -> None:
    wide = [line for width, lines in shown() for line in lines if cell_len(line) > width]
    assert wide == []


def test_every_id_is_complete_or_shortened_in_its_middle() -> None:
    allowed = {short(id_, width) for id_ in IDS for width in range(11, len(id_) + 1)}
    words = [word.strip(":") for _, lines in shown() for line in lines for word in line.split()]
    ids = {word for word in words if word.startswith(("evt_1N", "72d3"))}
    assert set(IDS) < ids
    assert ids <= allowed


def test_no_time_wraps() -> None:
    for _, lines in shown():
        for before, after in pairwise(lines):
            joined = f"{before.split()[-1] if before.split() else ''} {after.strip()}"
            assert not DURATION.match(joined), (before, after)
            assert not after.strip().startswith("ago"), (before, after)


def test_an_inspection_starts_with_status_course_reason_and_next_action() -> None:
    retried = page().partition(f"inspect {screens.RETRYING}`")[2].partition("140 columns")[0]
    labels = re.findall(r"^([a-z]+) {2,}\S", retried, re.MULTILINE)
    assert labels == ["status", "event", "received", "happened", "why", "next", "body", "logs"]
    assert "why       functions/handlers/orders.py:8\n          KeyError: 'address'\n" in retried
