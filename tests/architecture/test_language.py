"""Sentences of docstrings, comments and documentation follow the language rules.

No sentence starts with What, Who, Whoever, Of or That, and none contains somebody, nobody or
whoever. Code spans and code blocks are not checked.
"""

import ast
import re
import tokenize
from collections.abc import Iterator
from io import StringIO
from itertools import groupby
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = (
    *("bench", "functions", "scripts", "simulation", "stacks"),
    *("webhook_inbox_cdk", "webhookctl"),
)
PAGES = ("README.md", "CHANGELOG.md", "docs/**/*.md")

START = re.compile(r"(?:What|Who|Whoever|Of|That)\b(?!-)")
WORD = re.compile(r"\b(?:somebody|nobody|whoever)\b", re.IGNORECASE)
FENCE = re.compile(r"^ *(```|~~~).*?^ *\1", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(`+)(?:(?!`|\n\s*\n).)+?\1", re.DOTALL)
LINK = re.compile(r"\]\([^)]*\)")
MARKER = re.compile(r"^[\s>#*+|-]*(?:\d+\. )?[\s*_\[(\"]*")
# Blank lines, list items, headings and table cells separate sentences, as full stops do.
BREAK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+#>]|\d+\. ))|\||(?<=[.!?])[)\"*_]*\s+")


def sentences(text: str) -> Iterator[str]:
    """Yields the sentences of a text, without markup."""
    prose = LINK.sub("]", SPAN.sub("`code`", FENCE.sub("", text)))
    for part in BREAK.split(prose):
        sentence = " ".join(MARKER.sub("", part).split())
        if sentence:
            yield sentence


def violations(text: str) -> list[str]:
    """Returns the sentences that break a rule."""
    return [s for s in sentences(text) if START.match(s) or WORD.search(s)]


def docstrings(source: str) -> Iterator[str]:
    """Yields the docstrings of a Python module, its classes and its functions."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, kinds):
            yield ast.get_docstring(node) or ""


def comments(source: str) -> Iterator[str]:
    """Yields the comments of a Python module; adjacent lines are one comment."""
    tokens = tokenize.generate_tokens(StringIO(source).readline)
    lines = [(t.start[0], t.string.lstrip("#! ")) for t in tokens if t.type == tokenize.COMMENT]
    for _, block in groupby(enumerate(lines), key=lambda numbered: numbered[1][0] - numbered[0]):
        yield "\n".join(text for _, (_, text) in block)


def prose(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return [text] if path.suffix == ".md" else [*docstrings(text), *comments(text)]


FILES = [
    *(path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))),
    *(path for page in PAGES for path in sorted(ROOT.glob(page))),
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_follows_the_language_rules(path: Path) -> None:
    assert [found for text in prose(path) for found in violations(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "What it returns.",
        "A run. Of these, one is kept.",
        "A run:\n\n- Whoever calls\n- waits",
        "| a cell | That cell |",
        "## Who calls",
        "> **What** it is",
        "1. Of many",
        "Returns it\nfor nobody to read.",
        'Raises an error. "Somebody" is a person.',
        "Args:\n    name: the name.\n\nThat is all.",
    ],
)
def test_a_violation_is_found(text: str) -> None:
    assert len(violations(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "Returns what is stored, of those that match.",
        "The value that\nWhat returns.",
        "`What` is a name, and `nobody` a user.",
        "```\nWhat is this?\n```",
        "Often. Whatever is stored.",
        "Thatched roofs. Offline runs.",
    ],
)
def test_correct_text_is_not_reported(text: str) -> None:
    assert violations(text) == []


def test_docstrings_and_comments_are_read_and_other_strings_are_not() -> None:
    source = '"""One."""\nname = "What"  # two\n\n# three\n# four\ndef f():\n    """Five."""\n'
    assert [*docstrings(source), *comments(source)] == ["One.", "Five.", "two", "three\nfour"]
