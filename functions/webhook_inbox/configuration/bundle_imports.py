"""The imports of `handlers/` that the processor's bundle does not contain.

A module that is installed on this machine may be missing in Lambda, where each event would fail.
"""

import ast
import operator
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any, Final

from webhook_inbox.configuration.distributions import HASH, read_requirements, required
from webhook_inbox.configuration.handler_modules import (
    module_file,
    parsed,
    registered_modules,
    shown,
)
from webhook_inbox.domain.errors import ConfigurationError

# The packages that no bundle has. The client is for operators' programs. The compiled manifest
# replaces the configuration, which keeps pydantic out of ingest's cold start.
LEFT_OUT: Final = ("client/", "configuration/", "testing/", "adapters/memory/")
# The modules of the processor's bundle, and those of Lambda's runtime for Python.
OURS: Final = frozenset({"compiled_manifest", "handlers", "processor", "webhook_inbox"})
RUNTIME: Final = frozenset(
    {
        "awslambdaric", "boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six",
        "snapshot_restore_py", "urllib3",
    }
)  # fmt: skip
# The differences between the standard libraries of Python 3.11 to 3.14 and that of Lambda's 3.13.
REMOVED: Final = frozenset({
    "aifc", "asynchat", "asyncore", "audioop", "cgi", "cgitb", "chunk", "crypt", "distutils",
    "imghdr", "imp", "lib2to3", "mailcap", "msilib", "nis", "nntplib", "ossaudiodev", "pipes",
    "smtpd", "sndhdr", "spwd", "sunau", "telnetlib", "uu", "xdrlib",
})  # fmt: skip
LATER: Final = frozenset({"annotationlib", "compression"})
# Lambda's version of Python; `sys.version_info` also has a patch level.
PYTHON: Final = (3, 13, 0)
_COMPARISONS: Final[Mapping[type[ast.cmpop], Callable[[Any, Any], Any]]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_OPTIONAL: Final = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


@dataclass(frozen=True, slots=True)
class Imported:
    """A module that a file imports, by its whole name."""

    file: Path
    line: int
    module: str


def check_imports(root: Path, *, requirements: Iterable[Path], allowed: Iterable[str] = ()) -> None:
    """Rejects the first import of the handlers that the processor's bundle does not contain.

    Args:
        root: the directory with `handlers/`; the files that its modules import are read.
        requirements: the files with the distributions of the processor's bundle.
        allowed: further modules that the bundle contains, `allow_imports` of inbox.toml.

    Raises:
        ConfigurationError: a file imports such a module; names file, line and remedy. Or MODULES
            or a requirement file cannot be read.
    """
    files = tuple(requirements)
    distributions = required(files)
    contained = _contained(distributions) | {_top(name) for name in allowed}
    for file in _reachable(root):
        for each in imports(file, contained):
            if _left_out(each.module):
                raise ConfigurationError(
                    f"{shown(file)}:{each.line}: imports {each.module}, which is for tests and"
                    " builds, and no bundle contains it; remove the import"
                )
            if _top(each.module) not in contained:
                raise ConfigurationError(_missing(each, root, files, distributions))


def _reachable(root: Path) -> list[Path]:
    """Returns the files of `handlers/` that its registered modules import, themselves included."""
    package = root / "handlers"
    waiting = [package / "__init__.py", *(module_file(root, m) for m in registered_modules(root))]
    found: set[Path] = set()
    while waiting:
        file = waiting.pop()
        if file.is_file() and file not in found:
            found.add(file)
            for node in ast.walk(parsed(file)):
                waiting += [
                    each for path in _own(node, file, root) for each in _files(path, package)
                ]
    return sorted(found)


def _own(node: ast.AST, file: Path, root: Path) -> list[Path]:
    """Returns the paths, without suffix, of the modules that a node may import from `handlers/`."""
    if isinstance(node, ast.Import):
        return [root.joinpath(*alias.name.split(".")) for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = file.parents[node.level - 1] if node.level else root
    base = base.joinpath(*(node.module or "").split("."))
    return [base / alias.name for alias in node.names]


def _files(path: Path, package: Path) -> Iterator[Path]:
    """Yields the files that the import of a path runs: packages above it, and its own."""
    for each in (path, *path.parents):
        if each.is_relative_to(package):
            yield from (each.with_suffix(".py"), each / "__init__.py")


def imports(file: Path, contained: Collection[str]) -> Iterator[Imported]:
    """Yields the modules that a file needs, those inside functions included.

    Where a module is not contained and the file handles its ImportError once, the file works
    without it. Branches that do not run in Lambda need nothing.
    """
    tree = parsed(file)
    guarded = {
        _top(name)
        for node in ast.walk(tree)
        for child in _guarded(node)
        for name in _named_below(child)
    }
    for node in _needed(tree, contained):
        for module in _modules(node):
            if _top(module) in contained or _top(module) not in guarded:
                yield Imported(file, getattr(node, "lineno", 0), module)


def _modules(node: ast.AST) -> list[str]:
    """Returns the absolute names that an import statement imports; [] for any other node."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def _named_below(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        yield from _modules(each)


def _top(module: str) -> str:
    return module.partition(".")[0]


def _needed(tree: ast.AST, contained: Collection[str]) -> Iterator[ast.AST]:
    """Yields the nodes that run in Lambda, in their order, without those of guarded imports."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(_running(node, contained))


def _running(node: ast.AST, contained: Collection[str]) -> list[ast.AST]:
    """Returns the children of a node that run in Lambda and have no guard."""
    guarded = _guarded(node)
    if isinstance(node, ast.Try | ast.TryStar) and guarded:
        fails = any(_top(name) not in contained for each in guarded for name in _named_below(each))
        handlers = [each for each in node.handlers if fails or not _handles(each.type)]
        return [*handlers, *([] if fails else node.orelse), *node.finalbody]
    if isinstance(node, ast.If):
        runs = _runs(node.test)
        return [
            *(node.body if runs is not False else ()),
            *(node.orelse if runs is not True else ()),
        ]
    return [child for child in ast.iter_child_nodes(node) if child not in guarded]


def _guarded(node: ast.AST) -> list[ast.stmt]:
    """Returns the statements that a node runs while it handles or suppresses ImportError."""
    if isinstance(node, ast.Try | ast.TryStar):
        return node.body if any(_handles(each.type) for each in node.handlers) else []
    if isinstance(node, ast.With) and any(_suppresses(each.context_expr) for each in node.items):
        return node.body
    return []


def _suppresses(manager: ast.expr) -> bool:
    named = isinstance(manager, ast.Call) and _name(manager.func) == "suppress"
    return named and any(_name(each) in _OPTIONAL for each in getattr(manager, "args", ()))


def _handles(caught: ast.expr | None) -> bool:
    if caught is None:
        return True
    names = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(_name(name) in _OPTIONAL for name in names)


def _name(node: ast.AST) -> str:
    """Returns the name of a variable or an attribute."""
    return str(getattr(node, "attr", "") or getattr(node, "id", ""))


def _runs(test: ast.expr) -> bool | None:
    """Tells whether the body of an `if` runs in Lambda; None if that is unknown."""
    if _name(test) == "TYPE_CHECKING":
        return False
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    if _name(test.left) == "__name__":
        main = getattr(test.comparators[0], "value", None) == "__main__"
        return False if main and isinstance(test.ops[0], ast.Eq) else None
    compare = _COMPARISONS.get(type(test.ops[0]))
    if _name(test.left) != "version_info" or compare is None:
        return None
    try:
        wanted = ast.literal_eval(test.comparators[0])
        return bool(compare(PYTHON, wanted))
    except (TypeError, ValueError):
        return None


def _contained(distributions: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Returns the top-level modules that an import in Lambda finds."""
    standard = sys.stdlib_module_names - REMOVED - LATER
    third = {module for modules in distributions.values() for module in modules}
    # A distribution that is not installed here most often has a module of its own name.
    guessed = {
        name.replace("-", "_").lower() for name, modules in distributions.items() if not modules
    }
    return frozenset(standard | OURS | RUNTIME | third | guessed)


def _left_out(module: str) -> bool:
    path = module.replace(".", "/") + "/"
    return any(path.startswith(f"webhook_inbox/{package}") for package in LEFT_OUT)


def _missing(
    each: Imported, root: Path, files: Sequence[Path], distributions: Mapping[str, frozenset[str]]
) -> str:
    top = _top(each.module)
    place = f"{shown(each.file)}:{each.line}: imports {top}"
    if top in REMOVED:
        return f"{place}, which Python 3.13, Lambda's version, does not have; remove the import"
    if top in LATER and top in sys.stdlib_module_names:
        return f"{place}, which is newer than Python 3.13, Lambda's version; remove the import"
    if (root / top).is_dir() or (root / f"{top}.py").is_file():
        return (
            f"{place}, which is in {root.name}/, and the processor's bundle contains only"
            f" {root.name}/handlers/; move it to handlers/_{top} and import handlers._{top}"
        )
    return (
        f"{place}, which the processor's bundle does not contain{_cause(top, distributions)} to"
        f" {_requirements(root, files)}; if the handler works without it, handle the ImportError;"
        f' if the bundle contains it, set allow_imports = ["{top}"] in inbox.toml'
    )


def _cause(top: str, distributions: Mapping[str, frozenset[str]]) -> str:
    """Returns the cause as far as known, and the begin of the remedy: the distribution to add."""
    unknown = ", ".join(name for name, modules in distributions.items() if not modules)
    owners = ", ".join(sorted(set(packages_distributions().get(top, ()))))
    if owners:
        return f" (it is installed by {owners}); add {owners}"
    if unknown:
        return (
            f", as far as the installed distributions tell (not installed here: {unknown});"
            " install those, or add its distribution"
        )
    return "; correct the name, or install its distribution and add it"


def _requirements(root: Path, files: Sequence[Path]) -> str:
    """Returns the place for a further requirement."""
    own = root / "requirements.txt"
    if own in files and HASH in read_requirements(own):
        return f"{root.name}/{own.name}, with its hashes"
    return f"{root.name}/{own.name}"
