"""Measures the processor: CPU and wall time per run, and from process start to the first run done.

    python -m bench.processor --processes 5 --runs 200

The function runs as Lambda runs it, in a process of its own, one message per invocation, over the
SDK and HTTP. A stub on loopback answers at once with what moto answered to the same invocation
before. The baseline is a bare handler with boto3 that makes the three calls of a run without
effects (GetItem, two UpdateItem) and writes one log line.
"""

import argparse
import compileall
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.recorded import Answer, Recorded, served
from webhook_inbox.configuration.compile import compile_manifest, write_module

PROJECT: Final = Path(__file__).parent / "projects" / "processor"
FUNCTIONS: Final = Path(__file__).parents[1] / "functions"
BARE: Final = "bare boto3"
# By what a run does: the type of the event, and its handler.
RUNS: Final[Mapping[str, tuple[str, str]]] = {
    "no effect": ("none", "work.plain"),
    "one effect": ("one", "work.effect"),
    "two effects": ("two", "work.effects"),
    "one effect at a destination": ("call", "work.destination"),
}
WARM_UP: Final = 20  # runs, before those that are measured

# Prints seconds: CPU and wall time until the first run is done, then of each later one.
MEASURED: Final = """
import json, resource, sys, time
module, runs, warm_up = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
event = json.load(sys.stdin)

class Context:
    function_name, memory_limit_in_mb, aws_request_id = "processor", 512, "id"
    invoked_function_arn = "arn:aws:lambda:us-east-1:123456789012:function:processor"
    def get_remaining_time_in_millis(self):
        return 60_000

handler = __import__(module, fromlist=["lambda_handler"]).lambda_handler
context = Context()
answer = handler(event, context)
used = resource.getrusage(resource.RUSAGE_SELF)
cold, ended = used.ru_utime + used.ru_stime, time.time()
for _ in range(warm_up):
    handler(event, context)
walls = []
begun = time.process_time()
for _ in range(runs):
    before = time.perf_counter()
    handler(event, context)
    walls.append(time.perf_counter() - before)
cpu = (time.process_time() - begun) / max(runs, 1)
result = {"answer": answer, "cold_cpu": cold, "ended": ended, "cpu": cpu, "walls": walls}
print(json.dumps(result), file=sys.stderr)
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """One process: seconds of CPU and wall time until its first run is done, and of a later one."""

    cold_cpu: float
    cold_wall: float
    cpu: float
    wall: float


@dataclass(frozen=True, slots=True)
class Measurement:
    """The processes of a variant, in the order in which they ran; ratios are to the baseline's.

    A process of each variant runs in each round, so that a ratio compares neighbours in time.
    """

    variant: str
    samples: tuple[Sample, ...]
    baseline: tuple[Sample, ...]

    def seconds(self, field: str) -> tuple[float, float, float]:
        """Returns median, least and most."""
        return _spread([getattr(sample, field) for sample in self.samples])

    def ratio(self, field: str) -> tuple[float, float, float]:
        """Returns median, least and most of the ratios to the baseline in the same round."""
        pairs = zip(self.samples, self.baseline, strict=True)
        return _spread([getattr(own, field) / getattr(base, field) for own, base in pairs])


def measure(*, processes: int = 5, runs: int = 200) -> list[Measurement]:
    """Measures each variant in so many processes, interleaved."""
    with tempfile.TemporaryDirectory() as name:
        built = Path(name) / "functions"
        build(built)
        recorded = {variant: record_run(built, *what) for variant, what in RUNS.items()}
        # The bare handler makes the calls of a run without effects.
        recorded = {BARE: recorded["no effect"], **recorded}
        samples: dict[str, list[Sample]] = {variant: [] for variant in recorded}
        for _ in range(processes):
            for variant, found in recorded.items():
                samples[variant].append(_sample(built, variant, found, runs))
    base = tuple(samples[BARE])
    return [Measurement(variant, tuple(found), base) for variant, found in samples.items()]


def _spread(values: Sequence[float]) -> tuple[float, float, float]:
    return median(values), min(values), max(values)


def build(directory: Path) -> None:
    """Lays the project out with its compiled manifest and its bytecode, as a bundle does."""
    shutil.copytree(PROJECT, directory, ignore=shutil.ignore_patterns("__pycache__"))
    write_module(compile_manifest(directory, stage="local"), directory)
    compileall.compile_dir(directory, quiet=1)


def function_variables(built: Path, **more: str) -> dict[str, str]:
    """Returns the whole environment of a function that is laid out there."""
    own = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join((str(built), str(FUNCTIONS), str(FUNCTIONS.parent))),
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_SESSION_TOKEN": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": "*",
        "POWERTOOLS_SERVICE_NAME": "processor",
        "LAMBDA_TASK_ROOT": str(built),
    }
    return {**own, **more}


def record_run(built: Path, event_type: str, handler: str) -> dict[str, Any]:
    """Returns an invocation of a run, and the answers to its calls."""
    with served(Recorded([])) as url:
        done = subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-m", "bench.recorded", "processor", event_type, handler],
            env=function_variables(built, SINK_URL=url),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, Any] = json.loads(done.stderr)
    return found


def _sample(built: Path, variant: str, recorded: Mapping[str, Any], runs: int) -> Sample:
    answers = Recorded([Answer(**each) for each in recorded["answers"]])
    module = "bare_handler" if variant == BARE else "processor.lambda_function"
    with served(answers) as url:
        environment = {**recorded["environment"], "AWS_ENDPOINT_URL": url, "SINK_URL": url}
        begun = time.time()
        done = subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-c", MEASURED, module, str(runs), str(WARM_UP)],
            input=json.dumps(recorded["event"]),
            env=function_variables(built, **environment),
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode or answers.unknown:
        raise SystemExit(f"{variant}: {answers.unknown}\n{done.stderr}")
    found = json.loads(done.stderr)
    if found["answer"] != {"batchItemFailures": []}:
        raise SystemExit(f"{variant}: {found['answer']}\n{done.stdout}")
    return Sample(
        found["cold_cpu"], found["ended"] - begun, found["cpu"], median(found["walls"] or [0.0])
    )


WIDTH: Final = 34  # of a column
FIELDS: Final[Mapping[str, str]] = {
    "cold_cpu": "CPU to the first run",
    "cold_wall": "time to the first run",
    "cpu": "CPU per run",
    "wall": "time per run",
}


def table(measurements: Sequence[Measurement]) -> list[str]:
    """Returns lines: median, range and ratio to the baseline of each quantity, in ms."""
    lines = ["".join(f"{title:<{WIDTH}}" for title in ("", *FIELDS.values())).rstrip()]
    for found in measurements:
        cells = [found.variant]
        for field in FIELDS:
            middle, least, most = (1000 * value for value in found.seconds(field))
            ratio = found.ratio(field)[0]
            cells.append(f"{middle:.2f} ({least:.2f}-{most:.2f}) {ratio:.2f}x")
        lines.append("".join(f"{cell:<{WIDTH}}" for cell in cells).rstrip())
    return lines


def main() -> None:
    """Measures, and prints a table."""
    parser = argparse.ArgumentParser(description="Measure the processor.")
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args()
    found = measure(processes=options.processes, runs=options.runs)
    sys.stdout.write("\n".join(table(found)) + "\n")


if __name__ == "__main__":
    main()
