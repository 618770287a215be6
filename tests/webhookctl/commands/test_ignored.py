"""`inbox ignored`: the types that arrived and are not stored, with counts."""

from dataclasses import replace

import pytest

from tests.unit.support.world import ACME
from tests.webhookctl.commands.stage import MANIFEST, Cli, Inbox
from tests.webhookctl.commands.test_hostile_text import EVIL, assert_harmless
from webhook_inbox.ingest.ignored import TYPES, IgnoredTypes

NARROW = replace(MANIFEST, sources={**MANIFEST.sources, "acme": replace(ACME, types=("paid",))})


@pytest.fixture
def inbox() -> Inbox:
    """An inbox in memory whose source stores one type."""
    made = Inbox()
    made.deploy(NARROW)
    return made


def test_counts_and_the_last_time_are_shown(cli: Cli, inbox: Inbox) -> None:
    for number in range(12):
        inbox.deliver(f"evt-{number}", type_="voided")
    inbox.deliver("evt-12", type_="created")
    inbox.clock.advance(minutes=5)
    shown = cli("inbox", "ignored")
    assert shown.code == 0
    assert [line.split() for line in shown.out.splitlines()] == [
        ["SOURCE", "TYPE", "COUNT", "LAST"],
        ["acme", "voided", "12", "2026-01-01T00:00:00.011Z"],
        ["acme", "created", "1", "2026-01-01T00:00:00.012Z"],
    ]
    assert shown.err.startswith("Counted since 2025-12-31 (UTC); the events are not stored.")


@pytest.mark.moto
def test_as_json_with_filters(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver("evt-1", type_="invoice.voided")
    inbox.deliver("evt-2", type_="created")
    found = cli("inbox", "ignored", "--type", "invoice.*", "--source", "acme", "--json").objects
    assert found == [
        {
            "source": "acme",
            "type": "invoice.voided",
            "count": 1,
            "last_at": "2026-01-01T00:00:00.000Z",
        }
    ]
    assert cli("inbox", "ignored", "--source", "github", "--json").out == ""


def test_since_and_until_select_days(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver("evt-1", type_="old")
    inbox.clock.advance(minutes=3 * 24 * 60)
    inbox.deliver("evt-2", type_="new")

    def types(*window: str) -> list[str]:
        return [each["type"] for each in cli("inbox", "ignored", *window, "--json").objects]

    assert types() == ["new"]
    assert sorted(types("--since", "3d")) == ["new", "old"]
    assert types("--since", "2026-01-01", "--until", "2026-01-02T12:00:00Z") == ["old"]


def test_nothing_ignored_and_an_unknown_source_are_said(cli: Cli) -> None:
    assert cli("inbox", "ignored").err == "No ignored types since 2025-12-31 (UTC).\n"
    shown = cli("inbox", "ignored", "--source", "acne")
    assert (shown.code, shown.out) == (2, "")
    assert 'did you mean "acme"?' in shown.err


def test_the_types_beyond_the_bound_are_one_row(cli: Cli, inbox: Inbox) -> None:
    for number in range(TYPES + 2):
        inbox.deliver(f"evt-{number}", type_=f"type-{number}")
    assert cli("inbox", "ignored").out.splitlines()[-1].startswith("acme    (other types)  2")
    assert cli("inbox", "ignored", "--json").objects[-1]["type"] is None


def test_a_hostile_type_controls_no_terminal(cli: Cli, inbox: Inbox) -> None:
    counter = IgnoredTypes(inbox.table)
    counter.add("acme", EVIL, inbox.now)
    assert counter.flush(inbox.now) == ""
    for form in ([], ["--json"]):
        assert_harmless(cli("inbox", "ignored", *form))


def test_it_is_shown_locally_as_well(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver("evt-1", type_="voided")
    cli.local = True
    assert "voided" in cli("--local", "inbox", "ignored").out
    assert cli.selected[-1].local
