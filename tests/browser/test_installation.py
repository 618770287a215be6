"""The tests find a Chromium, or install the pinned one; another archive is refused."""

import os
from pathlib import Path
from typing import Any

import pytest

from scripts import browser

NPM = """#!/bin/sh
[ "$1 $2" = "pack axe-core@4.14.1" ] || exit 1
echo forged > "$5/axe-core-4.14.1.tgz"
"""


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that is all of PATH, and nothing is installed."""
    monkeypatch.setattr(browser, "HOME", tmp_path / "installed")
    monkeypatch.setattr(browser, "NAMES", ("chromium",))
    monkeypatch.delenv(browser.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_the_variable_precedes_the_path(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = program(alone / "chromium", "#!/bin/sh\n")
    assert browser.chromium() == browser.Chromium(found, {})
    monkeypatch.setenv(browser.VARIABLE, "/opt/other")
    assert browser.chromium() == browser.Chromium(Path("/opt/other"), {})


def test_a_program_that_does_not_start_is_passed_over(alone: Path) -> None:
    program(alone / "chromium", "#!/bin/sh\nexit 1\n")
    assert browser.chromium() is None


def test_the_installed_browser_has_its_own_libraries_and_font(alone: Path) -> None:
    home = browser.CHROMIUM.home
    home.mkdir(parents=True)
    found = browser.chromium()
    assert found is not None
    assert found.path == home / "chromium"
    assert found.environment["LD_LIBRARY_PATH"] == str(home / "lib")
    assert found.environment["FONTCONFIG_FILE"] == str(home / "fonts.conf")


def test_another_archive_than_the_pinned_one_is_refused(alone: Path) -> None:
    program(alone / "npm", NPM)
    with pytest.raises(browser.BrowserError, match=r"axe-core@4\.14\.1 is not the archive"):
        browser.install()
    assert not browser.AXE.home.exists()
    assert list(browser.HOME.iterdir()) == []


@pytest.mark.parametrize(
    ("npm", "text"),
    [
        (None, "npm is missing: install Node"),
        ("#!/bin/sh\necho no route >&2; exit 1\n", "npm cannot fetch axe-core@4.14.1: no route"),
    ],
)
def test_a_failure_of_npm_names_its_cause(alone: Path, npm: str | None, text: str) -> None:
    if npm is not None:
        program(alone / "npm", npm)
    with pytest.raises(browser.BrowserError, match=text):
        browser.install()


def test_ci_fails_without_a_browser(
    alone: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nothing(_: Any) -> None: ...

    monkeypatch.setattr(browser, "_install", nothing)
    assert browser.main() == 1
    assert "does not start: name another in $CHROMIUM" in capsys.readouterr().err
    assert os.environ["PATH"] == str(alone)
