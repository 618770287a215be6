"""Compiles the manifest from the configuration and the declarations of the handlers modules.

Runs in builds and checks, never in a Lambda.
"""

import ast
import json
import os
import pprint
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from webhook_inbox import providers
from webhook_inbox.configuration import inbox_toml
from webhook_inbox.configuration.addresses import check_addresses
from webhook_inbox.configuration.approvers import check_approvals
from webhook_inbox.configuration.bundle_imports import check_imports
from webhook_inbox.configuration.declared_handlers import declared_by
from webhook_inbox.configuration.glob_patterns import overlap
from webhook_inbox.configuration.handler_modules import (
    mentioned,
    module_file,
    module_files,
    registered_modules,
    shown,
)
from webhook_inbox.configuration.inbox_toml import Configuration
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import (
    DEFAULT_LANE,
    MODULE,
    SPLIT,
    SPLITTER,
    HandlerSpec,
    LaneSpec,
    Manifest,
    SourceSpec,
)
from webhook_inbox.domain.similar_names import did_you_mean

IMPORT_TIMEOUT: Final = 30.0


def compile_manifest(
    root: Path,
    *,
    stage: str,
    requirements: Iterable[Path] | None = None,
    import_timeout: float = IMPORT_TIMEOUT,
) -> Manifest:
    """Returns the manifest of a stage; `root` has `inbox.toml` and `handlers/`.

    Args:
        root: the directory.
        stage: the stage.
        requirements: the files with the distributions of the processor's bundle, to which the
            imports of the handlers are compared; None to omit that.
        import_timeout: seconds for the import of one module.

    Raises:
        ConfigurationError: `inbox.toml` or a handlers module is invalid; one line names the file
            and the remedy.
    """
    root = root.resolve()
    settings = inbox_toml.load(root / "inbox.toml", stage=stage)
    _check_addresses(settings, file=root / "inbox.toml", stage=stage)
    if requirements is not None:
        check_imports(root, requirements=requirements, allowed=settings.allow_imports)
    handlers = collect_handlers(root, import_timeout=import_timeout)
    _check_sources(handlers, known=settings.sources, root=root)
    _check_types(handlers.values(), settings.sources, root=root)
    _check_lanes(handlers.values(), root=root)
    _check_lane_tables(handlers.values(), settings.lanes, file=root / "inbox.toml")
    _check_destinations(handlers, known=settings.destinations, root=root)
    _check_mentions(known=settings.destinations, root=root)
    check_approvals(root, settings.approvers)
    if any(providers.load(spec).batch is not None for spec in settings.sources.values()):
        handlers[SPLIT] = SPLITTER
    manifest = Manifest(
        stage=stage,
        sources=settings.sources,
        handlers=handlers,
        destinations=settings.destinations,
        secrets=settings.secrets,
        approvers=settings.approvers,
        lane_specs=settings.lanes,
    )
    return replace(manifest, version=_version(manifest))


def collect_handlers(
    root: Path, *, import_timeout: float = IMPORT_TIMEOUT
) -> dict[str, HandlerSpec]:
    """Returns every handler by name, in order of registration and declaration.

    Raises:
        ConfigurationError: a module is broken, missing or not registered, or a name is invalid or
            used twice.
    """
    modules = registered_modules(root)
    found: dict[str, HandlerSpec] = {}

    def declared(module: str) -> list[HandlerSpec]:
        return list(declared_by(module, root=root, registered=modules, timeout=import_timeout))

    # Each import is a process of its own.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        declarations = list(zip(modules, pool.map(declared, modules), strict=True))
    for module, specs in declarations:
        for spec in specs:
            if spec.name in found:
                raise ConfigurationError(
                    f"handler {spec.name!r} is declared in handlers/{found[spec.name].module}.py"
                    f" and in handlers/{module}.py; rename one"
                )
            found[spec.name] = spec
    return found


def write_module(manifest: Manifest, directory: Path) -> Path:
    """Writes the manifest as the module `compiled_manifest`; the same text for the same data.

    Raises:
        ConfigurationError: a setting has a type without a literal, such as a date.
    """
    literal = pprint.pformat(manifest.to_data(), width=100, sort_dicts=False)
    try:
        ast.literal_eval(literal)
    except (SyntaxError, ValueError) as error:
        raise ConfigurationError(
            "inbox.toml: use text, numbers, booleans, arrays and tables only; quote dates and times"
        ) from error
    path = directory / f"{MODULE}.py"
    text = f'"""Written by the build from inbox.toml and handlers/."""\n\nMANIFEST = {literal}\n'
    path.write_text(text, encoding="utf-8")
    return path


def _check_sources(
    handlers: Mapping[str, HandlerSpec], *, known: Mapping[str, Any], root: Path
) -> None:
    for spec in handlers.values():
        if spec.source not in known:
            raise ConfigurationError(
                f"{shown(module_file(root, spec.module))}: handler {spec.name!r} is for the"
                f" source {spec.source!r}, {_missing('sources', spec.source, known)}"
            )


def _check_addresses(settings: Configuration, *, file: Path, stage: str) -> None:
    try:
        check_addresses(settings.destinations, allowed=settings.allowed, stage=stage)
    except ConfigurationError as error:
        raise ConfigurationError(f"{inbox_toml.shown(file)} {error}") from error


def _check_types(
    handlers: Iterable[HandlerSpec], sources: Mapping[str, SourceSpec], *, root: Path
) -> None:
    """Rejects a handler's type that its source does not store: its events would be lost."""
    for spec in handlers:
        stored = sources[spec.source].types
        for type_ in spec.types:
            if not any(overlap(type_, pattern) for pattern in stored):
                raise ConfigurationError(
                    f"{shown(module_file(root, spec.module))}: handler {spec.name!r} is for"
                    f" {type_!r}, and the source stores only {', '.join(stored)}: add the type to"
                    f" `types` of [sources.{spec.source}], or remove it from the handler"
                )


def _check_destinations(
    handlers: Mapping[str, HandlerSpec], *, known: Mapping[str, Any], root: Path
) -> None:
    for spec in handlers.values():
        for name in spec.destinations:
            if name not in known:
                raise ConfigurationError(
                    f"{shown(module_file(root, spec.module))}: handler {spec.name!r} calls the"
                    f" destination {name!r}, {_missing('destinations', name, known)}"
                )


def _check_mentions(*, known: Mapping[str, Any], root: Path) -> None:
    """Rejects an unknown destination in the code of a handler, as far as it can be read."""
    for module in registered_modules(root):
        for each in module_files(root, module):
            for name, line in mentioned(each):
                if name not in known:
                    raise ConfigurationError(
                        f"{shown(each)}:{line}: calls the destination {name!r},"
                        f" {_missing('destinations', name, known)}"
                    )


def _missing(table: str, name: str, known: Mapping[str, Any]) -> str:
    has, guess = ", ".join(known) or "none", did_you_mean(name, known)
    guess = f"{guess} Otherwise " if guess else ""
    return f"which inbox.toml does not have (it has: {has}); {guess}add [{table}.{name}]"


def _check_lanes(handlers: Iterable[HandlerSpec], *, root: Path) -> None:
    """Rejects a lane with serial and other handlers."""
    first: dict[str, HandlerSpec] = {}
    for spec in handlers:
        other = first.setdefault(spec.lane, spec)
        if other.serial is not spec.serial:
            serial, plain = (spec, other) if spec.serial else (other, spec)
            raise ConfigurationError(
                f"{shown(module_file(root, spec.module))}: lane {spec.lane!r} has"
                f" {serial.name!r}, which is serial and needs a FIFO queue, and {plain.name!r},"
                " which is not; give one of them another lane"
            )


def _check_lane_tables(
    handlers: Iterable[HandlerSpec], tables: Mapping[str, LaneSpec], *, file: Path
) -> None:
    """Rejects the table of a lane without handlers, and several runs where there must be one."""
    lanes: dict[str, list[HandlerSpec]] = {DEFAULT_LANE: []}
    for spec in handlers:
        lanes.setdefault(spec.lane, []).append(spec)
    for lane, table in tables.items():
        place = f"{shown(file)} [lanes.{lane}]"
        if lane not in lanes:
            guess = did_you_mean(lane, lanes)
            raise ConfigurationError(
                f"{place}: no handler declares this lane (the lanes are"
                f" {', '.join(sorted(lanes))}); {guess + ' Otherwise ' if guess else ''}remove the"
                " table"
            )
        if table.runs_per_invocation > 1:
            _check_runs(f"{place} runs_per_invocation", lane, lanes[lane])


def _check_runs(place: str, lane: str, users: Sequence[HandlerSpec]) -> None:
    """Rejects several runs an invocation in a lane that does not have exactly one handler.

    A handler that ends its process ends the other runs of the invocation, so they must be its own
    (G8). The default lane also has the inbox's own handlers.
    """
    if lane == DEFAULT_LANE:
        raise ConfigurationError(
            f"{place}: the default lane is shared; give the handler a lane of its own with"
            ' lane="…" in its declaration, and set it there'
        )
    if users[0].serial:
        raise ConfigurationError(
            f"{place}: {users[0].name!r} is serial, so its runs wait for each other; remove the key"
        )
    if len(users) > 1:
        names = ", ".join(repr(spec.name) for spec in users)
        raise ConfigurationError(
            f"{place}: the lane has {names}, and one that ends its process would end the runs"
            " of the others; give each a lane of its own"
        )


def _version(manifest: Manifest) -> str:
    text = json.dumps(manifest.to_data(), default=repr)
    return sha256(text.encode()).hexdigest()[:12]
