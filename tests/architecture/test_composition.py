"""Each process is composed in one place: its entry point builds `Ports`, and each part takes it.

So do the inboxes in memory, of which there are three: the test kit's, the simulation's and the unit
tests'.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST = 2
VALUE = "functions/webhook_inbox/domain/ports.py"
# The value itself, and the connection of a program to its inbox.
ROOTS = {
    VALUE: {"Ports"},
    "functions/webhook_inbox/client/client.py": {"InboxClient"},
    "functions/webhook_inbox/client/scope.py": {"Scope"},
}
HARNESSES = {
    "functions/webhook_inbox/testing/runtime.py",
    "simulation/engine/doubles.py",
    "tests/unit/support/world.py",
}
SERVICES = {
    "MemoryTable": "table",
    "MemoryBlobs": "bucket",
    "MemorySecrets": "secrets",
    "MemoryQueue": "queue",
    "MemoryFifo": "queue",
}


def words(annotation: ast.expr) -> set[str]:
    """Returns the names in an annotation, quoted or not."""
    found: set[str] = set()
    for node in ast.walk(annotation):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {*re.findall(r"\w+", node.value)}
    return found


def parameters(cls: ast.ClassDef) -> list[ast.expr]:
    """Returns the annotations of a constructor's parameters, or of a dataclass's fields."""
    for node in cls.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            return [each.annotation for each in arguments if each.annotation]
    if not any("dataclass" in ast.dump(each) for each in cls.decorator_list):
        return []
    return [node.annotation for node in cls.body if isinstance(node, ast.AnnAssign)]


@cache
def port_types() -> frozenset[str]:
    """Returns the types of the fields of `Ports`, and of what is made of one of them."""
    tree = ast.parse((ROOT / VALUE).read_text(encoding="utf-8"))
    (ports,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Ports")
    found = set[str]().union(*map(words, parameters(ports)))
    return frozenset({*found, "Lanes", "SecretCache"} - {"Mapping", "str"})


def scattered(source: str) -> Iterator[str]:
    """Yields the classes whose constructors take three or more ports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            ports = [each for each in parameters(node) if words(each) & port_types()]
            if len(ports) > MOST:
                yield node.name


def calls(node: ast.AST) -> set[str]:
    """Returns the names of the functions and classes that code calls."""
    return {
        each.func.id
        for each in ast.walk(node)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)
    }


def inboxes(source: str) -> Iterator[str]:
    """Yields the definitions that build ports in memory, or doubles of two services."""
    for node in ast.parse(source).body:
        found = calls(node)
        if "memory_ports" in found or len({SERVICES[n] for n in found & SERVICES.keys()}) > 1:
            yield getattr(node, "name", "the module")


def modules(*directories: str) -> Iterator[tuple[str, str]]:
    """Yields the path and the source of each module."""
    for directory in directories:
        for path in sorted((ROOT / directory).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def test_a_constructor_takes_three_or_more_ports_as_one_value() -> None:
    found = {
        path: names
        for path, source in modules("functions", "simulation", "webhookctl")
        if (names := set(scattered(source)))
    }
    assert found == ROOTS


def test_every_inbox_in_memory_is_one_of_three() -> None:
    found = {
        path
        for path, source in modules("functions/webhook_inbox/testing", "simulation", "tests")
        # The doubles' own tests.
        if not path.startswith(("tests/unit/adapters/", "tests/architecture/"))
        and any(inboxes(source))
    }
    assert found == HARNESSES


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n def __init__(self, *, table: Table, clock: Clock, blobs: Blobs): ...",
        "class A:\n def __init__(self, table: 'Table | None', lanes: Lanes, c: SecretCache): ...",
        "@dataclass\nclass A:\n table: Table\n clock: Clock\n randomness: Randomness",
        "class A:\n def __init__(self, q: Mapping[str, Queue], t: Table, c: Clients): ...",
    ],
)
def test_each_way_to_hand_ports_one_by_one_is_reported(source: str) -> None:
    assert list(scattered(source)) == ["A"]


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n def __init__(self, manifest: Manifest, ports: Ports): ...",
        "class A:\n def __init__(self, table: Table, clock: Clock): ...",
        "class A:\n table: Table\n clock: Clock\n blobs: Blobs",
    ],
)
def test_two_ports_or_their_value_are_not_reported(source: str) -> None:
    assert list(scattered(source)) == []


@pytest.mark.parametrize(
    "source",
    [
        "class Bench:\n def __init__(self):\n  self.ports = memory_ports(clock=c)",
        "def inbox():\n return MemoryTable(), MemoryBlobs()",
        "def inbox():\n return MemoryTable(faults=f), MemoryFifo(clock)",
    ],
)
def test_each_way_to_build_an_inbox_is_reported(source: str) -> None:
    assert list(inboxes(source)) != []


@pytest.mark.parametrize(
    "source",
    ["def table():\n return MemoryTable()", "def q():\n return MemoryQueue(c), MemoryFifo(c)"],
)
def test_one_double_is_no_inbox(source: str) -> None:
    assert list(inboxes(source)) == []
