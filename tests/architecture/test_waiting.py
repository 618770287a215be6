"""Tests wait for states with `tests.waiting`, and compare no figures of the wall clock.

A test that sleeps, or that bounds elapsed time, fails by the machine's other work.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CLOCKS = {"sleep", "monotonic", "perf_counter"}
ALLOWED = {
    "waiting.py": "waits for every state",
    "stopwatch.py": "leaves out the time in which others had the processors",
    "e2e/functions/handlers/lab.py": "a handler that waits for a file",
    "functions/handlers/lab.py": "a handler that hangs",
    "functions/test_ingest_outages.py": "calls to AWS that all take long",
    "package/lambda_runtime.py": "waits for an answer while its process lives",
    "proof/incident/provider.py": "sends at a rate",
    "proof/incident/scene.py": "a bad deployment that lasts as long as an option says",
    "proof/storm/sink.py": "stalls as scripted",
    "proof/test_incidents.py": "outlasts a pause of the cache of secrets",
}


def clocks(source: str) -> Iterator[str]:
    """Yields the functions of the wall clock that a module uses, and deadlines of hypothesis."""
    nodes = list(ast.walk(ast.parse(source)))
    imported = {alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names}
    for node in nodes:
        match node:
            case ast.ImportFrom(module="time", names=names):
                yield from (alias.name for alias in names if alias.name in CLOCKS)
            case ast.Attribute(value=ast.Name(id="time"), attr=name) if "time" in imported:
                yield from {name} & CLOCKS
            case ast.Call(func=ast.Name(id="settings"), keywords=keywords):
                yield from (k.arg for k in keywords if k.arg == "deadline")


def test_tests_wait_for_states() -> None:
    sources = {p.relative_to(TESTS).as_posix(): p.read_text() for p in TESTS.rglob("*.py")}
    found = {name: list(clocks(source)) for name, source in sources.items()}
    assert {name for name, names in found.items() if names} == set(ALLOWED)


@pytest.mark.parametrize(
    "source",
    [
        "import time\ntime.sleep(1)",
        "from time import monotonic",
        "import time\nassert time.perf_counter() - begun < 1",
        "@settings(deadline=200)\ndef test(): ...",
    ],
)
def test_a_clock_is_found(source: str) -> None:
    assert list(clocks(source)) != []
