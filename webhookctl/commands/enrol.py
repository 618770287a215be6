"""`secrets enrol`: lets a provider deliver the secret it signs with, for some minutes."""

from datetime import datetime, timedelta
from typing import Annotated

import typer

from webhook_inbox import providers
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.timestamps import duration
from webhook_inbox.ingest import enrolment
from webhookctl.checkout import Checkout
from webhookctl.display.times import iso
from webhookctl.errors import CommandError
from webhookctl.invocation import Invocation, caller, takes_options


@takes_options
def enrol(
    call: Invocation,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="As in inbox.toml.")],
    *,
    span: Annotated[str, typer.Option("--for", help="How long, at most 1h.")] = "15m",
) -> None:
    """Let a source take the secret that its provider delivers: the first one, and no other.

    Call it right before you create the webhook at the provider.
    """
    length = _length(span)
    target = call.target
    if source not in target.urls:
        deployed = ", ".join(target.urls) or "none"
        raise CommandError(f"no source {source} is deployed; there are: {deployed}")
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
            f"--for: {span} is too long: anybody can offer a secret meanwhile; give at most 1h"
        )
    return length


def _require_offers(source: str, stage: str) -> None:
    """Refuses where the checkout tells that nothing would ever be taken."""
    found = Checkout.find()
    try:
        spec = None if found is None else found.sources(stage).get(source)
        offers = spec is None or providers.load(spec).offer is not None
    except ConfigurationError:
        return  # What is deployed may be operated while the file is being edited.
    if spec is not None and not offers:
        raise CommandError(
            f"the provider of {source} ({spec.provider}) delivers no secret: set the one it shows"
            f" you, `webhookctl secrets set {spec.secret}`"
        )


def _show(call: Invocation, source: str, *, by: str, until: datetime) -> None:
    url = call.target.urls[source]
    if call.as_json:
        data = {"source": source, "open_until": iso(until), "opened_by": by, "url": url}
        call.output.json(data)
        return
    call.output.line(f"{source} takes the first secret that is offered until {iso(until)}.")
    call.output.note(f"Now create the webhook at the provider, with the address {url}")
