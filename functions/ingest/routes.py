"""Routes a request: a delivery, a job's completion, an event's status, or an approval link."""

from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import import_module
from typing import Any, Final

from ingest.http import receive, response
from ingest.log import JsonLog
from ingest.telemetry import observe
from webhook_inbox.adapters.aws.embedded_metrics import MetricLines
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.metrics import INGEST_FAILURES
from webhook_inbox.domain.ports import Ports
from webhook_inbox.ingest.ingest import Ingest

COMPLETIONS: Final = "/completions/"
STATUS: Final = "/status/"
APPROVALS: Final = "/approvals/"
WEBHOOKS: Final = "/webhooks/"
UNAVAILABLE: Final = 503

Answer = Callable[[Mapping[str, Any]], dict[str, Any]]


class Routes:
    """Answers HTTP API events."""

    def __init__(
        self,
        ingest: Ingest,
        manifest: Manifest,
        ports: Ports,
        *,
        logger: JsonLog,
        metrics: MetricLines,
    ) -> None:
        self._ingest = ingest
        self._manifest = manifest
        self._ports = ports
        self._clock = ports.clock
        self._logger = logger
        self._metrics = metrics

    def answer(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the HTTP API response (payload format 2.0); never raises."""
        # A manual invocation may send any payload.
        path = str(event.get("rawPath")) if isinstance(event, Mapping) else ""
        # The source or the tenant of a delivery may have the name of another route.
        path = path.partition(WEBHOOKS)[0]
        if COMPLETIONS in path:
            return self._count(self._complete(event))
        if STATUS in path:
            return self._count(self._read(event))
        if APPROVALS in path and self._manifest.approvers:
            return self._count(self._approve(event))
        begun = self._clock.now()
        receipt = receive(self._ingest, event, begun)
        taken = self._clock.now() - begun
        answer = response(receipt)
        observe(self._logger, receipt, self._metrics, begun=begun, taken=taken)
        return answer

    def _count(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Counts an answer without a delivery if ingest failed; their 503 has no other cause."""
        if answer["statusCode"] == UNAVAILABLE:
            self._metrics.add(INGEST_FAILURES)
            self._metrics.flush(self._clock.now())
        return answer

    @cached_property
    def _complete(self) -> Answer:
        # Loaded at the first completion, since deliveries do not need it.
        completing = import_module("ingest.completions").Completing(
            self._manifest, self._ports, logger=self._logger
        )
        answer: Answer = completing.answer
        return answer

    @cached_property
    def _read(self) -> Answer:
        # Loaded at the first status, as above.
        reading = import_module("ingest.event_status").StatusReading(
            self._ingest.statuses, clock=self._clock, logger=self._logger
        )
        answer: Answer = reading.answer
        return answer

    @cached_property
    def _approve(self) -> Answer:
        # Loaded at the first approval link, as above.
        approving = import_module("ingest.approvals").Approving(
            self._manifest, self._ports, logger=self._logger
        )
        answer: Answer = approving.answer
        return answer
