"""The warnings of a valid project: what its author most likely did not intend.

The key `allow` of a source omits a warning that is intended, an empty list that of the alarms.
"""

from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Final

from webhook_inbox.configuration import inbox_toml
from webhook_inbox.configuration.glob_patterns import overlap
from webhook_inbox.configuration.handler_modules import declared_at
from webhook_inbox.configuration.inbox_toml import Configuration
from webhook_inbox.domain.manifest import LOCAL, SPLIT, HandlerSpec, Manifest, SourceSpec
from webhook_inbox.domain.similar_names import did_you_mean

EVERYTHING: Final = "*"
# A stage with a name like `prod-eu` beside `prod` is no misspelling.
SIMILAR: Final = 0.75


def warnings(root: Path, manifest: Manifest) -> list[str]:
    """Returns the warnings, one line each with the place and the remedy.

    Args:
        root: the directory with `inbox.toml` and `handlers/`.
        manifest: compiled from it.

    Raises:
        ConfigurationError: `inbox.toml` has become invalid.
    """
    file = root.resolve() / "inbox.toml"
    settings = inbox_toml.load(file, stage=manifest.stage)
    specs = [spec for spec in manifest.handlers.values() if spec.name != SPLIT]
    where = inbox_toml.shown(file)
    found = [f"{where} {text}" for text in _of_stage(manifest.stage, settings.stages)]
    found += [f"{where} {text}" for text in _of_alarms(manifest.stage, settings)]
    for name, source in manifest.sources.items():
        own = [spec for spec in specs if spec.source == name]
        if not _allows(settings, name, "unhandled"):
            found += [f"{where} {text}" for text in _unhandled(source, own)]
        if not _allows(settings, name, "overlap"):
            found += _overlaps(own, root)
    return found


def _allows(settings: Configuration, source: str, kind: str) -> bool:
    return kind in settings.allowed.get(f"sources.{source}", ())


def _of_stage(stage: str, stages: Iterable[str]) -> Iterator[str]:
    """Yields a warning about a stage without tables whose name is like that of another one."""
    guess = did_you_mean(stage, stages, similarity=SIMILAR)
    if guess and stage not in {LOCAL, *stages}:
        yield (
            f'has no tables for the stage "{stage}"; {guess} Otherwise add an empty'
            f" [stages.{stage}]"
        )


def _of_alarms(stage: str, settings: Configuration) -> Iterator[str]:
    """Yields a warning about a deployed stage whose alarms reach no address."""
    if stage != LOCAL and not settings.alarms.stated:
        yield (
            "[alarms]: no address receives the alarms of the stage"
            f' {stage}; set notify = ["mailto:…"] or ["https://…"], or notify = [] if none is to'
        )


def _unhandled(source: SourceSpec, handlers: list[HandlerSpec]) -> Iterator[str]:
    remedy = f'or set allow = ["unhandled"] in [sources.{source.name}]'
    if not handlers:
        yield (
            f"[sources.{source.name}]: no handler takes its events, which are stored but not"
            f" handled; write one for its Router, remove the source, {remedy}"
        )
        return
    for type_ in source.types:
        if not any(overlap(type_, own) for spec in handlers for own in spec.types):
            yield (
                f'[sources.{source.name}] types: no handler takes "{type_}", whose events are'
                f" stored but not handled; write one, remove the type, {remedy}"
            )


def _overlaps(handlers: list[HandlerSpec], root: Path) -> Iterator[str]:
    """Yields a warning for two handlers of one module of which a pattern includes types of both.

    Not for handlers of the same type, or of `"*"`: their authors know that each event has a run
    of both.
    """
    for one, other in combinations(handlers, 2):
        pair = _overlap(one, other) if one.module == other.module else None
        if pair:
            yield (
                f'{declared_at(root, other)}: handler {other.name!r} takes "{pair[1]}", and'
                f' {one.name!r} ({declared_at(root, one)}) takes "{pair[0]}": an event of both'
                " patterns has a run of each; narrow one pattern, or set"
                f' allow = ["overlap"] in [sources.{one.source}] if both are to run'
            )


def _overlap(one: HandlerSpec, other: HandlerSpec) -> tuple[str, str] | None:
    pairs = ((a, b) for a in one.types for b in other.types)
    differing = (pair for pair in pairs if pair[0] != pair[1] and EVERYTHING not in pair)
    return next((pair for pair in differing if overlap(*pair)), None)
