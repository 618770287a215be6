"""Reads the handlers of one module of `handlers/` by importing it in a new interpreter.

The error of a broken module names its file and line, and modules do not share globals. The report
is a file, so that a module may print while it is imported.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from webhook_inbox.configuration.handler_modules import module_file, shown
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import HandlerSpec, handler_from
from webhook_inbox.handlers.router import NAME, Router


def declared_by(
    module: str, *, root: Path, registered: Sequence[str], timeout: float
) -> Iterator[HandlerSpec]:
    """Yields the handlers that `handlers.<module>` declares, in order.

    Raises:
        ConfigurationError: it cannot be imported within `timeout` seconds, has no Router, or a
            handler has an invalid name.
    """
    file = module_file(root, module)
    report = _report(module, root=root, timeout=timeout)
    if "failure" in report:
        raise ConfigurationError(_import_failure(file, report["failure"]))
    if not report["routers"]:
        raise ConfigurationError(
            f"{shown(file)}: has no Router; make one, or take {module!r} out of MODULES in"
            " handlers/__init__.py"
        )
    for spec in map(handler_from, report["handlers"]):
        if not NAME.fullmatch(spec.name):
            raise ConfigurationError(
                f"{shown(file)}: handler {spec.name!r}: a name is 1-64 of a-z 0-9 _ . -"
            )
        # A router may be shared; handlers of another registered module belong to that module.
        if spec.module == module or spec.module not in registered:
            yield replace(spec, module=module)


def _report(module: str, *, root: Path, timeout: float) -> Mapping[str, Any]:
    """Runs this module as a program for one handlers module and returns its report."""
    file = shown(module_file(root, module))
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch, "report.json")
        try:
            status = subprocess.run(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-m", __name__, module, str(report)],
                cwd=root,
                env=_child_environment(root),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=timeout,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired as error:
            raise ConfigurationError(
                f"{file}: still importing after {timeout:g} s; move the work into the handler"
            ) from error
        if not report.is_file():
            raise ConfigurationError(
                f"{file}: importing it ended the process (exit status {status}); move the work"
                " into the handler"
            )
        data: Mapping[str, Any] = json.loads(report.read_text(encoding="utf-8"))
        return data


def _child_environment(root: Path) -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))
    return {
        # An import must not act in the account that the user is logged in to.
        **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        # Modules create AWS clients at import, which need a region.
        "AWS_DEFAULT_REGION": "us-east-1",
        "PYTHONPATH": path,
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _import_failure(file: Path, failure: Mapping[str, Any]) -> str:
    own, error = failure["file"], failure["error"]
    place = f"{shown(Path(own))}:{failure['line']}" if own else shown(file)
    message = " ".join(failure["message"].split())
    if error == ConfigurationError.__name__:
        return f"{place}: {message}"
    remedy = "fix it, or take it out of MODULES in handlers/__init__.py"
    if error == ModuleNotFoundError.__name__:
        remedy = "install it, and add it to the handlers' requirements"
    return f"{place}: cannot be imported: {error}: {message}; {remedy}"


def _declared(module: str) -> dict[str, Any]:
    """Imports `handlers.<module>`; returns its routers' declarations, or its failure."""
    try:
        namespace = vars(importlib.import_module(f"handlers.{module}"))
    except BaseException as error:  # noqa: BLE001 - a module may even call sys.exit
        return {"failure": _failure(error)}
    routers = {id(value): value for value in namespace.values() if isinstance(value, Router)}
    specs = [asdict(spec) for router in routers.values() for spec in router.handlers]
    return {"routers": len(routers), "handlers": specs}


def _failure(error: BaseException) -> dict[str, Any]:
    file, line = _place(error)
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return {"error": type(error).__name__, "message": message, "file": file, "line": line}


def _place(error: BaseException) -> tuple[str, int]:
    """Returns the deepest line of the user's code."""
    if isinstance(error, SyntaxError) and error.filename:
        return error.filename, error.lineno or 0
    handlers = Path.cwd() / "handlers"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(handlers)]
    return (own[-1].filename, own[-1].lineno or 0) if own else ("", 0)


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(_declared(sys.argv[1])), encoding="utf-8")
