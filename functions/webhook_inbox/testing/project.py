"""The handlers under test and their manifest, from a directory or from routers."""

import importlib
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Final

from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.configuration.destination import Destination
from webhook_inbox.domain.manifest import (
    ApproversSpec,
    DestinationSpec,
    HandlerSpec,
    Manifest,
    SourceSpec,
)
from webhook_inbox.handlers.approvals.announcer import SNS
from webhook_inbox.handlers.coroutines import plain
from webhook_inbox.handlers.router import Registered, Router
from webhook_inbox.testing.errors import KitError, hidden, unknown
from webhook_inbox.testing.fake import Fake
from webhook_inbox.testing.samples import PLAIN

__tracebackhide__ = hidden

Load = Callable[[HandlerSpec], Registered]
# No test reaches it: every destination is a fake.
SINK_URL: Final = "https://sink.example"


@dataclass(frozen=True, slots=True)
class Project:
    """Handlers with their manifest; `root` is their directory, None without one."""

    manifest: Manifest
    load: Load
    root: Path | None = None


def from_directory(root: Path, *, stage: str) -> Project:
    """Loads a directory with `inbox.toml` and `handlers/`.

    Raises:
        ConfigurationError: as at synth.
        KitError: the handlers of another directory are imported already.
    """
    root = root.resolve()
    manifest = _compiled(root, stage)

    if manifest.handlers:
        _require_importable(root)

    def load(spec: HandlerSpec) -> Registered:
        return _registered(spec, _routers(importlib.import_module(f"handlers.{spec.module}")))

    return Project(manifest, load, root)


def from_routers(routers: Sequence[Router]) -> Project:
    """Builds a project of routers; its sources read an event's id and type from headers."""
    handlers = {spec.name: spec for router in routers for spec in router.handlers}
    sources = {
        spec.source: SourceSpec(spec.source, "hmac", spec.source, settings=PLAIN)
        for spec in handlers.values()
    }
    manifest = Manifest(stage="test", sources=sources, handlers=handlers)
    return Project(manifest, lambda spec: _registered(spec, routers))


def with_destinations(project: Project, fakes: Mapping[str, Fake]) -> Manifest:
    """Returns the manifest with the fakes and their settings as destinations.

    Raises:
        KitError: the settings are invalid, or inbox.toml has no destination of a fake's name.
    """
    manifest, known = project.manifest, project.manifest.destinations
    for name in fakes:
        if project.root is not None and name not in known:
            raise unknown("destination in inbox.toml", name, known)
    changed = {name: _spec(name, fake, known.get(name)) for name, fake in fakes.items()}
    return replace(manifest, destinations={**known, **changed})


def with_approvers(manifest: Manifest, groups: Mapping[str, Collection[str]]) -> Manifest:
    """Returns the manifest with these groups; their people are reached by a topic each."""
    made = {
        name: ApproversSpec(name, {person: f"{SNS}:{person}" for person in people})
        for name, people in groups.items()
    }
    return replace(manifest, approvers={**manifest.approvers, **made})


def _spec(name: str, fake: Fake, known: DestinationSpec | None) -> DestinationSpec:
    try:
        table = Destination.model_validate({"base_url": f"https://{name}.example", **fake.settings})
    except ValueError as error:
        raise KitError(f"the settings of the Fake {name!r} are invalid: {error}") from error
    spec = table.spec(name)
    if known is None:
        return spec
    # Only the test's own settings override inbox.toml.
    blank = Destination.model_validate({"base_url": f"https://{name}.example"}).spec(name)
    differs = {
        field: getattr(spec, field)
        for field in DestinationSpec.__slots__
        if getattr(spec, field) != getattr(blank, field) or field in fake.settings
    }
    return replace(known, **differs)


@cache
def _compiled(root: Path, stage: str) -> Manifest:
    # Cached: it imports each module in a process of its own, as synth does.
    return compile_manifest(root, stage=stage).with_sink(SINK_URL)


def _require_importable(root: Path) -> None:
    """Makes `handlers` importable from this directory, as in Lambda."""
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    place = Path(importlib.import_module("handlers").__file__ or "").resolve()
    if not place.is_relative_to(root):
        raise KitError(f"handlers was imported from {place.parent}: test one directory per process")


def _routers(module: ModuleType) -> list[Router]:
    return [value for value in vars(module).values() if isinstance(value, Router)]


def _registered(spec: HandlerSpec, routers: Sequence[Router]) -> Registered:
    for router in routers:
        found = router.registered(spec.name)
        if found is not None:
            return plain(found)
    raise KitError(f"no router has {spec.name!r}")
