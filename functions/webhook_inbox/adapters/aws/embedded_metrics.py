"""CloudWatch's embedded metric format: the metrics of an invocation, as lines of its log.

Powertools writes a line for each set of dimensions; here, one line has all values of an invocation
unless they have one dimension with two values. Log lines cost 0.50 dollars per gigabyte.
Source: AWS's specification of the embedded metric format.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from webhook_inbox.domain.metrics import Metric
from webhook_inbox.domain.timestamps import to_ms

# The values that one metric may have in a line.
VALUES: Final = 100
# Sets of names of dimensions.
Sets = tuple[tuple[str, ...], ...]


def _print(line: str) -> None:
    # In one write, since other threads may write lines; flushed, since nothing else flushes the
    # output before a process ends by `os._exit`.
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@dataclass(slots=True)
class _Line:
    """The metrics of one line, and the values of their dimensions."""

    metrics: dict[Metric, tuple[Sets, list[float]]] = field(default_factory=dict)
    dimensions: dict[str, str] = field(default_factory=dict)

    def takes(self, metric: Metric, dimensions: dict[str, str]) -> bool:
        """Tells whether a metric fits: its name is free, and no dimension has another value."""
        return metric not in self.metrics and all(
            self.dimensions.get(name, value) == value for name, value in dimensions.items()
        )


class MetricLines:
    """Collects the values of an invocation and writes them as few lines.

    Without a `dashboard`, the values and the sets of dimensions that only one reads are left out.
    """

    def __init__(
        self, namespace: str, *, dashboard: bool, write: Callable[[str], None] = _print
    ) -> None:
        self._namespace = namespace
        self._dashboard = dashboard
        self._write = write
        self._values: dict[tuple[Metric, Sets, tuple[tuple[str, str], ...]], list[float]] = {}

    def add(self, metric: Metric, value: float = 1, **dimensions: str) -> None:
        """Adds a value.

        Args:
            metric: an entry of the catalogue.
            value: in the metric's unit.
            dimensions: a value for each dimension of the metric; never a caller's text.
        """
        sets = metric.written(dimensions, dashboard=self._dashboard)
        if sets:
            named = tuple(
                (n, v) for n, v in sorted(dimensions.items()) if any(n in s for s in sets)
            )
            self._values.setdefault((metric, sets, named), []).append(value)

    def flush(self, now: datetime) -> None:
        """Writes what was added since the last call; nothing for nothing."""
        for line in self._lines():
            self._write_line(line, now)
        self._values.clear()

    def take(self, now: datetime, *, beside: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the fields of the first line, for a log line to have them, and writes the others.

        CloudWatch reads metrics in every line that is JSON, so one line tells both.

        Args:
            now: the time of the metrics.
            beside: the other fields of the log line; a line with another value of one of them, as
                a dimension, is written by itself.
        """
        taken: dict[str, Any] = {}
        for line in self._lines():
            fits = all(beside.get(name, value) == value for name, value in line.dimensions.items())
            if fits and not taken:
                taken = self._document(line, now)
            else:
                self._write_line(line, now)
        self._values.clear()
        return taken

    def _write_line(self, line: _Line, now: datetime) -> None:
        self._write(json.dumps(self._document(line, now), separators=(",", ":")))

    def _lines(self) -> list[_Line]:
        lines: list[_Line] = []
        for metric, sets, dimensions, values in self._parts():
            line = next((each for each in lines if each.takes(metric, dimensions)), None)
            if line is None:
                lines.append(line := _Line())
            line.metrics[metric] = sets, values
            line.dimensions |= dimensions
        return lines

    def _parts(self) -> Iterator[tuple[Metric, Sets, dict[str, str], list[float]]]:
        for (metric, sets, dimensions), values in self._values.items():
            for start in range(0, len(values), VALUES):
                yield metric, sets, dict(dimensions), values[start : start + VALUES]

    def _document(self, line: _Line, now: datetime) -> dict[str, Any]:
        by_dimensions: dict[Sets, list[Metric]] = {}
        for metric, (sets, _) in line.metrics.items():
            by_dimensions.setdefault(sets, []).append(metric)
        directives = [
            {
                "Namespace": self._namespace,
                "Dimensions": [list(names) for names in sets],
                "Metrics": [{"Name": each.name, "Unit": str(each.unit)} for each in metrics],
            }
            for sets, metrics in by_dimensions.items()
        ]
        return {
            "_aws": {"Timestamp": to_ms(now), "CloudWatchMetrics": directives},
            **line.dimensions,
            **{metric.name: values for metric, (_, values) in line.metrics.items()},
        }
