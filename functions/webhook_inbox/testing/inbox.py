"""An inbox in memory, for tests of handlers."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from webhook_inbox.adapters.memory import ManualClock, MemorySecrets, MemoryTable
from webhook_inbox.adapters.system import SystemClock
from webhook_inbox.domain.manifest import HandlerSpec
from webhook_inbox.domain.model import BATCH, Delivery, Overview
from webhook_inbox.domain.ports import Item, Key
from webhook_inbox.handlers.router import Router
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.testing import project, samples
from webhook_inbox.testing.fake import Fake, KitError
from webhook_inbox.testing.operators import Operators
from webhook_inbox.testing.runs import Run
from webhook_inbox.testing.runtime import InMemoryRuntime
from webhook_inbox.testing.samples import values
from webhook_inbox.testing.worker import Moment


class Inbox:
    """An inbox in memory.

    Args:
        handlers: the directory that has `inbox.toml` and `handlers/`, or routers.
        destinations: fakes by name, for what `ctx.http` calls; every destination of inbox.toml
            has one anyway.
        secrets: values by name; every secret of inbox.toml has one anyway. None takes it away.
        stage: whose values of inbox.toml count.
        at: the time at the beginning; now, unless given.

    Attributes:
        destinations: the fakes by name.
        secrets: where secrets are read from; `rotate` and `remove` change them, and the change
            is seen after a minute, as in production.
    """

    def __init__(
        self,
        *handlers: str | Path | Router,
        destinations: Mapping[str, Fake] | None = None,
        secrets: Mapping[str, str | None] | None = None,
        stage: str = "local",
        at: datetime | None = None,
    ) -> None:
        found = _project(handlers, stage)
        manifest = project.with_destinations(found.manifest, destinations or {})
        self._project = project.Project(manifest, found.load, found.root)
        self._clock = ManualClock(at or SystemClock().now().replace(microsecond=0))
        self.destinations = {name: Fake() for name in manifest.destinations} | dict(
            destinations or {}
        )
        self.secrets = MemorySecrets(values(manifest, secrets or {}))
        self._machinery = InMemoryRuntime(
            self._project, clock=self._clock, secrets=self.secrets, fakes=self.destinations
        )
        self._deliveries: dict[tuple[str, str], tuple[Delivery, str, str]] = {}
        for name, fake in self.destinations.items():
            fake.bind(manifest.destinations[name], self._clock, self._machinery.life)

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
        crash_after: str = "",
    ) -> Run:
        """Delivers an event to one handler, makes its first attempt, and returns its run.

        Args:
            handler: its name, or the function itself.
            event: a sample file's path, a body's bytes, or its JSON as data.
            event_id: its id, where the body does not say it; a fresh one unless given.
            event_type: its type, where neither body nor file name says it.
            headers: sent with it, by names in lower case, like `traceparent`.
            agent: who sent it, for sources that know their callers apart.
            crash_before: the effect at which the worker dies before it calls; it is in doubt.
            crash_before_commit: the effect at which it dies once it has called; it is in doubt.
            crash_after: the effect after which it dies, once that is recorded.

        Raises:
            KitError: the test asks for what cannot be.
        """
        spec = self._spec(handler)
        delivery = self._delivery(spec, event, event_id, event_type, headers or {})
        moments = {
            Moment.STARTED: crash_before,
            Moment.HAPPENED: crash_before_commit,
            Moment.COMMITTED: crash_after,
        }
        ends = [(effect, moment) for moment, effect in moments.items() if effect]
        if len(ends) > 1:
            raise KitError("a worker dies once: give one crash_…")
        before = {run.event_id for run in self.runs(spec.name)}
        receipt = self._machinery.receive(delivery, handlers=frozenset({spec.name}), agent=agent)
        if receipt.outcome is IngestOutcome.ACCEPTED and not receipt.handlers:
            raise KitError(
                f"{spec.name} takes {', '.join(spec.types)}, and this is {receipt.type!r}: give"
                " event_type=, or another event"
            )
        known = spec.source, receipt.event_id
        self._deliveries[known] = delivery, spec.name, agent
        self._machinery.life.expect(ends[0] if ends else None)
        self._machinery.work()
        if self._machinery.life.ends is not None:
            raise KitError(
                f"the attempt did not come to the effect {ends[0][0]!r}; it came to:"
                f" {', '.join(self._machinery.life.names) or 'none'}"
            )
        if receipt.type == BATCH:
            return self._only([run for run in self.runs(spec.name) if run.event_id not in before])
        return Run(self, *known, spec.name)

    def runs(self, handler: str | Callable[..., Any]) -> list[Run]:
        """Returns a handler's runs, in no order."""
        name = self._spec(handler).name
        rows = [row for row in self._machinery.table if row["sk"] == f"run#{name}"]
        return [Run(self, row["source"], row["event_id"], name) for row in rows]

    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> None:
        """Lets time pass, and what is due meanwhile happen."""
        span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        self._machinery.pass_time(span)

    def settle(self) -> None:
        """Lets time pass until every run is done, skipped, dead or held.

        Raises:
            KitError: one waits and waits.
        """
        self._machinery.settle()

    @property
    def now(self) -> datetime:
        """The time."""
        return self._clock.now()

    @property
    def table(self) -> MemoryTable:
        """The ledger's table, for what the kit has no word for."""
        return self._machinery.table

    # -- what runs ask for

    @property
    def operators(self) -> Operators:
        """What people do with runs."""
        return self._machinery.operators

    def work(self) -> None:
        """Does what can be done now, without letting time pass."""
        self._machinery.work()

    def redeliver(self, source: str, event_id: str) -> str:
        """Delivers an event once more, as its provider may; returns what came of it."""
        first, name, agent = self._deliveries[source, event_id]
        # The gateway gives each its own id: what has the same is one delivery, sent on twice.
        delivery = replace(first, received_at=self.now, request_id=f"again-{self.now}")
        handlers = frozenset({name})
        outcome = self._machinery.receive(delivery, handlers=handlers, agent=agent).outcome
        self._machinery.work()
        return str(outcome)

    def overview(self, source: str, event_id: str) -> Overview:
        """Returns what the ledger knows of an event."""
        found = self._machinery.ledger.overview(source, event_id, now=self.now)
        if found is None:
            raise KitError(f"the ledger has no event {event_id!r} of {source!r}: it has expired")
        return found

    def effect_row(self, row: Mapping[str, Any]) -> tuple[Key, Item]:
        """Returns an effect's row, which several events may share."""
        key = Key(row["shared"], "effect") if "shared" in row else Key(row["pk"], row["sk"])
        return key, self.table.get(key) or dict(row)

    def starts(self, key: Key) -> int:
        """Returns how often an effect was started."""
        return self._machinery.life.starts.get(key, 0)

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
        fresh = f"evt-{len(self._deliveries) + 1}"
        return samples.delivery(made, source, headers, fresh=fresh, now=self.now)

    def _spec(self, handler: str | Callable[..., Any]) -> HandlerSpec:
        known = self._project.manifest.handlers
        if isinstance(handler, str):
            found = [known[handler]] if handler in known else []
        else:
            place = handler.__module__.rpartition(".")[2], handler.__qualname__
            found = [spec for spec in known.values() if (spec.module, spec.function) == place]
        if len(found) != 1:
            raise KitError(f"{handler!r} is no one handler; there are: {', '.join(known)}")
        return found[0]

    @staticmethod
    def _only(found: list[Run]) -> Run:
        if len(found) != 1:
            raise KitError(f"the batch has {len(found)} such events: look at inbox.runs(…)")
        return found[0]


def _project(handlers: tuple[str | Path | Router, ...], stage: str) -> project.Project:
    routers = [each for each in handlers if isinstance(each, Router)]
    if routers and len(routers) == len(handlers):
        return project.from_routers(routers)
    if len(handlers) == 1 and isinstance(handlers[0], str | Path):
        return project.from_directory(Path(handlers[0]), stage=stage)
    raise KitError('give the directory of the handlers, as Inbox("functions"), or routers')
