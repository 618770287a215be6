"""Every dead run has a `DeathCause`: one function writes the status, and all causes are in use."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from webhook_inbox.domain.death import REMEDIES, DeathCause

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "functions" / "webhook_inbox"
OPERATE = ROOT / "docs" / "operate.md"
TREES = {
    str(path.relative_to(LIBRARY)): ast.parse(path.read_text(encoding="utf-8"))
    for path in LIBRARY.rglob("*.py")
}


def is_dead(node: ast.AST) -> bool:
    """Tells whether an expression is the status of a dead run, as an enum member or its text."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "str":
        return any(map(is_dead, node.args))
    return ast.unparse(node) in {"Status.DEAD_LETTER", "'dead_letter'"}


def writers(tree: ast.AST) -> Iterator[str]:
    """Yields the functions that make a settlement, or an attribute, of the status of a dead run."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            match node:
                case ast.Call(func=ast.Name(id="Settlement" | "replace")):
                    parts = [*node.args, *(keyword.value for keyword in node.keywords)]
                case ast.Dict(keys=keys, values=values):
                    pairs = zip(keys, values, strict=True)
                    parts = [v for k, v in pairs if k and ast.unparse(k) == "'status'"]
                case _:
                    continue
            if any(map(is_dead, parts)):
                yield function.name


def test_one_function_makes_runs_dead() -> None:
    found = [(path, name) for path, tree in TREES.items() for name in writers(tree)]

    assert found == [("ledger/settle.py", "death")]


@pytest.mark.parametrize(
    "source",
    [
        'Settlement(Status.DEAD_LETTER, "dead", now)',
        "replace(settlement, status=Status.DEAD_LETTER)",
        'Change(set={"status": str(Status.DEAD_LETTER)})',
        'Change(set={"status": "dead_letter"})',
    ],
)
def test_another_writer_is_found(source: str) -> None:
    assert list(writers(ast.parse(f"def end():\n    {source}"))) == ["end"]


def test_every_cause_makes_runs_dead() -> None:
    named = {
        node.attr
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "DeathCause"
    }

    assert named == {cause.name for cause in DeathCause}


def test_every_cause_has_a_remedy() -> None:
    assert {cause.word for cause in DeathCause} == set(REMEDIES)


def test_the_operator_s_page_lists_every_cause() -> None:
    rows = [line for line in OPERATE.read_text(encoding="utf-8").splitlines() if ": …` |" in line]

    assert len(rows) == len(DeathCause)
    for row, cause in zip(rows, DeathCause, strict=True):
        assert row.startswith(f"| `{cause.word}: …` | {cause.meaning} | ")
