"""`check`: validates configuration and handlers before a deployment."""

from typing import Annotated, Any

import typer

from webhook_inbox.configuration.check_warnings import warnings
from webhook_inbox.configuration.inbox_toml import ThrottleSpec
from webhook_inbox.domain.manifest import SPLIT, HandlerSpec, Manifest, SourceSpec
from webhook_inbox.domain.printable import counted
from webhookctl.checkout import Checkout
from webhookctl.display.table import Column, Fit
from webhookctl.errors import CommandError
from webhookctl.invocation import Invocation, Stage, offline

Strict = Annotated[bool, typer.Option("--strict", help="Fail if there are warnings.")]


@offline
def check(call: Invocation, stage: Stage = "dev", *, strict: Strict = False) -> None:
    """Validate inbox.toml and the handlers, and print the result."""
    checkout = Checkout.required()
    if not call.as_json:
        call.output.line(f"stage {stage}")
    manifest, throttles = checkout.manifest(stage), checkout.configuration(stage).throttles
    sources = [_source(spec, throttles[name]) for name, spec in manifest.sources.items()]
    handlers = [_handler(spec) for spec in _declared(manifest)]
    found = warnings(checkout.functions, manifest)
    fails = strict and bool(found)
    if call.as_json:
        head = {"stage": manifest.stage, "version": manifest.version}
        call.output.json({**head, "sources": sources, "handlers": handlers, "warnings": found})
        raise typer.Exit(int(fails))
    call.output.line()
    _print(call, "sources", sources)
    call.output.line()
    _print(call, "handlers", handlers)
    for warning in found:
        call.output.note(f"Warning: {warning}")
    if fails:
        raise CommandError(f"{counted(len(found), 'warning')}, which --strict makes errors")
    call.output.note(_summary(manifest, len(found)))


def _source(spec: SourceSpec, throttle: ThrottleSpec) -> dict[str, Any]:
    return {
        "source": spec.name,
        "provider": spec.provider,
        "types": list(spec.types),
        "secret": spec.secret,
        "path": f"/webhooks/{spec.name}",
        "rate": throttle.rate,
        "burst": throttle.burst,
    }


def _declared(manifest: Manifest) -> list[HandlerSpec]:
    """Returns the user's handlers, without the inbox's own that splits batches."""
    return [spec for spec in manifest.handlers.values() if spec.name != SPLIT]


def _handler(spec: HandlerSpec) -> dict[str, Any]:
    return {
        "handler": spec.name,
        "source": spec.source,
        "types": list(spec.types),
        "lane": spec.lane,
        "max_attempts": spec.max_attempts,
        "timeout": spec.timeout,
    }


def _print(call: Invocation, what: str, entries: list[dict[str, Any]]) -> None:
    if not entries:
        call.output.line(f"no {what}")
        return
    rows = [
        [", ".join(value) if isinstance(value, list) else value for value in entry.values()]
        for entry in entries
    ]
    call.output.table([Column(name.upper(), Fit.NAME) for name in entries[0]], rows)


def _summary(manifest: Manifest, warnings: int) -> str:
    counts = (
        counted(len(manifest.sources), "source"),
        counted(len(_declared(manifest)), "handler"),
        counted(len(manifest.lanes), "lane"),
    )
    also = f", {counted(warnings, 'warning')}" if warnings else ""
    return f"OK for stage {manifest.stage}: {', '.join(counts)}{also}."
