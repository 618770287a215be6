"""docs/console.md shows every page of the menu, and its images are those of the command."""

import re

import pytest

from scripts.screenshots import IMAGES, LARGEST, SHOTS
from tests.docs.pages import DOCS
from webhookctl.console.views import MENU

PAGE = (DOCS / "console.md").read_text(encoding="utf-8")
NAMED = re.findall(r"\]\(images/([\w-]+)\.png\)", PAGE)


def test_each_image_is_shown_once_and_made_by_the_command() -> None:
    assert sorted(NAMED) == sorted(shot.name for shot in SHOTS)
    assert {path.stem for path in IMAGES.glob("*.png")} == {*NAMED}


@pytest.mark.parametrize("name", NAMED)
def test_an_image_is_small(name: str) -> None:
    image = (IMAGES / f"{name}.png").read_bytes()
    assert image.startswith(b"\x89PNG")
    assert len(image) <= LARGEST


@pytest.mark.parametrize(("title", "path"), MENU)
def test_each_page_of_the_menu_has_a_section_with_its_image(title: str, path: str) -> None:
    section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    assert f"](images/{path.strip('/') or 'overview'}.png)" in section
