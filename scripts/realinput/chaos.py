"""Kills workers during handlers and stops the sink for a while."""

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from webhook_inbox.domain.model import Run
from webhookctl.local.inbox import LocalInbox

# The range of seconds between two kills; new workers need a few to start.
BETWEEN_KILLS: Final = (3.5, 5.5)
# The number of kills before the sink is stopped.
KILLS_FIRST: Final = 3
# Long enough for every processor to be in a handler that waits for the sink.
FROZEN: Final = 0.8
# Every second kill includes the workers of ingest.
INGEST_TOO: Final = 2
LOOK: Final = 0.05
CLI_LIMIT: Final = 180
# Appended to handlers/__init__.py so that attempts are exhausted in seconds. The backoff of the
# example handlers would outlast the outage.
IMPATIENT: Final = """
from webhook_inbox.handlers.router import BACKOFFS

BACKOFFS["steady"] = BACKOFFS["fast"]
"""


class Chaos:
    """Injects and counts the faults of a run."""

    def __init__(
        self, inbox: LocalInbox, randomness: random.Random, *, outage: float, end: float
    ) -> None:
        """Takes the inbox, the outage of the sink in seconds, and the run's monotonic end."""
        self._inbox = inbox
        self._randomness = randomness
        self._outage = outage
        self._end = end
        self._over = threading.Event()
        self._sink = threading.Lock()
        self.kills = 0
        self.killed = 0
        self.killed_ingest = 0

    @contextmanager
    def during(self, *, when: Callable[[], bool]) -> Iterator[None]:
        """Injects faults while the block runs and until the sink is up; it stops at `when`.

        The block must generate load long enough for workers to be killed during handlers.
        """
        # Without this the message of a killed worker becomes visible after six minutes only.
        self._inbox.hurry()
        killer = threading.Thread(target=self._kill_repeatedly)
        outage = threading.Thread(target=self._interrupt_sink, args=(when,))
        killer.start()
        outage.start()
        try:
            yield
        finally:
            outage.join()
            self._over.set()
            killer.join()

    def _kill_repeatedly(self) -> None:
        while not self._over.wait(self._randomness.uniform(*BETWEEN_KILLS)):
            self.kills += 1
            # The sink executes the pending calls once it thaws, after their callers have died.
            with self._sink, self._inbox.frozen_sink():
                time.sleep(FROZEN)
                self.killed += self._inbox.kill_workers("processor")
            if self.kills % INGEST_TOO == 0:
                self.killed_ingest += self._inbox.kill_workers("ingest")

    def _interrupt_sink(self, when: Callable[[], bool]) -> None:
        while not (when() and self.kills >= KILLS_FIRST) and time.monotonic() < self._end:
            time.sleep(LOOK)
        # No kills meanwhile; otherwise no run would exhaust its attempts.
        with self._sink:
            self._inbox.stop_sink()
            time.sleep(self._outage)
            self._inbox.start_sink()


def moved_by_sqs(inbox: LocalInbox, runs: list[Run]) -> bool:
    """Returns whether a DLQ has each run's last message under its original id.

    SQS keeps the id of a message that it moves; a message that is sent again gets a new one.
    """
    return {run.message_id for run in runs} <= set(_dead_letters(inbox))


def _dead_letters(inbox: LocalInbox) -> Iterator[str]:
    sqs = inbox.client("sqs")
    for url in json.loads(inbox.outputs["DlqUrls"]).values():
        receipts = []
        while messages := sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=60
        ).get("Messages"):
            yield from (message["MessageId"] for message in messages)
            receipts += [message["ReceiptHandle"] for message in messages]
        for receipt in receipts:
            sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=receipt, VisibilityTimeout=0)


def webhookctl(home: Path, *arguments: str) -> list[dict[str, Any]]:
    """Runs webhookctl against the session whose state is in `home/.local`; returns its JSON."""
    command = [sys.executable, "-m", "webhookctl", *arguments, "--local", "--json"]
    done = subprocess.run(  # noqa: S603 - our own command line
        command, cwd=home, capture_output=True, text=True, timeout=CLI_LIMIT, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
