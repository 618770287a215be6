"""Replays that run in the background of the console, each with its progress."""

from dataclasses import dataclass, field
from itertools import count
from threading import Thread
from typing import Any, Final

from webhookctl.commands.replay import replay
from webhookctl.console.commands import Told, perform
from webhookctl.errors import explain
from webhookctl.invocation import Invocation

# The replays that are remembered; their rows in the audit stay.
REMEMBERED: Final = 20


@dataclass
class ReplayJob:
    """One replay of a selection.

    Attributes:
        selection: the id of the selection.
        first: how many runs it sends as a canary, None for all.
        told: its progress and its report.
        error: why it failed, "" unless it did.
        running: whether it goes on.
    """

    selection: str
    first: int | None
    told: Told = field(default_factory=Told)
    error: str = ""
    running: bool = True

    @property
    def report(self) -> dict[str, Any] | None:
        """The report at its end."""
        return self.told.objects[-1] if self.told.objects else None


class ReplayJobs:
    """The replays of one console; each is a thread, and the replay function does the work."""

    def __init__(self) -> None:
        self._jobs: dict[int, ReplayJob] = {}
        self._numbers = count(1)

    def start(
        self, call: Invocation, selection: str, *, first: int | None, rate: float, reason: str
    ) -> int:
        """Starts a replay and returns its number."""
        job, number = ReplayJob(selection, first), next(self._numbers)
        self._jobs[number] = job
        self._jobs.pop(number - REMEMBERED, None)
        values = {"selection": selection, "first": first, "rate": rate, "reason": reason}

        def work() -> None:
            try:
                perform(call, replay, job.told, {**values, "yes": True})
            except Exception as error:  # noqa: BLE001 - shown on the page of the replay
                job.error = explain(error)
            finally:
                job.running = False

        # A console that ends does not wait: the function ends its step, the rest stays selected.
        Thread(target=work, name=f"replay {number}", daemon=True).start()
        return number

    def get(self, number: str) -> ReplayJob | None:
        """Returns a replay, None if it is not remembered."""
        return self._jobs.get(int(number)) if number.isdecimal() else None

    def stop(self, number: str) -> None:
        """Stops a replay after its present step."""
        job = self.get(number)
        if job is not None:
            job.told.stopped = True
