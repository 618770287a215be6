"""An inbox with the storm's handlers, four workers a lane, and a sink that can be killed."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from tests.e2e.inquiry import Inquiry
from tests.waiting import eventually
from webhook_inbox.domain.model import Status
from webhookctl.local.inbox import LocalInbox
from webhookctl.local.ports import LOOPBACK, accepts, free_port

HERE = Path(__file__).parent
WORKERS = 4
SENDERS = 4


class Storm(LocalInbox, Inquiry):
    """A running inbox; `journal` is what its sink was asked for."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "sink"
        self._directory.mkdir()
        self._sink_port = free_port()
        self._child: subprocess.Popen[bytes] | None = None
        super().__init__(HERE / "functions", state=directory / "state")

    def __enter__(self) -> Self:
        self.raise_sink()
        self._closing.callback(self.kill_sink)
        super().__enter__()
        functions = self.client("lambda")
        for mapping in functions.list_event_source_mappings()["EventSourceMappings"]:
            functions.update_event_source_mapping(
                UUID=mapping["UUID"], ScalingConfig={"MaximumConcurrency": WORKERS}
            )
        return self

    def copy_functions(self) -> None:
        super().copy_functions()
        settings = self.functions / "inbox.toml"
        given = (HERE / "functions" / "inbox.toml").read_text()
        assert f"{LOOPBACK}:8788" in given
        settings.write_text(given.replace(f"{LOOPBACK}:8788", f"{LOOPBACK}:{self._sink_port}"))

    # -- the sink

    def raise_sink(self) -> None:
        """Starts the sink; it knows what it did before it was killed."""
        command = [sys.executable, str(HERE / "sink.py"), str(self._sink_port)]
        self._child = subprocess.Popen([*command, str(self._directory)])
        eventually(lambda: accepts(self._sink_port), what="the sink")

    def kill_sink(self) -> None:
        """Kills the sink, in the middle of whatever it does."""
        if self._child is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child.pid, signal.SIGKILL)
            self._child.wait()
            self._child = None

    def mood(self, **moods: str) -> None:
        """Tells the sink how to treat requests below a path, from the next one on."""
        fresh = self._directory / "mood.new"
        fresh.write_text(json.dumps({f"/{path}": mood for path, mood in moods.items()}))
        fresh.replace(self._directory / "mood")

    def journal(self, path: str) -> list[dict[str, Any]]:
        """Returns the requests for a path, in order."""
        lines = (self._directory / "journal").read_text().splitlines()
        return [entry for entry in map(json.loads, lines) if entry["path"] == path]

    def done(self, path: str) -> dict[str, int]:
        """Returns how often the sink did what it was asked for, by event."""
        counts: dict[str, int] = defaultdict(int)
        for entry in self.journal(path):
            counts[entry["body"]["event"]] += entry["did"]
        return counts

    # -- events

    def send(self, type_: str, contents: Iterable[dict[str, Any]]) -> None:
        """Delivers events, several at once; each content names its event."""

        def one(content: dict[str, Any]) -> None:
            answer = self.deliver("storm", type_, content, event_id=content["event"])
            assert answer.status in {200, 202}, answer

        with ThreadPoolExecutor(SENDERS) as pool:
            for future in [pool.submit(one, content) for content in contents]:
                future.result()

    def statuses(self, ids: Iterable[str], handler: str) -> dict[str, Status | None]:
        """Returns the status of each event's run of a handler."""
        found = {id_: self.runs("storm", id_).get(handler) for id_ in ids}
        return {id_: run.status if run else None for id_, run in found.items()}

    def ended(self, ids: Iterable[str], handler: str) -> dict[str, Status]:
        """Waits until every run has ended or waits for a person, and returns how."""
        left, ended = set(ids), {}
        over = {Status.DONE, Status.SKIPPED, Status.HELD, Status.DEAD_LETTER}

        def look() -> bool:
            for id_, status in self.statuses(sorted(left), handler).items():
                if status in over:
                    ended[id_] = status
                    left.discard(id_)
            return not left

        eventually(look, what=f"{handler} of all events")
        return ended
