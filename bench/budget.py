"""The time until a provider has its answer, step by step, for some memory sizes of ingest.

A seeded simulation of deliveries of a new 1 KB event of Stripe. The CPU is measured and divided by
Lambda's share of a vCPU; what AWS's services take is published or assumed, as each step says.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil, exp, log
from typing import Final

from bench.results import Results
from bench.subjects import INBOX

# MB; with 1,769 a function has one vCPU, with less the share of it.
# https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
ONE_CPU: Final = 1769
MEMORIES: Final = (512, 1024, ONE_CPU)
INGEST: Final = 512  # MB
COLD: Final = 0.01
DELIVERIES: Final = 200_000
SHARES: Final = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
# The 99 % quantile of the normal distribution.
Z99: Final = 2.3263


@dataclass(frozen=True, slots=True)
class Latency:
    """A service's latency in ms, lognormal, by its median and its p99; `basis` is its source."""

    step: str
    median: float
    p99: float
    basis: str
    cold: bool = False

    def draw(self, chance: random.Random) -> float:
        """Returns one latency."""
        return self.median * exp(chance.gauss(0, log(self.p99 / self.median) / Z99))


BLOG: Final = "https://aws.amazon.com/blogs/compute"
SERVICES: Final = (
    Latency(
        "API Gateway",
        5,
        10,
        f"[p99 below 10 ms]({BLOG}/building-better-apis-http-apis-now-generally-available/),"
        " AWS 2020; the median is assumed",
    ),
    Latency("Lambda: route to a warm environment", 3, 15, "assumed; AWS publishes none"),
    Latency(
        "DynamoDB: PutItem",
        5,
        15,
        "AWS publishes [single-digit milliseconds]"
        "(https://aws.amazon.com/blogs/database/understanding-amazon-dynamodb-latency/)"
        " and no percentile; both are assumed",
    ),
    Latency("SQS: SendMessageBatch", 8, 30, "assumed; AWS publishes none"),
    Latency("new environment, bundle, runtime", 120, 400, "assumed; AWS publishes none", cold=True),
    Latency("3 TLS connections, GetSecretValue", 30, 100, "assumed; AWS publishes none", cold=True),
)
CPU_WARM: Final = "ingest's CPU"
CPU_COLD: Final = "ingest's CPU until the first answer"
ALL: Final = "a warm delivery"
EVERY: Final = f"any delivery, {COLD:.0%} of them cold"

# Dollars a GB-second in the cache, and a GB restored: the page names the source.
CACHED: Final = 0.0000015046
RESTORED: Final = 0.0001397998
# Dollars of Lambda on arm64, us-east-1; the init phase is billed as well.
GB_SECOND: Final = 0.0000133334

# ms by the names of SHARES.
Percentiles = Mapping[str, float]


def budget(results: Results, memory: int) -> dict[str, Percentiles]:
    """Returns the percentiles of each step, of warm deliveries and of all."""
    share = min(memory / ONE_CPU, 1)
    [warm] = [step.cpu[INBOX] for step in results.warm if step.title == "Stripe, 1 KB"]
    cold = results.cold.cpu[INBOX]
    chance = random.Random(DELIVERIES)  # noqa: S311 - not for secrets
    drawn: dict[str, list[float]] = {}
    for number in range(DELIVERIES):
        # A process of the measurement stands for one environment.
        steps = dict(_steps(chance, chance.choice(warm) / 1e3 / share, cold=False))
        steps[ALL] = sum(steps.values())
        if number < COLD * DELIVERIES:
            cpu = chance.choice(cold) / share
            more = dict(_steps(chance, cpu, cold=True))
            # A cold start's CPU includes that of its first delivery.
            steps |= {**more, EVERY: steps[ALL] - steps[CPU_WARM] + sum(more.values())}
        else:
            steps[EVERY] = steps[ALL]
        for name, taken in steps.items():
            drawn.setdefault(name, []).append(taken)
    return {name: _percentiles(values) for name, values in drawn.items()}


def snapstart(results: Results) -> Mapping[str, float]:
    """Returns dollars: for a version's cache in 30 days, and for a million deliveries' cold starts.

    Those are their restores, and the CPU that the restores replace.
    """
    colds, cpu = COLD * 1_000_000, results.cold.time(INBOX).median / 1e3
    gb = INGEST / 1024
    return {
        "CACHE": CACHED * gb * 30 * 86_400,
        "RESTORES": RESTORED * gb * colds,
        "COLD_CPU": GB_SECOND * colds * cpu * ONE_CPU / 1024,
    }


def _steps(chance: random.Random, cpu: float, *, cold: bool) -> Iterator[tuple[str, float]]:
    yield (CPU_COLD if cold else CPU_WARM), cpu
    for service in SERVICES:
        if service.cold == cold:
            yield service.step, service.draw(chance)


def _percentiles(values: list[float]) -> Percentiles:
    ordered = sorted(values)
    return {name: ordered[ceil(share * len(ordered)) - 1] for name, share in SHARES.items()}
