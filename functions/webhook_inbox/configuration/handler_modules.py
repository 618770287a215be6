"""Which destinations a module of `handlers/` names in its code, as far as that can be read.

    ctx.http("crm")          ctx.destination("crm")

A name that is misspelled is found when the inbox is built, and not by the first event.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_METHODS: Final = frozenset({"http", "destination"})
Function = ast.FunctionDef | ast.AsyncFunctionDef


def mentioned(file: Path) -> Iterator[tuple[str, int]]:
    """Yields (destination, line) for each literal name in a module.

    A context is what a function takes as its second argument, or whatever is called `ctx`; names
    that are computed are not seen.
    """
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return  # Importing it says what is wrong.
    contexts = {"ctx", *_second_arguments(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (name := _named(node, contexts)):
            yield name, node.lineno


def _second_arguments(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, Function):
            taken = [*node.args.posonlyargs, *node.args.args]
            if len(taken) == 2:
                yield taken[1].arg


def _named(call: ast.Call, contexts: set[str]) -> str:
    of = call.func
    if not isinstance(of, ast.Attribute) or of.attr not in _METHODS or not call.args:
        return ""
    given = call.args[0]
    on_context = isinstance(of.value, ast.Name) and of.value.id in contexts
    if on_context and isinstance(given, ast.Constant) and isinstance(given.value, str):
        return given.value
    return ""
