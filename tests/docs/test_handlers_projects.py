"""Every section of docs/handlers.md is a complete project with what the page shows, and no more."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from webhook_inbox_cdk.contents import processor_requirements

from tests.docs.handlers_page import Section, sections
from tests.docs.pages import ROOT
from tests.docs.test_handlers_tour import CHAPTER
from webhook_inbox.configuration.check_warnings import warnings
from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.domain.manifest import SPLIT, Manifest

TABLE = re.compile(r"^\[(.+)\]\n(?:[^\[\n].*\n)*", re.MULTILINE)
TEST = re.compile(r"^def test_.*\Z", re.MULTILINE | re.DOTALL)
KIT = re.compile(r"^from webhook_inbox\.testing import .*$", re.MULTILINE)
WITH_CODE = [title for title, section in sections().items() if section.python]


def module(section: Section) -> str:
    """Returns the handlers module of a section: its Python without tests."""
    blocks = [block.text for block in section.python if "from handlers." not in block.text]
    return "\n\n".join(KIT.sub("", TEST.sub("", text)) for text in blocks)


def inbox_toml(section: Section) -> str:
    """Returns the section's tables, and those of the tour that it does not show."""
    own, tour = section.inbox_toml, sections()[CHAPTER].inbox_toml
    shown = {found[1] for found in TABLE.finditer(own)}
    rest = [found[0] for found in TABLE.finditer(tour) if found[1] not in shown]
    return "\n".join((own, *rest))


def compiled(section: Section, top: Path) -> tuple[Path, Manifest]:
    """Writes a section's project and returns its `functions/` with the manifest."""
    functions = top / "functions"
    (functions / "handlers").mkdir(parents=True)
    (functions / "handlers" / "__init__.py").write_text('MODULES = ("shop",)\n')
    (functions / "handlers" / "shop.py").write_text(module(section), encoding="utf-8")
    (functions / "inbox.toml").write_text(inbox_toml(section), encoding="utf-8")
    files = processor_requirements(functions)
    return functions, compile_manifest(functions, stage="local", requirements=files)


@pytest.mark.parametrize("title", WITH_CODE)
def test_a_section_is_a_complete_project(title: str, tmp_path: Path) -> None:
    section = sections()[title]
    functions, manifest = compiled(section, tmp_path)

    declared = len(re.findall(r"^@?\w+\.on\(", module(section), re.MULTILINE))
    assert len(manifest.handlers.keys() - {SPLIT}) == declared
    # A section about the source "agents" has no handlers of the tour's source.
    if any(spec.source == "shop" for spec in manifest.handlers.values()):
        assert warnings(functions, manifest) == []


def test_the_tours_test_passes_in_its_project(tmp_path: Path) -> None:
    section = sections()[CHAPTER]
    functions, _ = compiled(section, tmp_path)
    [block] = [block for block in section.python if "from handlers." in block.text]
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_shop.py").write_text(block.text, encoding="utf-8")
    paths = (functions, ROOT / "functions", ROOT)

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_shop.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
