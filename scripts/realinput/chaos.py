"""Kills workers in the middle of handlers, and takes the sink away for a while."""

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

# Seconds between two kills, at least and at most: new workers need a few to begin.
BETWEEN_KILLS: Final = (3.5, 5.5)
# The sink stays until workers were killed so often.
KILLS_FIRST: Final = 3
# Long enough for every processor to be in the middle of a handler, waiting for the sink.
FROZEN: Final = 0.8
# Every so many kills ingest's workers go as well.
INGEST_TOO: Final = 2
LOOK: Final = 0.05
CLI_LIMIT: Final = 180
# With this in handlers/__init__.py every handler's attempts are spent in seconds. The examples'
# own backoff would outlast any outage of the sink that this script has the time for.
IMPATIENT: Final = """
from webhook_inbox import routing

routing.BACKOFFS["steady"] = routing.BACKOFFS["fast"]
"""


class Chaos:
    """What goes wrong during a run, counted."""

    def __init__(
        self, inbox: LocalInbox, randomness: random.Random, *, outage: float, end: float
    ) -> None:
        """Takes the inbox to break, the seconds without the sink, and the run's monotonic end."""
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
    def reigning(self, *, when: Callable[[], bool]) -> Iterator[None]:
        """Breaks things while the block runs and until the sink is back; it goes when `when`.

        What workers are killed in the middle of is what the block brings about: it has to last.
        """
        # Or else a killed worker's message would come back after six minutes.
        self._inbox.hurry()
        killer = threading.Thread(target=self._kill_again_and_again)
        thief = threading.Thread(target=self._take_the_sink_away, args=(when,))
        killer.start()
        thief.start()
        try:
            yield
        finally:
            thief.join()
            self._over.set()
            killer.join()

    def _kill_again_and_again(self) -> None:
        while not self._over.wait(self._randomness.uniform(*BETWEEN_KILLS)):
            self.kills += 1
            # What they asked of the sink it does when it thaws, and their answer reaches nobody:
            # the worst moment to die.
            with self._sink, self._inbox.frozen_sink():
                time.sleep(FROZEN)
                self.killed += self._inbox.kill_workers("processor")
            if self.kills % INGEST_TOO == 0:
                self.killed_ingest += self._inbox.kill_workers("ingest")

    def _take_the_sink_away(self, when: Callable[[], bool]) -> None:
        while not (when() and self.kills >= KILLS_FIRST) and time.monotonic() < self._end:
            time.sleep(LOOK)
        # Nobody is killed meanwhile, or nothing would be tried often enough to be given up.
        with self._sink:
            self._inbox.stop_sink()
            time.sleep(self._outage)
            self._inbox.start_sink()


def moved_by_sqs(inbox: LocalInbox, runs: list[Run]) -> bool:
    """Tells whether each run's last message lies in a DLQ under its own id.

    SQS moves a message under the id it has; one that somebody sends gets another.
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
    """Runs the command line against the session whose `.local` is in `home`; returns its JSON."""
    command = [sys.executable, "-m", "webhookctl", *arguments, "--local", "--json"]
    done = subprocess.run(  # noqa: S603 - our own command line
        command, cwd=home, capture_output=True, text=True, timeout=CLI_LIMIT, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
