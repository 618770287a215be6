"""docs/providers.md says what the providers do."""

import pytest

from scripts import providers
from scripts.providers import Entry
from webhook_inbox.providers import MODULES

ENTRIES = providers.entries()
EVERY = [pytest.param(entry, id=entry.name) for entry in ENTRIES]


def test_the_page_is_fresh() -> None:
    assert providers.FILE.read_text(encoding="utf-8") == providers.render(), (
        "run `python -m scripts.providers`"
    )


def test_every_provider_has_its_section() -> None:
    text = providers.render()

    assert {entry.name for entry in ENTRIES} == MODULES.keys() - {providers.DECLARED}
    assert all(f"\n## {entry.name}\n" in text for entry in ENTRIES)


@pytest.mark.parametrize("entry", EVERY)
def test_a_provider_names_the_source_of_its_facts(entry: Entry) -> None:
    assert entry.source, f"providers/{MODULES[entry.name]}.py: its docstring has no `Source: …`"


@pytest.mark.parametrize("entry", EVERY)
def test_a_window_that_is_judged_is_told(entry: Entry) -> None:
    if entry.provider.window is not None:
        assert entry.facts.window != "none", f"providers/{MODULES[entry.name]}.py: tells no window"


@pytest.mark.parametrize("entry", EVERY)
def test_a_handshake_that_is_answered_is_told(entry: Entry) -> None:
    provider = entry.provider
    if provider.greet or provider.handshake or provider.offer:
        assert entry.facts.handshake.partition(" ")[0] != "none"


def test_answers_that_differ_from_the_usual_are_told() -> None:
    text = providers.render()

    discord = text.partition("\n## discord\n")[2].partition("\n## ")[0]
    adyen = text.partition("\n## adyen\n")[2].partition("\n## ")[0]
    assert "| answers | 401 to `malformed` |" in discord
    assert "| answers | every 2xx is 200 with `[accepted]` |" in adyen


def test_a_bar_in_a_fact_does_not_end_its_cell() -> None:
    lines = [line for line in providers.render().splitlines() if line.startswith("| ")]

    cells = {line.replace("\\|", "").count("|") for line in lines}
    assert cells == {3, 7}
