"""The records of an SQS batch: processed, observed, and kept in the queue where they must be."""

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from aws_lambda_powertools import Logger

from processor.telemetry import correlated, measure, observe
from webhook_inbox.adapters.aws.embedded_metrics import MetricLines
from webhook_inbox.adapters.aws.lambda_events import message_from
from webhook_inbox.adapters.environment import ProcessorEnvironment
from webhook_inbox.adapters.system import ThreadExecutor, ThreadParallel
from webhook_inbox.domain.errors import ForeignMessage
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.ports import IN_TURN, Clock, Parallel
from webhook_inbox.processor.processor import SETTLE_MARGIN, Processor
from webhook_inbox.queue.outcomes import RunOutcome, RunResult, Worker

# A record of an event source mapping.
Record = Mapping[str, Any]


class Records:
    """Handles the records of one worker's batches.

    Each of the `processors` makes one run at a time, and shares no state with the others that a
    run changes; with more than one, a batch may have as many records, which begin together.
    `metrics` makes the metrics of one record.
    """

    def __init__(
        self,
        processors: Sequence[Processor],
        *,
        executor: ThreadExecutor,
        manifest: Manifest,
        clock: Clock,
        logger: Logger,
        metrics: Callable[[], MetricLines],
        redact: Callable[[str], str],
    ) -> None:
        self._processors = processors
        many = len(processors)
        self._parallel: Parallel = ThreadParallel(many) if many > 1 else IN_TURN
        self._executor = executor
        self._manifest = manifest
        self._clock = clock
        self._logger = logger
        self._metrics = metrics
        self._redact = redact

    def handle(
        self, records: Sequence[Record], *, worker: Worker, deadline: datetime
    ) -> list[bool]:
        """Handles the records of an invocation; returns whether the queue must keep each."""
        kept: list[bool] = []
        for start in range(0, len(records), len(self._processors)):
            part = records[start : start + len(self._processors)]
            kept += self._together(part, worker, deadline)
        return kept

    def _together(
        self, records: Sequence[Record], worker: Worker, deadline: datetime
    ) -> list[bool]:
        """Handles as many records as there are processors, at the same time."""

        def handled(pair: tuple[Processor, Record]) -> bool:
            try:
                return self._handled(*pair, worker, deadline)
            finally:
                self._executor.ended()

        left = deadline - SETTLE_MARGIN - self._clock.now()
        self._executor.begin(len(records), seconds=left.total_seconds())
        try:
            return self._parallel.map(handled, zip(self._processors, records, strict=False))
        finally:
            if self._executor.alive:
                # A handler that would not stop must not go on behind its lost lease: the runs are
                # settled, so the process ends, and their messages come back as settled.
                self._logger.error("ending the process: a handler is still running after its time")
                os._exit(1)

    def _handled(
        self, processor: Processor, record: Record, worker: Worker, deadline: datetime
    ) -> bool:
        """Processes a record and logs it with its metrics."""
        keys = correlated(str(record.get("body")))
        # They apply to this thread, and to the handler's, which inherits them.
        self._logger.thread_safe_append_keys(**keys)
        try:
            result = self._processed(processor, record, worker, deadline)
            now, metrics = self._clock.now(), self._metrics()
            measure(metrics, result, self._manifest, now=now)
            observe(
                self._logger,
                result,
                redact=self._redact,
                metrics=lambda fields: metrics.take(now, beside=fields),
            )
            metrics.flush(now)
        finally:
            self._logger.thread_safe_remove_keys(keys)
        return result.keeps_message

    @staticmethod
    def _processed(
        processor: Processor, record: Record, worker: Worker, deadline: datetime
    ) -> RunResult:
        try:
            message = message_from(record)
            return processor.process(message, worker=worker, deadline=deadline)
        except ForeignMessage as error:
            return RunResult(RunOutcome.FOREIGN, detail=str(error))
        except Exception as error:  # noqa: BLE001 - our own fault: raised, it would go unlogged
            return RunResult(RunOutcome.BROKEN, error=error, hide=processor.hide)


def respond(
    event: Mapping[str, Any], handle: Callable[[Sequence[Record]], Sequence[bool]]
) -> Mapping[str, Any]:
    """Handles the records of an invocation; returns the messages that the queue must keep.

    `handle` tells it of each record. An event without records, as a test button sends it, has none.
    """
    records = event.get("Records") or ()
    pairs = zip(records, handle(records), strict=True)
    return {"batchItemFailures": [{"itemIdentifier": r["messageId"]} for r, kept in pairs if kept]}


def deadline_of(context: Any, now: datetime) -> datetime:
    """Returns when this invocation ends."""
    return now + timedelta(milliseconds=context.get_remaining_time_in_millis())


def worker_of(context: Any, environment: ProcessorEnvironment) -> Worker:
    """Returns who this invocation is."""
    name = f"{context.function_name}/{context.aws_request_id}"
    return Worker(name, environment.code_version, environment.lane, environment.max_receive_count)
