"""An operation crosses few files: from its parsed call to the first call of the ledger's table.

Counted are the files of the product that a call enters, without adapters, domain and testing.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import anyio

from tests.unit.support.holding import hold
from tests.webhookctl.commands.conftest import _alone, _one_command_tree, cli, inbox
from tests.webhookctl.commands.stage import Cli, Inbox
from tests.webhookctl.console.browsing import browsing, console_of
from webhook_inbox.adapters.memory import MemoryTable
from webhook_inbox.client.client import InboxClient
from webhook_inbox.client.connection import Selection
from webhook_inbox.client.suggestions import PLAIN
from webhookctl.agents.server import AgentServer

__all__ = ["_alone", "_one_command_tree", "cli", "inbox"]

ROOT = Path(__file__).parents[2]
PRODUCT = ("functions/", "webhookctl/", "webhook_inbox_cdk/")
NOT_COUNTED = ("adapters/", "/domain/", "/testing/")
MOST = 11
TABLE = {
    getattr(MemoryTable, name).__code__
    for name in ("get", "get_many", "query", "query_index", "put", "update", "delete")
}


class Crossing:
    """The files that a call enters, in order, until it calls a method of the table.

    Attributes:
        files: their names.
        is_at_table: whether the call reached the table.
    """

    def __init__(self, file: str, function: str) -> None:
        self._entry = (f"{ROOT}/{file}", function)
        self._begun = False
        self.files: dict[str, None] = {}
        self.is_at_table = False

    def see(self, frame: FrameType, event: str, _: Any) -> None:
        """Notes one call, as a profile function."""
        code = frame.f_code
        self._begun = self._begun or (code.co_filename, code.co_name) == self._entry
        if event != "call" or not self._begun or self.is_at_table:
            return
        self.is_at_table = code in TABLE
        name = code.co_filename.removeprefix(f"{ROOT}/")
        if name.startswith(PRODUCT) and not any(part in name for part in NOT_COUNTED):
            self.files[name] = None


@contextmanager
def path_from(file: str, function: str) -> Iterator[Crossing]:
    """Yields the files from the entry of a function on, in all threads."""
    path = Crossing(file, function)
    threading.setprofile(path.see)
    sys.setprofile(path.see)
    try:
        yield path
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def require_short(path: Crossing) -> None:
    assert path.is_at_table
    assert len(path.files) <= MOST, "\n".join(path.files)


def test_a_replay_by_the_command_line(cli: Cli, inbox: Inbox) -> None:
    inbox.dead()
    with path_from("webhookctl/commands/replay.py", "replay") as path:
        shown = cli("replay", "--status", "dead_letter", "--yes")
    assert shown.code == 0, shown.err
    require_short(path)


def test_a_plan_of_an_agent(cli: Cli, inbox: Inbox) -> None:
    inbox.dead()
    client = InboxClient(cli._connect(Selection()), write=True, clock=inbox.clock)
    server = AgentServer(lambda: client, inbox.clock, PLAIN)
    given = {"status": "dead_letter"}
    with path_from("webhookctl/agents/server.py", "call") as path:
        result = anyio.run(lambda: server.call("plan_replay", given, agent="night-shift"))
    assert not result.is_error
    require_short(path)


def test_an_approval_by_the_console(cli: Cli, inbox: Inbox) -> None:
    request = hold(inbox)
    names = {"event_id": "evt-1", "source": "acme", "handler": request.run.handler}
    with browsing(console_of(cli)) as browser:
        assert browser.get("/approvals").status_code == 200
        with path_from("webhookctl/console/actions.py", "performed") as path:
            answer = browser.submit(
                "/approvals/approve", **names, hold=request.id, reason="looked at it"
            )
    assert "Recorded as approved." in answer.text
    require_short(path)
