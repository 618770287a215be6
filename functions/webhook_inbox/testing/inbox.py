"""An in-memory inbox for handler tests."""

from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webhook_inbox.adapters.memory import ManualClock, MemorySecrets, MemoryTable
from webhook_inbox.adapters.system import SystemClock
from webhook_inbox.domain.manifest import HandlerSpec
from webhook_inbox.domain.model import BATCH, Delivery
from webhook_inbox.handlers.router import Router
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.testing import project, samples
from webhook_inbox.testing.errors import KitError, hidden, unknown
from webhook_inbox.testing.fake import Fake
from webhook_inbox.testing.runs import HandlerRun
from webhook_inbox.testing.runtime import InMemoryRuntime
from webhook_inbox.testing.samples import values
from webhook_inbox.testing.worker import Crash, CrashPlace, Moment, Step

if TYPE_CHECKING:
    from webhook_inbox.client import InboxClient

__tracebackhide__ = hidden


class Inbox:
    """An in-memory inbox.

    Args:
        handlers: the directory with `inbox.toml` and `handlers/`, or routers.
        destinations: fakes by name; every other destination of inbox.toml gets a default fake.
        approvers: the names of the people by group, for `Approval(by=…)`; instead of the groups of
            inbox.toml with these names. No message is sent to them.
        secrets: values by name; every other secret of inbox.toml gets a value. None removes one.
        stage: the stage whose values of inbox.toml apply.
        at: the initial time; now, unless given.

    Attributes:
        destinations: the fakes by name.
        secrets: the secret store; `rotate` and `remove` take effect after a minute, as in
            production.
    """

    def __init__(
        self,
        *handlers: str | Path | Router,
        destinations: Mapping[str, Fake] | None = None,
        approvers: Mapping[str, Collection[str]] | None = None,
        secrets: Mapping[str, str | None] | None = None,
        stage: str = "local",
        at: datetime | None = None,
    ) -> None:
        found = _project(handlers, stage)
        manifest = project.with_destinations(found, destinations or {})
        manifest = project.with_approvers(manifest, approvers or {})
        self._project = project.Project(manifest, found.load, found.root)
        self._clock = ManualClock(at or SystemClock().now().replace(microsecond=0))
        self.destinations = Fakes({name: Fake() for name in manifest.destinations})
        self.destinations |= destinations or {}
        self.secrets = MemorySecrets(values(manifest, secrets or {}))
        self._fresh = 0
        self._runtime = InMemoryRuntime(
            self._project, clock=self._clock, secrets=self.secrets, fakes=self.destinations
        )
        for name, fake in self.destinations.items():
            fake.bind(manifest.destinations[name], self._clock, self._runtime.life)

    def run(
        self,
        handler: str | Callable[..., Any],
        event: samples.Given,
        *,
        event_id: str = "",
        event_type: str | None = None,
        headers: Mapping[str, str] | None = None,
        agent: str = "",
        crash_before: str = "",
        crash_before_commit: str = "",
        crash_after: str | Step = "",
    ) -> HandlerRun:
        """Delivers an event to one handler, makes its first attempt, and returns its run.

        Args:
            handler: its name, or the function itself.
            event: the path of a sample file, the bytes of a body, or its JSON as data.
            event_id: the id, if the body has none; a new one unless given.
            event_type: the type, if neither the body nor the file name has one.
            headers: extra headers by lower-case name, like `traceparent`.
            agent: the sender, for sources that authenticate agents.
            crash_before: see `crash`.
            crash_before_commit: see `crash`.
            crash_after: see `crash`.

        Raises:
            KitError: the request is inconsistent, or the inbox did not accept the event.
        """
        spec = self._spec(handler)
        delivery = self._delivery(spec, event, event_id, event_type, headers or {})
        ends = _place(before=crash_before, before_commit=crash_before_commit, after=crash_after)
        before = {run.event_id for run in self.runs(spec.name)}
        receipt = self._runtime.receive(delivery, handlers=frozenset({spec.name}), agent=agent)
        if receipt.outcome is IngestOutcome.ACCEPTED and not receipt.handlers:
            raise KitError(
                f"{spec.name} takes {', '.join(spec.types)}, and this is {receipt.type!r}: give"
                " event_type=, or another event"
            )
        with Crash(self._runtime.life, ends, "attempt") if ends else nullcontext():
            self._runtime.work()
        if receipt.type == BATCH:
            return self._only([run for run in self.runs(spec.name) if run.event_id not in before])
        return HandlerRun(self._runtime, spec.source, receipt.event_id, spec.name)

    def crash(self, *, before: str = "", before_commit: str = "", after: str | Step = "") -> Crash:
        """Ends a process once, at a place that it reaches within the `with` block.

        The process is the worker, or the operator's command for `Step.APPROVAL`. Others continue.

        Args:
            before: the process dies at this effect before it calls; it is in doubt.
            before_commit: the process dies at this effect after its call; it is in doubt.
            after: the process dies after this effect is committed, or after this `Step`.

        Raises:
            KitError: no process reached the place.
        """
        place = _place(before=before, before_commit=before_commit, after=after)
        if place is None:
            raise KitError("give the place of the crash: before=, before_commit= or after=")
        return Crash(self._runtime.life, place, "block")

    def verify(self) -> None:
        """Raises KitError if a scripted response of a fake was not used; names the test's line."""
        unused = [
            f"{text} of {name!r} was not used"
            for name, fake in self.destinations.items()
            for text in fake.unused
        ]
        if unused:
            raise KitError("; ".join(unused))

    def runs(self, handler: str | Callable[..., Any]) -> list[HandlerRun]:
        """Returns a handler's runs, in no order."""
        name = self._spec(handler).name
        rows = [row for row in self._runtime.table if row["sk"] == f"run#{name}"]
        return [HandlerRun(self._runtime, row["source"], row["event_id"], name) for row in rows]

    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> None:
        """Advances the clock and processes everything due on the way."""
        span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        self._runtime.pass_time(span)

    def settle(self) -> None:
        """Advances the clock until every run is done, skipped, dead or held.

        Raises:
            KitError: a run still waits after 2,000 steps in time.
        """
        self._runtime.settle()

    @property
    def now(self) -> datetime:
        """The time."""
        return self._clock.now()

    @property
    def client(self) -> "InboxClient":
        """The operations on the inbox, as `webhook_inbox.client` offers them for a stack.

        Workers process what an operation sends while it waits, or when the test advances the time.
        There are no secrets to change, no alarms and no depth of queues in memory.
        """
        return self._runtime.client

    @property
    def table(self) -> MemoryTable:
        """The ledger's table, for anything that the kit does not offer."""
        return self._runtime.table

    def _delivery(
        self,
        spec: HandlerSpec,
        event: samples.Given,
        event_id: str,
        event_type: str | None,
        headers: Mapping[str, str],
    ) -> Delivery:
        root = self._project.root
        made = samples.draft(event, spec, type_=event_type, event_id=event_id, near=root)
        source = self._project.manifest.sources[spec.source]
        self._fresh += 1
        return samples.delivery(made, source, headers, fresh=f"evt-{self._fresh}", now=self.now)

    def _spec(self, handler: str | Callable[..., Any]) -> HandlerSpec:
        known = self._project.manifest.handlers
        if isinstance(handler, str):
            found = [known[handler]] if handler in known else []
        else:
            place = handler.__module__.rpartition(".")[2], handler.__qualname__
            found = [spec for spec in known.values() if (spec.module, spec.function) == place]
        if len(found) != 1:
            if isinstance(handler, str):
                raise unknown("handler", handler, known)
            raise KitError(f"{handler!r} is not one handler of: {', '.join(known)}")
        return found[0]

    @staticmethod
    def _only(found: list[HandlerRun]) -> HandlerRun:
        if len(found) != 1:
            raise KitError(f"the batch has {len(found)} such events: use inbox.runs(…)")
        return found[0]


def _place(*, before: str, before_commit: str, after: str | Step) -> CrashPlace | None:
    """Returns the place of a crash, None without one."""
    if isinstance(after, Step):
        given = [CrashPlace(after)]
    else:
        given = [CrashPlace(Moment.COMMITTED, after)] if after else []
    given += [CrashPlace(Moment.STARTED, before)] if before else []
    given += [CrashPlace(Moment.HAPPENED, before_commit)] if before_commit else []
    if len(given) > 1:
        raise KitError("a worker dies once: give one place of a crash")
    return given[0] if given else None


class Fakes(dict[str, Fake]):
    """Fakes by name."""

    def __missing__(self, name: str) -> Fake:
        raise unknown("destination", name, self)


def _project(handlers: tuple[str | Path | Router, ...], stage: str) -> project.Project:
    routers = [each for each in handlers if isinstance(each, Router)]
    if routers and len(routers) == len(handlers):
        return project.from_routers(routers)
    if len(handlers) == 1 and isinstance(handlers[0], str | Path):
        return project.from_directory(Path(handlers[0]), stage=stage)
    raise KitError('give the directory of the handlers, as Inbox("functions"), or routers')
