"""`python -m bench`: measures, prints two tables, and writes the pages."""

import argparse
import os
import platform
import sys
import tempfile
from datetime import UTC, datetime
from importlib.metadata import distributions
from pathlib import Path
from typing import Final

from bench import page
from bench.measuring import CELLS, Laboratory, stub
from bench.results import Results, Step
from bench.subjects import VENV, build

WARM_ROUNDS: Final = 7
COLD_ROUNDS: Final = 15
SOURCES: Final = {"stripe": "Stripe", "github": "GitHub"}
LIBRARIES: Final = ("boto3", "botocore", "aws-lambda-powertools", "fastapi", "mangum")


def measure(warm_rounds: int, cold_rounds: int) -> Results:
    """Returns the results of a run."""
    versions = _versions()
    with tempfile.TemporaryDirectory() as name, stub() as aws:
        subjects = build(Path(name, "task"))
        laboratory = Laboratory(subjects, aws, Path(name))
        warm = []
        for number in range(warm_rounds):
            _say(f"warm: process {number + 1} of {warm_rounds} of each handler")
            warm.append(laboratory.warm(number))
        cold = []
        for number in range(cold_rounds):
            _say(f"cold: process {number + 1} of {cold_rounds} of each handler")
            cold.append(laboratory.cold(number))
    _say("")
    titles = {cell: f"{SOURCES[cell[0]]}, {cell[1]}" for cell in CELLS}
    steps = [Step.of(title, [found[cell] for found in warm]) for cell, title in titles.items()]
    return Results(
        date=datetime.now(UTC).date().isoformat(),
        machine=f"{_processor()}, {os.cpu_count()} cores, {platform.system()}",
        python=subjects.python,
        libraries=versions,
        steps=(*steps, Step.of("cold start", cold)),
    )


def _processor() -> str:
    """Returns the processor's name, as Linux tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def _versions() -> dict[str, str]:
    """Returns the versions of the libraries that the baselines load."""
    [libraries] = map(str, VENV.glob("lib/python*/site-packages"))
    found = {
        each.name.lower().replace("_", "-"): each.version
        for each in distributions(path=[libraries])
    }
    return {name: found[name] for name in LIBRARIES}


def _say(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measures ingest.")
    parser.add_argument("--render", action="store_true", help="write the pages of the last run")
    if not parser.parse_args().render:
        measure(WARM_ROUNDS, COLD_ROUNDS).write()
    results = Results.read()
    sys.stdout.write(page.terminal(results))
    for path in page.write(results):
        sys.stdout.write(f"wrote {path.relative_to(Path.cwd())}\n")


if __name__ == "__main__":
    main()
