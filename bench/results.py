"""The results of one run: the figures of each round, and what the pages say about them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Final, Self

from bench.deliveries import ROOT
from bench.measuring import Measured
from bench.subjects import BARE

FILE: Final = ROOT / "bench" / "results.json"


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of the rounds, and the least and the greatest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """Returns the spread of at least one value."""
        return cls(median(values), min(values), max(values))


@dataclass(frozen=True, slots=True)
class Step:
    """One measured piece of work: a cell, or a cold start.

    Attributes:
        title: such as "Stripe, 10 KB".
        unit: of the CPU and the wall time, "µs" or "ms".
        cpu: by handler, for each round.
        wall: by handler, for each round of a cold start.
        calls: by handler, the AWS calls of one event.
    """

    title: str
    unit: str
    cpu: dict[str, list[float]]
    wall: dict[str, list[float]]
    calls: dict[str, float]

    @classmethod
    def of(cls, title: str, rounds: Sequence[Mapping[str, Measured]]) -> Self:
        """Returns the figures of some rounds."""
        cold = any(each.wall for each in rounds[0].values())
        unit, factor = ("ms", 1e3) if cold else ("\u00b5s", 1e6)
        names = list(rounds[0])
        return cls(
            title,
            unit,
            {n: [round(each[n].cpu * factor, 1) for each in rounds] for n in names},
            {n: [round(each[n].wall * factor, 1) for each in rounds] for n in names}
            if cold
            else {},
            {n: median(each[n].calls for each in rounds) for n in names},
        )

    def ratio(self, name: str, *, to: str = BARE) -> Spread:
        """Returns a handler's CPU as a ratio to another's, of each round."""
        return Spread.of([a / b for a, b in zip(self.cpu[name], self.cpu[to], strict=True)])

    def time(self, name: str, *, wall: bool = False) -> Spread:
        """Returns a handler's CPU, or its wall time."""
        return Spread.of((self.wall if wall else self.cpu)[name])


@dataclass(frozen=True, slots=True)
class Results:
    """One run."""

    date: str
    machine: str
    python: str
    libraries: dict[str, str]
    steps: tuple[Step, ...]

    @property
    def handlers(self) -> list[str]:
        """The names of the handlers, the inbox first."""
        return list(self.steps[0].cpu)

    @property
    def warm(self) -> Sequence[Step]:
        """The steps but the cold start, which is the last."""
        return self.steps[:-1]

    @property
    def cold(self) -> Step:
        """The cold start."""
        return self.steps[-1]

    @property
    def rounds(self) -> tuple[int, int]:
        """The processes of each handler that were measured warm, and cold."""
        name = self.handlers[0]
        return len(self.warm[0].cpu[name]), len(self.cold.cpu[name])

    def write(self) -> None:
        """Writes the file."""
        FILE.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls) -> Self:
        """Returns the file's results."""
        data: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
        return cls(**{**data, "steps": tuple(Step(**each) for each in data["steps"])})
