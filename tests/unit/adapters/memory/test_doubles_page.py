"""The page about the doubles: what it says is what the tests say."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).parents[3]
PAGE = (TESTS.parent / "docs" / "doubles.md").read_text()
AWS = "https://docs.aws.amazon.com/"
MARKS = {"aws_differs", "undocumented"}
LINK = re.compile(r"\[(?P<says>[^\]]+)\]\((?P<address>[^)]+)\)")


class Row(NamedTuple):
    """One row of the page; `address` is "" where AWS's pages are silent."""

    test: str
    address: str
    others: dict[str, str]


def rows() -> Iterator[Row]:
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if "::" not in line or not line.startswith("|"):
            continue
        link = LINK.fullmatch(cells[1])
        others = dict(zip(("moto", "ministack"), cells[-3:-1], strict=True))
        yield Row(cells[-1].strip("`"), link["address"] if link else "", others)


ROWS = list(rows())


@cache
def functions(path: Path) -> dict[str, tuple[ast.FunctionDef, str]]:
    """Returns the tests of a file by name, and their source, decorators included."""
    source = path.read_text()
    lines = source.splitlines()
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            start = min(d.lineno for d in [node, *node.decorator_list])
            found[node.name] = node, "\n".join(lines[start - 1 : node.end_lineno])
    return found


def pinned_by(row: Row) -> tuple[ast.FunctionDef, str]:
    path, _, name = row.test.partition("::")
    return functions(TESTS / path)[name]


def differences(node: ast.FunctionDef) -> dict[str, str] | None:
    """Returns what a test says of the other backends; None if it says nothing."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) in MARKS:
            return {str(k.arg): ast.literal_eval(k.value) for k in decorator.keywords}
    return None


def names_a_page(node: ast.FunctionDef) -> bool:
    return differences(node) is not None or AWS in (ast.get_docstring(node) or "")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.test.rpartition("::")[2])
def test_a_row_names_a_test_that_names_the_same_page(row: Row) -> None:
    source = pinned_by(row)[1]

    assert row.address.startswith(AWS) or "@undocumented" in source
    assert row.address.rpartition("/")[2] in source


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.test.rpartition("::")[2])
def test_a_row_says_of_the_other_backends_what_its_test_says(row: Row) -> None:
    said = differences(pinned_by(row)[0])

    if said is not None:
        assert {name: row.others[name] for name in said} == said
        same = "as AWS" if row.address else "refuses it"
        assert all(row.others[name] == same for name in row.others.keys() - said.keys())


def test_every_test_that_names_a_page_of_aws_has_a_row() -> None:
    files = [
        *(TESTS / "contract").glob("test_*.py"),
        *(TESTS / "unit/adapters/memory").glob("test_*.py"),
    ]
    named = {
        f"{path.relative_to(TESTS).as_posix()}::{name}"
        for path in files
        for name, (node, _) in functions(path).items()
        if names_a_page(node)
    }

    assert named == {row.test for row in ROWS}
    assert len(ROWS) == len(named) > 50
