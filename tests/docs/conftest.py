"""The handlers page, opened at a section."""

from collections.abc import Iterator

import pytest

from tests.docs.handlers_page import Chapter, Open, built, sections


@pytest.fixture
def opened() -> Iterator[Open]:
    """Opens chapters; every handler of each has to be run in the test."""
    chapters: list[Chapter] = []

    def open_(title: str) -> Chapter:
        section = sections()[title]
        chapters.append(Chapter(section, built(section)))
        return chapters[-1]

    yield open_
    for chapter in chapters:
        assert chapter.declared == chapter.ran, f"not run of {chapter.section.title!r}"
