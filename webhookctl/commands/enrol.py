"""`secrets enrol`: accepts the signing secret that a provider delivers, for some minutes."""

from datetime import datetime, timedelta
from typing import Annotated

import typer

from webhook_inbox import providers
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.timestamps import duration
from webhook_inbox.ingest import enrolment
from webhookctl.checkout import known_source
from webhookctl.display.times import iso
from webhookctl.errors import CommandError
from webhookctl.invocation import Invocation, caller, takes_options


@takes_options
def enrol(
    call: Invocation,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The source, as in inbox.toml.")],
    *,
    span: Annotated[str, typer.Option("--for", help="Duration, at most 1h.")] = "15m",
) -> None:
    """Accept the first secret that a source's provider delivers, and no other.

    Run it right before you create the webhook at the provider.
    """
    length = _length(span)
    target = call.target
    if source not in target.urls:
        deployed = ", ".join(target.urls) or "none"
        raise CommandError(f"no source {source} is deployed; deployed: {deployed}")
    _require_offers(source, target.stage)
    by, now = caller(target), call.clock.now()
    enrolment.begin(target.table, source, by=by, now=now, until=now + length)
    _show(call, source, by=by, until=now + length)


def _length(span: str) -> timedelta:
    try:
        length = duration(span)
    except ConfigurationError as error:
        raise typer.BadParameter(f"--for: {error}") from error
    if length > enrolment.LONGEST:
        raise typer.BadParameter(
            f"--for: {span} is too long: any client can offer a secret meanwhile; use at most 1h"
        )
    return length


def _require_offers(source: str, stage: str) -> None:
    """Raises CommandError where the source's provider delivers no secret."""
    spec = known_source(source, stage)
    try:
        offers = spec is None or providers.load(spec).offer is not None
    except ConfigurationError:
        return  # The checkout is being edited; the deployed source counts.
    if spec is not None and not offers:
        raise CommandError(
            f"the provider of {source} ({spec.provider}) delivers no secret: set the secret that it"
            f" shows, with `webhookctl secrets set {spec.secret}`"
        )


def _show(call: Invocation, source: str, *, by: str, until: datetime) -> None:
    url = call.target.urls[source]
    if call.as_json:
        data = {"source": source, "open_until": iso(until), "opened_by": by, "url": url}
        call.output.json(data)
        return
    call.output.line(f"{source} accepts the first secret offered until {iso(until)}.")
    call.output.note(f"Now create the webhook at the provider, with the URL {url}")
