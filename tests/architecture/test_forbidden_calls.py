"""The library uses time, randomness and threads through its ports only, so it can be simulated.

The same seed must give the same run, and the simulated clock must be the only one.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

LIBRARY = Path(__file__).parents[2] / "functions" / "webhook_inbox"

MODULES = {
    "asyncio": "concurrency is the Executor's",
    "concurrent": "concurrency is the Executor's",
    "multiprocessing": "concurrency is the Executor's",
    "queue": "concurrency is the Executor's",
    "random": "randomness is Randomness's",
    "sched": "time is the Clock's",
    "secrets": "randomness is Randomness's",
    "select": "waiting is the Clock's",
    "signal": "time is the Clock's",
    "socket": "the world is the adapters'",
    "subprocess": "the world is the adapters'",
    "threading": "concurrency is the Executor's",
    "_thread": "concurrency is the Executor's",
    "time": "time is the Clock's",
    "urllib.request": "the world is the adapters'",
    "uuid": "randomness is Randomness's",
}
# (object, function); the object of builtins is None.
CALLS = {
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("datetime", "today"),
    ("date", "today"),
    ("os", "urandom"),
    ("os", "getrandom"),
    ("os", "getpid"),
    ("os", "environ"),
    ("os", "getenv"),
    (None, "hash"),  # the hash of a text differs between processes
    (None, "input"),
}
# Adapters and their doubles, the HTTP client, the event loop that async handlers run in, and what
# runs on an operator's machine only: it never ships, so it is never simulated.
PORTS = ("adapters/", "client/", "destinations/client/", "handlers/coroutines.py")
# Part of the build, never of a function, so never simulated.
EXEMPT = {
    "configuration/compile.py": "writes the manifest at synth",
    "configuration/declared_handlers.py": "imports handlers in a child process at synth",
}
# For integrators' tests; it never ships.
KIT = "testing"


def core() -> list[Path]:
    files = (path for path in LIBRARY.rglob("*.py"))
    return sorted(path for path in files if not _is_outside(path.relative_to(LIBRARY)))


def _is_outside(path: Path) -> bool:
    return path.as_posix().startswith(PORTS) or path.as_posix() in EXEMPT


def offences(source: str) -> Iterator[str]:
    """Yields what a module does that only a port may."""
    tree = ast.parse(source)
    aliases = dict(_aliases(tree))
    for node in ast.walk(tree):
        yield from _imports(node)
        if isinstance(node, ast.Attribute):
            owner = _owner(node.value, aliases)
            if (owner, node.attr) in CALLS:
                yield f"line {node.lineno}: {owner}.{node.attr}"
        elif isinstance(node, ast.Name) and (None, node.id) in CALLS:
            yield f"line {node.lineno}: {node.id}"


def _aliases(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom | ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name, alias.name


def _owner(node: ast.expr, aliases: dict[str, str]) -> str | None:
    # `datetime.datetime.now` and `datetime.now` are the same call.
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return aliases.get(name, name) or "?"


def _imports(node: ast.AST) -> Iterator[str]:
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module:
        names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    for name in names:
        for forbidden, reason in MODULES.items():
            if name == forbidden or name.startswith(f"{forbidden}."):
                yield f"imports {name}: {reason}"
        if isinstance(node, ast.ImportFrom) and tuple(name.rsplit(".", 1)) in CALLS:
            yield f"imports {name}"


@pytest.mark.parametrize("path", core(), ids=lambda path: str(path.relative_to(LIBRARY)))
def test_the_core_uses_ports_only(path: Path) -> None:
    assert list(offences(path.read_text())) == []


@pytest.mark.parametrize("name", sorted(EXEMPT))
def test_an_exempt_module_exists_and_only_the_build_imports_it(name: str) -> None:
    module = name.removesuffix(".py").replace("/", ".")
    assert (LIBRARY / name).is_file()
    importers = [
        path.name
        for path in LIBRARY.rglob("*.py")
        if f"webhook_inbox.{module} " in path.read_text()
        and path.relative_to(LIBRARY).as_posix() not in EXEMPT
        and KIT not in path.relative_to(LIBRARY).parts
    ]
    assert importers == []


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "import time as clock",
        "from time import sleep",
        "import random, json",
        "from secrets import token_hex",
        "import uuid",
        "from uuid import uuid4 as fresh",
        "import threading",
        "import asyncio",
        "import concurrent.futures",
        "from concurrent import futures",
        "from urllib import request",
        "from datetime import datetime\nx = datetime.now()",
        "from datetime import datetime as dt\nx = dt.now(tz)",
        "import datetime\nx = datetime.datetime.utcnow()",
        "from datetime import date\nx = date.today()",
        "from datetime import datetime\ndef f(now=datetime.now): ...",
        "import os\nx = os.urandom(8)",
        "from os import urandom",
        "import os\nx = os.environ['STAGE']",
        "x = hash('text')",
        "def f():\n    import time",
    ],
)
def test_each_way_around_a_port_is_reported(source: str) -> None:
    assert list(offences(source)) != []


@pytest.mark.parametrize(
    "source",
    [
        "from datetime import UTC, datetime, timedelta",
        "import datetime\nx = datetime.timedelta(1)",
        "x = clock.now()",
        "x = self._clock.now()",
        "self._clock.sleep(3)",
        "from urllib.parse import urlsplit",
        "def f(id_, time): return time",
        "import os.path",
        "x = {'random': 1}",
        "from hashlib import sha256",
    ],
)
def test_harmless_code_is_not_reported(source: str) -> None:
    assert list(offences(source)) == []
