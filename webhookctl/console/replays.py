"""Replays that run in the background of the console, each with its progress."""

from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from threading import Thread
from typing import Final

from webhook_inbox.client.replays import ReplayOptions, RunningReplay
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.display.replay import resumption
from webhookctl.errors import explain

# The replays that are remembered; their rows in the audit stay.
REMEMBERED: Final = 20


@dataclass
class ReplayJob:
    """One replay of a selection.

    Attributes:
        replay: the replay.
        error: why it failed, "" unless it did.
        note: how to resume it, "" unless it was stopped while it sent.
        waits: whether it waits for the outcome of its canary.
        running: whether it goes on.
    """

    replay: RunningReplay
    error: str = ""
    note: str = ""
    waits: bool = False
    running: bool = True

    @property
    def left(self) -> timedelta:
        """How long sending takes at its rate from now on."""
        replay = self.replay
        return timedelta(seconds=max(replay.total - replay.done, 0) / replay.plan.options.rate)

    def run(self) -> None:
        """Sends the runs, and waits for the outcome of a canary."""
        replay = self.replay
        for _ in replay:
            pass
        if replay.stopped:
            self.note = resumption(replay)
        elif replay.has_canary:
            self.waits = True
            for _ in replay.wait():
                pass
        if replay.error is not None:
            raise replay.error


class ReplayJobs:
    """The replays of one console; each is a thread, and the replay function does the work."""

    def __init__(self) -> None:
        self._jobs: dict[str, ReplayJob] = {}
        self._numbers = count(1)

    def start(
        self, inbox: ConsoleInbox, selection: str, options: ReplayOptions, *, first: int | None
    ) -> int:
        """Starts a replay and returns its number."""
        client, by = inbox.client, inbox.actor
        plan = client.replays.resume(selection, options, by=by)
        job, number = ReplayJob(client.replays.start(plan, by=by, first=first)), next(self._numbers)
        self._jobs[str(number)] = job
        self._jobs.pop(str(number - REMEMBERED), None)

        def work() -> None:
            try:
                job.run()
            except Exception as error:  # noqa: BLE001 - shown on the page of the replay
                job.error = explain(error)
            finally:
                inbox.changed()
                job.running = False

        # A console that ends does not wait: the function ends its step, the rest stays selected.
        Thread(target=work, name=f"replay {number}", daemon=True).start()
        return number

    def get(self, number: str) -> ReplayJob | None:
        """Returns a replay, None if it is not remembered."""
        return self._jobs.get(number)

    def stop(self, number: str) -> None:
        """Stops a replay after its present step."""
        job = self.get(number)
        if job is not None:
            job.replay.stop()
