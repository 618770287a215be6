"""The pages name what exists: links, paths, limits, providers, packages, alarms."""

import re
from pathlib import Path

import pytest
from webhook_inbox_cdk.queue import DEAD_RETENTION, RETENTION

from tests.architecture.test_imports import contracts
from tests.docs.pages import (
    DEPLOY,
    DOCS,
    EVERY,
    GUIDES,
    README,
    ROOT,
    START,
    TEXTS,
    anchors,
)
from webhook_inbox.domain.manifest import HandlerSpec
from webhook_inbox.ledger.schema import EVENT_LIFE, ID_LIMIT, RUN_LIFE
from webhook_inbox.providers import DECLARED, MODULES

ARCHITECTURE = DOCS / "architecture.md"
LIBRARY = ROOT / "functions" / "webhook_inbox"
# The pages show how to write these.
TO_BE_WRITTEN = {
    "functions/handlers/shop.py",
    "functions/handlers/shipments.py",
    "tests/test_shipments.py",
    "tests/test_shop.py",
}


def flat(page: Path) -> str:
    return " ".join(TEXTS[page].split())


def test_the_readme_is_short() -> None:
    lines = TEXTS[README].splitlines()
    assert lines.index("## Status") - lines.index("## Quick start") <= 105
    assert "We have never deployed" in flat(DEPLOY)
    assert "we have never deployed this project to a real AWS account" in flat(README)


@pytest.mark.parametrize("page", EVERY, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", TEXTS[page]):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), link


@pytest.mark.parametrize("page", [*GUIDES, ARCHITECTURE], ids=lambda page: page.name)
def test_every_path_it_names_is_there(page: Path) -> None:
    named = re.findall(
        r"`((?:functions|stacks|events|docs|tests|webhookctl|webhook_inbox_cdk|simulation)/[\w./-]*)`",
        TEXTS[page],
    )
    written = {path for path in named if path not in TO_BE_WRITTEN and "NAME" not in path}
    assert {path for path in written if not (ROOT / path).exists()} == set()


def test_the_limits_are_the_code_s() -> None:
    defaults = HandlerSpec("n", "m", "f", "s", ("*",))
    for claim in (
        f"kept for {EVENT_LIFE.days} days, their runs for {RUN_LIFE.days}",
        f"keeps messages for {RETENTION} days",
        f"queue for {DEAD_RETENTION}.",
        f"over {ID_LIMIT} bytes",
        f"up to {defaults.timeout:.0f} s by default",
    ):
        assert claim in flat(DEPLOY)
    assert f"{defaults.max_attempts} attempts over up to 9.8 hours" in flat(START)


def test_the_providers_are_counted() -> None:
    count = f"{len(MODULES.keys() - DECLARED)} providers"
    assert count in flat(README)
    assert count in flat(START)
    providers = TEXTS[DOCS / "providers.md"]
    assert all(f"`{name}`" in providers for name in MODULES.keys() - DECLARED)


# -- architecture


def test_every_package_of_the_library_has_a_line() -> None:
    packages = {path.parent.name for path in LIBRARY.glob("*/__init__.py")}
    section = TEXTS[ARCHITECTURE].partition("## Packages")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == packages
    assert f"has {len(packages)} packages" in section
    assert f"{len(packages)} packages" in TEXTS[README]


def test_every_library_path_of_the_architecture_is_there() -> None:
    section = TEXTS[ARCHITECTURE].partition("## Where each kind of change goes")[2]
    named = [path for path in re.findall(r"`(\w+/[\w./]*)`", section) if "NAME" not in path]
    assert named
    for path in named:
        assert (ROOT / path).exists() or (LIBRARY / path).exists(), path


def test_the_layers_are_those_of_the_contract() -> None:
    [layers] = [
        each["layers"] for each in contracts() if each.get("containers") == ["webhook_inbox"]
    ]
    section = TEXTS[ARCHITECTURE].partition("## Import rules")[2].partition("\n## ")[0]
    written = " ".join(section.partition("only lower ones:")[2].partition(".")[0].split())
    assert [set(re.findall(r"`(\w+)`", layer)) for layer in written.split(";")] == [
        set(layer.split(" | ")) for layer in layers
    ]


# -- operating


def test_every_guarantee_has_a_line() -> None:
    text = TEXTS[DOCS / "guarantees.md"]
    assert re.findall(r"^\| (G\d+) \|", text, re.MULTILINE) == [f"G{n}" for n in range(1, 11)]
