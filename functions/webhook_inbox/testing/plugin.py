"""The pytest plugin: the fixtures `inbox` and `fake`.

    def test_an_order_is_noted(inbox, fake):
        fake("crm").answers(503)
        run = inbox.run("shop.note", {"id": "o-1"}, event_type="order.paid").settle()
        assert (run.status, len(fake("crm").done)) == ("done", 1)

A fixture of the same name in a test module or conftest.py replaces one of these.
"""

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Final

import pytest

# Imports nothing until a test uses a fixture.
from webhook_inbox import testing

_CREATED: Final = pytest.StashKey["testing.Inbox"]()
_PLACES: Final = ("functions", ".")


@pytest.fixture
def inbox(request: pytest.FixtureRequest) -> "testing.Inbox":
    """An inbox of the project's handlers and inbox.toml; every destination is a Fake.

    The project is the nearest directory above the test, up to pytest's rootdir, that has
    `functions/inbox.toml` or `inbox.toml`. A test that passes although a
    scripted response of a fake was not used fails.
    """
    created = testing.Inbox(_functions(request.path, request.config.rootpath))
    request.node.stash[_CREATED] = created
    return created


@pytest.fixture
def fake(inbox: "testing.Inbox") -> "Callable[[str], testing.Fake]":
    """Returns the Fake of a destination of inbox.toml: `fake("crm")`."""
    return inbox.destinations.__getitem__


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fails a test that leaves a scripted response unused."""
    result = yield
    created = item.stash.get(_CREATED, None)
    if created is not None:
        _verify(created)
    return result


def _verify(created: "testing.Inbox") -> None:
    try:
        created.verify()
    except testing.KitError as error:
        # Without a traceback: the text names the test's line.
        pytest.fail(str(error), pytrace=False)


def _functions(test: Path, root: Path) -> Path:
    for directory in test.parents:
        # Handlers above may be another user's, and the fixture imports them.
        if not directory.is_relative_to(root):
            break
        for place in _PLACES:
            if (directory / place / "inbox.toml").is_file():
                return directory / place
    raise testing.KitError(
        f"no functions/inbox.toml above {test} in {root}: run pytest in the project's directory, or"
        " define a fixture `inbox` that returns Inbox(…)"
    )
