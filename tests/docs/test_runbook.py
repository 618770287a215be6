"""The runbook has a section for each alarm and each failure class, with commands that exist."""

import re

import pytest

from tests.docs.runbook import PROGRAM, sections, words_of
from tests.infra.test_alarms_page import GUARDED, OFFERING, declared
from tests.webhookctl.commands.every_command import EFFECTS
from webhookctl import runbook

FAILURE_CLASSES = (
    "downstream-down",
    "bad-deployment",
    "changed-payload",
    "unknown-type",
    "bad-secret",
    "two-senders-on-one-secret",
    "a-proxy-that-changes-bodies",
    "stolen-secret",
    "poison-event",
    "provider-outage-with-backlog",
    "flood",
)
DECLARED = {each.id: each for each in declared("serial", sources=(GUARDED, OFFERING))}
FIRST = {each.anchor: each.first for each in DECLARED.values()}
GROUPS = {"failure-classes", "alarms"}


def test_the_sections_are_the_alarms_and_the_failure_classes() -> None:
    assert set(sections()) == {*FIRST, *FAILURE_CLASSES, *GROUPS}


@pytest.mark.parametrize("name", DECLARED)
def test_a_text_has_only_commands_of_its_section_and_the_one_that_prints_it(name: str) -> None:
    alarm = DECLARED[name]
    first, page = re.findall(r"`([^`]+)`", alarm.description("NAME"))
    assert first == sections()[alarm.anchor].commands[0]
    assert page == f"{PROGRAM}runbook {alarm.anchor}"
    assert alarm.anchor in runbook.sections()


@pytest.mark.parametrize("anchor", FIRST)
def test_the_first_command_changes_nothing(anchor: str) -> None:
    [command] = [
        name for name in EFFECTS if FIRST[anchor] == name or FIRST[anchor].startswith(f"{name} ")
    ]
    assert EFFECTS[command] == "read"


@pytest.mark.parametrize("anchor", FIRST)
def test_the_first_command_of_a_section_is_the_alarm_s(anchor: str) -> None:
    assert sections()[anchor].commands[0] == PROGRAM + FIRST[anchor]


@pytest.mark.parametrize("anchor", [*FIRST, *FAILURE_CLASSES])
def test_a_section_says_how_to_know_that_it_is_over_and_what_not_to_do(anchor: str) -> None:
    text = " ".join(sections()[anchor].text.split())
    assert "**Over** when " in text
    assert "**Do not** " in text
    assert anchor in FAILURE_CLASSES or ("**Means**: " in text and "**Do**: " in text)


def test_every_command_names_the_stack() -> None:
    commands = [command for each in sections().values() for command in each.commands]
    assert len(commands) > 80
    assert [each for each in commands if not each.startswith(PROGRAM)] == []


def test_no_section_replays_without_a_filter() -> None:
    for section in sections().values():
        for command in section.commands:
            first, *words = words_of(command)
            assert first != "replay" or set(words) - {"--yes"}, command
