"""The registered modules of `handlers/`, and the destinations that their code names.

    ctx.http("crm")          ctx.destination("crm")

A misspelled name fails the build instead of the first event.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import HandlerSpec

_METHODS: Final = frozenset({"http", "destination"})
Function = ast.FunctionDef | ast.AsyncFunctionDef


def mentioned(file: Path) -> Iterator[tuple[str, int]]:
    """Yields (destination, line) for each literal name in a module.

    A context is the second argument of a function, or any variable named `ctx`; computed names are
    ignored.
    """
    tree = parsed(file)
    contexts = {"ctx", *_second_arguments(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (name := _named(node, contexts)):
            yield name, node.lineno


def parsed(file: Path) -> ast.Module:
    """Returns a file's syntax tree; an empty one for a broken file, whose import is an error."""
    try:
        return ast.parse(file.read_bytes())
    except (OSError, RecursionError, SyntaxError, ValueError):
        return ast.Module([], [])


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


def registered_modules(root: Path) -> tuple[str, ...]:
    """Returns `MODULES` of `handlers/__init__.py`, without importing it.

    Raises:
        ConfigurationError: it is missing, or differs from the files in `handlers/`.
    """
    registry = root / "handlers" / "__init__.py"
    modules = _literal_modules(registry)
    for module in modules:
        if modules.count(module) > 1:
            raise ConfigurationError(f"{shown(registry)}: MODULES names {module!r} twice")
        if not module.isidentifier() or not module_file(root, module).is_file():
            raise ConfigurationError(
                f"{shown(registry)}: MODULES names {module!r}, but there is no"
                f" handlers/{module}.py; write it or take the name out"
            )
    for path in sorted(registry.parent.glob("*.py")):
        if not path.stem.startswith(("_", ".")) and path.stem not in modules:
            raise ConfigurationError(
                f"{shown(path)}: is not registered; add {path.stem!r} to MODULES in"
                " handlers/__init__.py, or begin its name with an underscore if it has no handlers"
            )
    return modules


def module_file(root: Path, module: str) -> Path:
    """Returns the path of a module of `handlers/`, which may not exist."""
    package = root / "handlers" / module / "__init__.py"
    return package if package.is_file() else root / "handlers" / f"{module}.py"


def declared_at(root: Path, spec: HandlerSpec) -> str:
    """Returns the file and line of a handler's function, or the file of a ready-made handler."""
    for file in module_files(root, spec.module):
        for node in ast.walk(parsed(file)):
            if isinstance(node, Function) and node.name == spec.function.rpartition(".")[2]:
                return f"{shown(file)}:{node.lineno}"
    return shown(module_file(root, spec.module))


def module_files(root: Path, module: str) -> list[Path]:
    """Returns the files of a module of `handlers/`, or all of a package."""
    file = module_file(root, module)
    return sorted(file.parent.rglob("*.py")) if file.name == "__init__.py" else [file]


def shown(path: Path) -> str:
    """Returns a path in `handlers/` relative to the repository."""
    places = [place for place, part in enumerate(path.parts) if part == "handlers"]
    return str(Path(*path.parts[max(places[-1] - 1, 0) :])) if places else str(path)


def _literal_modules(registry: Path) -> tuple[str, ...]:
    """Reads MODULES from the syntax tree, without running the user's code."""
    shape = f'{shown(registry)}: needs a line such as MODULES = ("github_issues",)'
    try:
        tree = ast.parse(registry.read_bytes())
        value = next(value for value in map(_modules_value, tree.body) if value is not None)
        modules = ast.literal_eval(value)
    except SyntaxError as error:
        raise ConfigurationError(f"{shown(registry)}:{error.lineno}: {error.msg}") from error
    except (OSError, StopIteration, ValueError) as error:
        raise ConfigurationError(shape) from error
    if not isinstance(modules, tuple | list) or not all(isinstance(m, str) for m in modules):
        raise ConfigurationError(shape)
    return tuple(modules)


def _modules_value(statement: ast.stmt) -> ast.expr | None:
    if isinstance(statement, ast.AnnAssign):
        targets: list[ast.expr] = [statement.target]
    elif isinstance(statement, ast.Assign):
        targets = statement.targets
    else:
        return None
    named = any(isinstance(target, ast.Name) and target.id == "MODULES" for target in targets)
    return statement.value if named else None
