"""One inbox for all end-to-end tests, since a start takes 15 seconds.

Scenarios with long timeouts start at once and are checked by the last tests.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.inquiry import FRAGILE
from tests.e2e.mail_inbox import MailInbox
from tests.e2e.misfortunes import Misfortunes, set_off
from tests.e2e.whole_inbox import WholeInbox

# Only the fragile lane differs from the template, where the message of a killed worker becomes
# visible after six minutes and the lease of its run ends after more than one. A lease expires 10 s
# after the deadline of its invocation, and the message must not become visible earlier. Two seconds
# of the function's timeout are reserved; a slow machine spends some of the rest on imports. In the
# visibility timeout, the default lane makes a run on a slow machine as well.
FUNCTION_TIMEOUT = 12
VISIBILITY_TIMEOUT = 45


@pytest.fixture(scope="session")
def _started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeInbox]:
    told: list[str] = []
    with WholeInbox(tmp_path_factory.mktemp("whole"), tell=told.append) as running:
        running.stop_schedule()
        _shorten(running)
        yield running
    (tmp_path_factory.getbasetemp() / "whole.log").write_text("\n".join(told))


@pytest.fixture(scope="session")
def misfortunes(_started: WholeInbox, tmp_path_factory: pytest.TempPathFactory) -> Misfortunes:
    """The long-running scenarios, started before the first test."""
    return set_off(_started, tmp_path_factory.mktemp("misfortunes"))


@pytest.fixture(scope="session")
def inbox(_started: WholeInbox, misfortunes: Misfortunes) -> WholeInbox:
    return _started


def _shorten(inbox: WholeInbox) -> None:
    functions = inbox.client("lambda")
    name = inbox.processor(FRAGILE)
    functions.update_function_configuration(FunctionName=name, Timeout=FUNCTION_TIMEOUT)
    inbox.client("sqs").set_queue_attributes(
        QueueUrl=inbox.queue(FRAGILE),
        Attributes={"VisibilityTimeout": str(VISIBILITY_TIMEOUT)},
    )


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MailInbox]:
    """Another inbox, in which each function has the rights of its own role and no others."""
    with MailInbox(tmp_path_factory.mktemp("guarded")) as running:
        running.enrol()
        yield running


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A file that exists: as long as it does, the laboratory's handlers misbehave."""
    file = tmp_path / "gate"
    file.touch()
    return file
