"""The library has 14 packages in at most nine layers, unique class names, and mirrored tests."""

import ast
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "functions" / "webhook_inbox"
UNIT_TESTS = ROOT / "tests" / "unit"
PACKAGES = {
    *("ingest", "ledger", "queue", "processor", "replay", "reconciler", "providers"),
    *("handlers", "destinations", "domain", "adapters", "configuration", "client", "testing"),
}
# Test directories that no package corresponds to.
BESIDE = {"scenarios", "support", "examples"}
MOST_LAYERS = 9


def directories(path: Path) -> set[str]:
    return {entry.name for entry in path.iterdir() if entry.is_dir() and entry.name[0] != "_"}


def library_layers() -> dict[str, Any]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = [c for c in settings["contracts"] if c.get("containers") == ["webhook_inbox"]]
    return dict(layers)


def class_places() -> dict[str, list[str]]:
    """Returns the modules that define each class of the library, by class name."""
    places = defaultdict(list)
    for path in sorted(LIBRARY.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(LIBRARY)))
    return places


def test_the_library_has_these_packages_and_no_module_beside_them() -> None:
    assert directories(LIBRARY) == PACKAGES
    assert [path.name for path in LIBRARY.glob("*.py")] == ["__init__.py"]


def test_every_package_is_in_one_of_at_most_nine_layers() -> None:
    contract = library_layers()
    layers = [[name.strip() for name in row.split("|")] for row in contract["layers"]]
    assert contract["exhaustive"] is True
    assert len(layers) <= MOST_LAYERS
    assert sorted(name for row in layers for name in row) == sorted(PACKAGES)


def test_a_class_name_occurs_once_in_the_library() -> None:
    repeated = {name: places for name, places in class_places().items() if len(places) > 1}
    assert repeated == {}


def test_the_unit_tests_mirror_the_packages() -> None:
    assert directories(UNIT_TESTS) - BESIDE <= PACKAGES
    modules = {path.name for path in UNIT_TESTS.glob("*.py")}
    assert modules <= {"__init__.py", "conftest.py"}
