"""CloudWatch's evaluation of an alarm, for the properties that a template gives it.

Follows https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/AlarmThatSendsEmail.html: an
alarm is evaluated each minute over windows that end then; where periods have no value, it looks at
two periods more, and treats as missing only what is missing of the periods that it needs. Every
function, statistic or treatment that no alarm uses raises an error.
"""

import ast
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tests.infra.template import Properties, named

Value = float | None
# Periods that CloudWatch reads beyond those that it evaluates, in the documentation's example.
BEYOND = 2


class AlarmState(StrEnum):
    """CloudWatch's states of an alarm."""

    OK = "OK"
    ALARM = "ALARM"
    INSUFFICIENT_DATA = "INSUFFICIENT_DATA"


@dataclass(frozen=True)
class Source:
    """One metric of an alarm; `id` is its name in the expression."""

    id: str
    namespace: str
    name: str
    dimensions: Mapping[str, str]
    statistic: str
    period: int

    @property
    def key(self) -> tuple[str, str, frozenset[tuple[str, str]]]:
        return self.namespace, self.name, frozenset(self.dimensions.items())


@dataclass
class Recorded:
    """The values of metrics by time in seconds."""

    values: dict[Any, list[tuple[float, float]]] = field(default_factory=dict)

    def add(self, source: Source, at: float, *values: float) -> None:
        self.values.setdefault(source.key, []).extend((at, value) for value in values)

    def window(self, source: Source, end: float) -> Value:
        """The statistic over a period that ends then, None without a value."""
        start = end - source.period
        found = [v for at, v in self.values.get(source.key, ()) if start <= at < end]
        return statistic(source.statistic, found) if found else None


def statistic(name: str, values: Sequence[float]) -> float:
    known: dict[str, Callable[[Sequence[float]], float]] = {
        "Sum": sum,
        "Maximum": max,
        "SampleCount": len,
    }
    if name in known:
        return known[name](values)
    if re.fullmatch(r"p\d+(\.\d+)?", name):
        rank = math.ceil(float(name[1:]) / 100 * len(values))
        return sorted(values)[max(rank, 1) - 1]
    raise ValueError(f"unknown statistic {name}")


def sources(alarm: Properties) -> list[Source]:
    """The metrics of an alarm; m1 for the metric of an alarm without an expression."""
    if "Metrics" not in alarm:
        kind = alarm.get("Statistic") or alarm["ExtendedStatistic"]
        return [_source("m1", alarm, kind, alarm["Period"])]
    return [
        _source(each["Id"], each["MetricStat"]["Metric"], stat["Stat"], stat["Period"])
        for each in alarm["Metrics"]
        if (stat := each.get("MetricStat"))
    ]


def expression(alarm: Properties) -> str:
    """The metric math of an alarm, "" without."""
    found = [each["Expression"] for each in alarm.get("Metrics", ()) if "Expression" in each]
    returned = [each for each in alarm.get("Metrics", ()) if each.get("ReturnData") is not False]
    assert len(returned) <= 1
    return found[0] if found else ""


def _source(name: str, metric: Mapping[str, Any], kind: str, period: int) -> Source:
    dimensions = {each["Name"]: named(each["Value"]) for each in metric.get("Dimensions", ())}
    return Source(name, metric["Namespace"], metric["MetricName"], dimensions, kind, period)


def state(alarm: Properties, recorded: Recorded, now: float) -> AlarmState:
    """The state that CloudWatch computes at a time, in seconds."""
    periods = alarm["EvaluationPeriods"]
    found = _series(alarm, recorded, now, periods + BEYOND)
    enough = alarm.get("DatapointsToAlarm", periods)
    real = [value for value in found if value is not None]
    if not real and alarm["TreatMissingData"] == "missing":
        return AlarmState.INSUFFICIENT_DATA
    if len(real) >= periods:
        breaching = sum(_breaches(alarm, value) for value in real[-periods:])
    else:
        breaching = sum(_breaches(alarm, value) for value in real)
        breaching += _filled(alarm["TreatMissingData"], periods - len(real))
    return AlarmState.ALARM if breaching >= enough else AlarmState.OK


def _filled(treatment: str, number: int) -> int:
    known = {"breaching": number, "notBreaching": 0, "missing": 0}
    if treatment not in known:
        raise ValueError(f"unknown treatment {treatment}")
    return known[treatment]


def _breaches(alarm: Properties, value: float) -> bool:
    compare = alarm["ComparisonOperator"]
    known = {
        "GreaterThanOrEqualToThreshold": value >= alarm["Threshold"],
        "LessThanOrEqualToThreshold": value <= alarm["Threshold"],
    }
    if compare not in known:
        raise ValueError(f"unknown comparison {compare}")
    return bool(known[compare])


def _series(alarm: Properties, recorded: Recorded, now: float, number: int) -> list[Value]:
    """The values of the latest periods, oldest first."""
    found = sources(alarm)
    [period] = {each.period for each in found}
    # DIFF needs the value before the first one.
    ends = [now - place * period for place in range(number, -1, -1)]
    by_name = {each.id: [recorded.window(each, end) for end in ends] for each in found}
    text = expression(alarm)
    if not text:
        [only] = by_name.values()
        return only[1:]
    return evaluate(text, by_name)[1:]


def evaluate(text: str, series: Mapping[str, list[Value]]) -> list[Value]:
    """The result of metric math, with a value for each period of the series."""
    length = len(next(iter(series.values())))
    return _evaluated(ast.parse(text, mode="eval").body, series, length)


def _evaluated(tree: ast.expr, series: Mapping[str, list[Value]], length: int) -> list[Value]:
    match tree:
        case ast.Name(id=name):
            return series[name]
        case ast.Constant(value=int() | float() as value):
            return [float(value)] * length
        case ast.BinOp(left=left, op=op, right=right):
            return _each(_arithmetic(op), *_all([left, right], series, length))
        case ast.Compare(left=left, ops=[ast.GtE()], comparators=[right]):
            return _each(lambda a, b: float(a >= b), *_all([left, right], series, length))
        case ast.Call(func=ast.Name(id=name), args=[*parts]):
            listed = parts[0].elts if isinstance(parts[0], ast.List) else parts
            return _called(name, _all(listed, series, length))
    raise ValueError(f"unknown metric math: {ast.unparse(tree)}")


def _called(name: str, parts: list[list[Value]]) -> list[Value]:
    match name, parts:
        case "SUM" | "MAX", _:
            return _across(sum if name == "SUM" else max, parts)
        case "DIFF", [part]:
            return _diff(part)
        case "IF", [condition, when, otherwise]:
            return [_chosen(*row) for row in zip(condition, when, otherwise, strict=True)]
    raise ValueError(f"unknown function {name}")


def _all(
    parts: Iterable[ast.expr], series: Mapping[str, list[Value]], length: int
) -> list[list[Value]]:
    return [_evaluated(part, series, length) for part in parts]


def _arithmetic(op: ast.operator) -> Callable[[float, float], float]:
    match op:
        case ast.Mult():
            return lambda a, b: a * b
        case ast.Div():
            return lambda a, b: a / b
        case ast.Sub():
            return lambda a, b: a - b
    raise ValueError(f"unknown operator {op}")


def _each(compute: Callable[[float, float], float], a: list[Value], b: list[Value]) -> list[Value]:
    """A value only where both series have one."""
    return [
        None if left is None or right is None else compute(left, right)
        for left, right in zip(a, b, strict=True)
    ]


def _across(
    combine: Callable[[Iterable[float]], float], parts: Sequence[list[Value]]
) -> list[Value]:
    """The sum or maximum of the series that have a value in a period."""
    rows = ([value for value in row if value is not None] for row in zip(*parts, strict=True))
    return [combine(row) if row else None for row in rows]


def _diff(series: list[Value]) -> list[Value]:
    """The change since the value before, whenever that was."""
    found: list[Value] = []
    before: Value = None
    for value in series:
        found.append(None if value is None or before is None else value - before)
        before = before if value is None else value
    return found


def _chosen(condition: Value, when: Value, otherwise: Value) -> Value:
    if condition is None:
        return None
    return when if condition else otherwise
