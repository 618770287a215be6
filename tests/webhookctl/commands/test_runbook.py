"""`runbook`: prints a section of the page, with commands that can be pasted."""

import tomllib

import pytest

from tests.docs.pages import ROOT
from tests.docs.runbook import sections as on_the_page
from tests.webhookctl.commands.stage import Cli
from webhookctl import runbook

PAGE = on_the_page()


def test_every_section_of_the_page_is_printed_with_its_commands(cli: Cli) -> None:
    """Another test compares the sections of the page with the alarms."""
    assert set(runbook.sections()) - {"runbook"} == {
        name for name, section in PAGE.items() if section.text.count("\n") > 2
    }
    for name in runbook.sections():
        if name != "runbook":
            lines = cli("runbook", name).out.splitlines()
            assert [line for line in PAGE[name].commands if line not in lines] == []


def test_the_wheel_contains_the_page_beside_the_command() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included["docs/runbook.md"] == "webhookctl/runbook.md"
    assert runbook._file() == ROOT / "docs" / "runbook.md"


def test_without_a_section_it_prints_the_start_and_the_names(cli: Cli) -> None:
    shown = cli("runbook")
    assert "webhookctl --stack NAME doctor" in shown.out
    assert "bad-deployment, downstream-down," in shown.out


@pytest.mark.parametrize(
    ("section", "hint"),
    [("dead-letter", 'did you mean "dead-letters"?'), ("zzz", "the sections are bad-deployment,")],
)
def test_an_unknown_section_is_a_usage_error(cli: Cli, section: str, hint: str) -> None:
    shown = cli("runbook", section)
    assert (shown.code, hint in shown.err) == (2, True)


def test_the_commands_have_the_selected_target(cli: Cli) -> None:
    shown = cli("--stack", "Mine", "runbook", "dead-letter-burst")
    assert "webhookctl --stack Mine inbox errors" in shown.out
    assert "NAME" not in shown.out
    assert cli.selected == []


def test_a_terminal_has_folded_lines_that_can_be_pasted(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webhookctl.display.output._width", lambda _: 80)
    shown = cli("runbook", "poison-event").out
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert (
        "webhookctl --stack NAME skip EVENT_ID --handler HANDLER \\\n"
        '  --reason "no order has this payload"\n'
    ) in shown


def test_links_and_emphasis_are_plain_text() -> None:
    section = runbook.RunbookSection(
        "T",
        "**Means**: see [Flood](#flood), [Missing](operate.md#find).\n\n1. one\n   more\n2. two\n\n"
        '```sh\nwebhookctl --stack NAME skip "a b"\n```\n\nend',
    )
    assert [(each.language, each.text) for each in section.parts()] == [
        ("", "Means: see Flood (`runbook flood`), Missing (docs/operate.md#find)."),
        ("", "1. one more"),
        ("", "2. two"),
        ("sh", 'webhookctl --stack NAME skip "a b"'),
        ("", "end"),
    ]
