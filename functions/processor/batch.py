"""One record of an SQS batch: processed, observed, and kept in the queue where it must be."""

import os
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from aws_lambda_powertools import Logger

from processor.telemetry import correlated, measure, observe
from webhook_inbox.adapters.aws.embedded_metrics import MetricLines
from webhook_inbox.adapters.aws.lambda_events import message_from
from webhook_inbox.adapters.environment import ProcessorEnvironment
from webhook_inbox.adapters.system import ThreadExecutor
from webhook_inbox.domain.errors import ForeignMessage
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.ports import Clock
from webhook_inbox.processor.processor import Processor
from webhook_inbox.queue.outcomes import RunOutcome, RunResult, Worker

# A record of an event source mapping.
Record = Mapping[str, Any]


class Records:
    """Handles the records of one worker's batches."""

    def __init__(
        self,
        processor: Processor,
        *,
        executor: ThreadExecutor,
        manifest: Manifest,
        clock: Clock,
        logger: Logger,
        metrics: MetricLines,
        redact: Callable[[str], str],
    ) -> None:
        self._processor = processor
        self._executor = executor
        self._manifest = manifest
        self._clock = clock
        self._logger = logger
        self._metrics = metrics
        self._redact = redact

    def handle(self, record: Record, *, worker: Worker, deadline: datetime) -> bool:
        """Handles one record; returns whether the queue must keep its message."""
        # The keys apply to the process, since the handler runs in another thread; the mapping has
        # batches of one message.
        with self._logger.append_context_keys(**correlated(str(record.get("body")))):
            result = self._processed(record, worker, deadline)
            now = self._clock.now()
            measure(self._metrics, result, self._manifest, now=now)
            observe(
                self._logger,
                result,
                redact=self._redact,
                metrics=lambda fields: self._metrics.take(now, beside=fields),
            )
            self._metrics.flush(now)
        if self._executor.alive:
            # A handler that would not stop must not go on behind its lost lease: the run is
            # settled, so the process ends, and its message comes back as settled.
            self._logger.error("ending the process: a handler is still running after its time")
            os._exit(1)
        return result.keeps_message

    def _processed(self, record: Record, worker: Worker, deadline: datetime) -> RunResult:
        try:
            message = message_from(record)
            return self._processor.process(message, worker=worker, deadline=deadline)
        except ForeignMessage as error:
            return RunResult(RunOutcome.FOREIGN, detail=str(error))
        except Exception as error:  # noqa: BLE001 - our own fault: raised, it would go unlogged
            return RunResult(RunOutcome.BROKEN, error=error)


def respond(event: Mapping[str, Any], handle: Callable[[Record], bool]) -> Mapping[str, Any]:
    """Handles the records of an invocation; returns the messages that the queue must keep.

    `handle` tells it of each record. An event without records, as a test button sends it, has none.
    """
    kept = [record["messageId"] for record in event.get("Records") or () if handle(record)]
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in kept]}


def deadline_of(context: Any, now: datetime) -> datetime:
    """Returns when this invocation ends."""
    return now + timedelta(milliseconds=context.get_remaining_time_in_millis())


def worker_of(context: Any, environment: ProcessorEnvironment) -> Worker:
    """Returns who this invocation is."""
    name = f"{context.function_name}/{context.aws_request_id}"
    return Worker(name, environment.code_version, environment.lane, environment.max_receive_count)
