"""Replays that run in the background of the console, each with its progress."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from threading import Thread
from typing import Any, Final

from webhook_inbox.replay.report import SENT
from webhookctl.commands.replay import replay
from webhookctl.console.commands import Told, perform
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.errors import explain

# The replays that are remembered; their rows in the audit stay.
REMEMBERED: Final = 20


def sent_of(report: Mapping[str, Any]) -> int:
    """Returns the runs of a report that were sent, or would be."""
    return sum(report["counts"].get(outcome, 0) for outcome in SENT)


@dataclass
class ReplayJob:
    """One replay of a selection.

    Attributes:
        selection: the id of the selection.
        first: how many runs it sends as a canary, None for all.
        rate: runs per second.
        force: whether it repeats finished runs.
        told: its progress and its report.
        error: why it failed, "" unless it did.
        running: whether it goes on.
    """

    selection: str
    first: int | None
    rate: float
    force: bool
    told: Told = field(default_factory=Told)
    error: str = ""
    running: bool = True

    @property
    def report(self) -> dict[str, Any] | None:
        """The report at its end."""
        return self.told.objects[-1] if self.told.objects else None

    @property
    def sent(self) -> int:
        """The runs that its report counts as sent."""
        return sent_of(self.report) if self.report else 0

    @property
    def left(self) -> timedelta | None:
        """How long sending takes at its rate from now on; None while it waits for outcomes."""
        if self.told.what == "ended":
            return None
        return timedelta(seconds=max(self.told.total - self.told.done, 0) / self.rate)


class ReplayJobs:
    """The replays of one console; each is a thread, and the replay function does the work."""

    def __init__(self) -> None:
        self._jobs: dict[str, ReplayJob] = {}
        self._numbers = count(1)

    def start(
        self,
        inbox: ConsoleInbox,
        selection: str,
        *,
        first: int | None,
        rate: float,
        reason: str,
        force: bool,
    ) -> int:
        """Starts a replay and returns its number."""
        job, number = ReplayJob(selection, first, rate, force), next(self._numbers)
        self._jobs[str(number)] = job
        self._jobs.pop(str(number - REMEMBERED), None)
        values = {"selection": selection, "first": first, "rate": rate, "reason": reason}
        values |= {"force": force, "yes": True}
        # The connection of now: the one of a later call may be another's.
        call = inbox.call

        def work() -> None:
            try:
                perform(call, replay, job.told, values)
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
            job.told.stopped = True
