"""The imports of `handlers/` that the processor's bundle does not contain.

A module that is installed on this machine may be missing in Lambda, where each event would fail.
"""

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Final

from webhook_inbox.configuration.distributions import HASH, required
from webhook_inbox.configuration.handler_modules import parsed, shown
from webhook_inbox.domain.errors import ConfigurationError

# The packages that no bundle has. The compiled manifest replaces the configuration, which keeps
# pydantic out of ingest's cold start.
LEFT_OUT: Final = ("configuration/", "testing/", "adapters/memory/")
# The modules of the processor's bundle, and those of Lambda's runtime for Python.
OURS: Final = frozenset({"compiled_manifest", "handlers", "processor", "webhook_inbox"})
RUNTIME: Final = frozenset(
    {"awslambdaric", "boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six", "urllib3"}
)
# The differences between the standard libraries of Python 3.11 to 3.14 and that of Lambda's 3.13.
REMOVED: Final = frozenset({
    "aifc", "asynchat", "asyncore", "audioop", "cgi", "cgitb", "chunk", "crypt", "distutils",
    "imghdr", "imp", "lib2to3", "mailcap", "msilib", "nis", "nntplib", "ossaudiodev", "pipes",
    "smtpd", "sndhdr", "spwd", "sunau", "telnetlib", "uu", "xdrlib",
})  # fmt: skip
LATER: Final = frozenset({"annotationlib", "compression"})
_OPTIONAL: Final = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


@dataclass(frozen=True, slots=True)
class Imported:
    """A module that a file imports, by its whole name."""

    file: Path
    line: int
    module: str


def check_imports(root: Path, *, requirements: Iterable[Path]) -> None:
    """Rejects the first import of `handlers/` that the processor's bundle does not contain.

    Args:
        root: the directory with `handlers/`.
        requirements: the files with the distributions of the processor's bundle.

    Raises:
        ConfigurationError: a file imports such a module; names file, line and remedy.
    """
    files = tuple(requirements)
    distributions = required(files)
    contained = _contained(distributions)
    for file in sorted((root / "handlers").rglob("*.py")):
        for each in imports(file):
            if _left_out(each.module):
                raise ConfigurationError(
                    f"{shown(file)}:{each.line}: imports {each.module}, which is for tests and"
                    " builds, and no bundle contains it; remove the import"
                )
            if each.module.partition(".")[0] not in contained:
                raise ConfigurationError(_missing(each, root, files, distributions))


def imports(file: Path) -> Iterator[Imported]:
    """Yields the modules that a file needs, those inside functions included.

    Optional are the modules of a `try` that handles ImportError and of `if TYPE_CHECKING`.
    """
    for node in _needed(parsed(file)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Imported(file, node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield Imported(file, node.lineno, f"{node.module}.{alias.name}")


def _needed(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes of a tree without those whose imports are optional, in their order."""
    yield node
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Try | ast.TryStar) and any(map(_handles, node.handlers)):
        children = [*node.handlers, *node.orelse, *node.finalbody]
    elif isinstance(node, ast.If) and _for_type_checkers(node.test):
        children = [*node.orelse]
    for child in children:
        yield from _needed(child)


def _handles(handler: ast.ExceptHandler) -> bool:
    caught = handler.type
    if caught is None:
        return True
    names = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(isinstance(name, ast.Name) and name.id in _OPTIONAL for name in names)


def _for_type_checkers(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


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
    top = each.module.partition(".")[0]
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
        f" {_requirements(root, files)}; if the handler works without it, handle the ImportError"
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
    if own in files and HASH in own.read_text(encoding="utf-8"):
        return f"{root.name}/{own.name}, with its hashes"
    return f"{root.name}/{own.name}"
