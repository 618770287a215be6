"""`secrets`: sets and lists secrets, and accepts the ones that providers deliver."""

import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Final

import typer

from webhook_inbox import providers
from webhook_inbox.client.errors import WrongArgument
from webhook_inbox.client.names import known_manifest, known_source, unknown
from webhook_inbox.client.secret_documents import SecretChange
from webhook_inbox.client.target import NoStack, Target
from webhook_inbox.client.times import iso
from webhook_inbox.domain.audit import AuditedAction
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.secret_document import HANDLERS, SOURCES, TOOLS
from webhook_inbox.domain.secrets import LIFE
from webhook_inbox.domain.timestamps import duration
from webhook_inbox.ingest import enrolment
from webhookctl.checkout import Checkout
from webhookctl.command_tree import CommandTree
from webhookctl.display.secrets import named_secrets, secret_object
from webhookctl.display.table import Column, Fit
from webhookctl.errors import CommandError
from webhookctl.invocation import By, Invocation, Why, takes_options

WORDS: Final = {
    SecretChange.CREATED: "Set {}, which had no value.",
    SecretChange.REPLACED: "Replaced {}; the previous value stays valid until the next change.",
    SecretChange.UNCHANGED: "Unchanged: {} already has this value.",
}
# With --replace.
ALONE: Final = "Replaced {}; no previous value is valid."
EXPOSED_MEANWHILE: Final = "any client can offer a secret meanwhile; use at most 1h"
COLUMNS: Final = (
    Column("SECRET", Fit.NAME),
    Column("STATE"),
    Column("DOCUMENT"),
    Column("USED_BY", Fit.NOTE),
)

app: Final = CommandTree(help="Set, rotate and list secrets.")


@app.command("set")
@takes_options
def set_secret(
    call: Invocation,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The secret, as in inbox.toml.")],
    *,
    create: Annotated[
        bool,
        typer.Option("--create", help="Store it for webhookctl only; no function can read it."),
    ] = False,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Keep no previous value valid, for example after a leak."),
    ] = False,
    reason: Why = "",
    by: By = None,
) -> None:
    """Set a secret from standard input, without its trailing line break.

    The previous value stays valid until the next change. The stack need not exist yet; without it
    there is no audit.
    """
    read = partial(read_value, f"Value of {name}: ")
    store(call, name, read, create=create, replace=replace, reason=reason, by=by)


def store(
    call: Invocation,
    name: str,
    read: Callable[[], str],
    *,
    create: bool = False,
    replace: bool = False,
    reason: str = "",
    by: str | None = None,
) -> None:
    """Sets a secret to the value that `read` returns once its name is known to be used."""
    target, planned = _target(call)
    reader = TOOLS if create else _reader(target, name, planned=planned)
    value = read()
    put = partial(target.secret_documents.set, reader, name, value, replace=replace or create)
    if planned:
        change = put()
    else:
        with call.audited(
            AuditedAction.SET_SECRET, by, reason=reason, secret=name, document=reader
        ) as counts:
            change = put()
            counts[change] += 1
    document, seconds = target.secret_documents.id(reader), int(LIFE.total_seconds())
    if call.as_json:
        data = {"name": name, "document": document, "change": str(change)}
        call.output.json({**data, "seen_within_seconds": None if create or planned else seconds})
        return
    words = ALONE if replace and change is SecretChange.REPLACED else WORDS[change]
    call.output.line(words.format(f"{name} in {document}"))
    if planned:
        call.output.note(f"Note: {planned}. The functions read it once the stack is deployed.")
    elif change is not SecretChange.UNCHANGED and not create:
        call.output.note(f"The functions use it within {seconds} s.")


def _target(call: Invocation) -> tuple[Target, NoStack | None]:
    """Returns the target; with an error, the one that a stack which does not exist will be."""
    try:
        return call.target, None
    except NoStack as error:
        return error.planned, error


def _reader(target: Target, name: str, *, planned: NoStack | None) -> str:
    """Returns the document of a secret that is deployed, or that the checkout uses.

    Raises WrongArgument for a name that neither uses; CommandError where neither can be read.
    """
    known: dict[str, str] = {}
    for manifest in (_of_checkout(target), known_manifest(target)):
        known |= dict.fromkeys(manifest.handler_secrets, HANDLERS)
        known |= dict.fromkeys(manifest.source_secrets, SOURCES)
    if not known:
        raise planned or CommandError(
            f"the configuration of {target.name} cannot be read here, so it is unknown whether a"
            f" source or a handler uses {name}: request cloudformation:GetTemplateSummary, or"
            " change to your inbox's repository"
        )
    if name not in known:
        there = unknown("secret", name, sorted(known), where="of a source, destination or handler")
        raise WrongArgument(
            f"{there}{' To' if there.endswith('?') else '; to'} store it all the same, add --create"
        )
    return known[name]


def deployed_reader(target: Target, name: str) -> str:
    """Returns the document of a secret of the deployed inbox; raises CommandError as `set`."""
    return _reader(target, name, planned=None)


def _of_checkout(target: Target) -> Manifest:
    """Returns the sources and secrets of the checkout; none without a valid one."""
    try:
        found = Checkout.required().configuration(target.stage)
    except (CommandError, ConfigurationError):
        return Manifest()
    return Manifest(sources=found.sources, destinations=found.destinations, secrets=found.secrets)


@app.command("list")
@takes_options
def list_secrets(call: Invocation) -> None:
    """List the secrets that the inbox uses or stores, with their state; values are never shown."""
    target, planned = _target(call)
    manifest = _of_checkout(target) if planned else target.manifest
    documents = target.secret_documents
    stored = {reader: documents.read(reader) for reader in (SOURCES, HANDLERS, TOOLS)}
    found = named_secrets(manifest, stored)
    if call.as_json:
        for each in found:
            call.output.json(secret_object(each, documents.id(each.reader)))
        return
    if planned:
        call.output.note(f"Note: {planned}. The list is that of this checkout.")
    if not found:
        call.output.note("The inbox uses no secret, and none is stored.")
        return
    rows = [(each.name, each.state, documents.id(each.reader), each.users) for each in found]
    call.output.table(COLUMNS, rows)
    if any(each.missing for each in found):
        remedy = call.program.command("secrets set", argument="NAME")
        call.output.note(f"Set a missing one with `{remedy}`.")


def read_value(prompt: str) -> str:
    """Returns a secret from standard input, prompted without echo on a terminal.

    Raises:
        CommandError: it is empty or not text.
    """
    try:
        text: str = (
            typer.prompt(prompt, hide_input=True, prompt_suffix="", err=True)
            if sys.stdin.isatty()
            else sys.stdin.read()
        )
    except UnicodeDecodeError:
        # Not chained: the original error carries the secret's bytes.
        raise CommandError("the secret is not UTF-8: pass it as the provider shows it") from None
    value = text.removesuffix("\n").removesuffix("\r")
    if not value.strip():
        raise CommandError("the secret is empty: pass it on standard input, `… < file`")
    return value


@app.command("enrol")
@takes_options
def enrol(
    call: Invocation,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The source, as in inbox.toml.")],
    *,
    span: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="For how long, at most 1h.")
    ] = "15m",
    reason: Why = "",
    by: By = None,
) -> None:
    """Accept the secret that a source's provider delivers, in place of all earlier ones.

    Run it right before you create the webhook at the provider. If two different secrets are offered
    meanwhile, none is accepted, and an alarm fires: delete the webhook and repeat.
    """
    length = bounded("--for", span, enrolment.LONGEST, EXPOSED_MEANWHILE)
    target = call.target
    if source not in target.urls:
        raise WrongArgument(unknown("source", source, target.urls, where="is deployed"))
    _require_offers(call, source)
    # Ingest may write the document, and not create it.
    target.secret_documents.create(SOURCES)
    who, now = str(call.actor(by)), call.clock.now()
    with call.audited(
        AuditedAction.ENROL_SECRET, by, reason=reason, source=source, span=span
    ) as counts:
        enrolment.begin(target.table, source, by=who, now=now, until=now + length)
        counts["opened"] += 1
    _show_enrolment(call, source, by=who, until=now + length)


def bounded(option: str, text: str, longest: timedelta, otherwise: str) -> timedelta:
    """Returns the duration of an option; raises BadParameter where it is longer than `longest`."""
    try:
        length = duration(text)
    except ConfigurationError as error:
        raise typer.BadParameter(f"{option}: {error}") from error
    if length > longest:
        raise typer.BadParameter(f"{option}: {text} is too long: {otherwise}")
    return length


def _require_offers(call: Invocation, source: str) -> None:
    """Raises CommandError where the source's provider delivers no secret."""
    spec = known_source(call.target, source)
    try:
        offers = spec is None or providers.load(spec).offer is not None
    except ConfigurationError:
        return  # Deployed with a later version, which knows its provider.
    if spec is not None and not offers:
        remedy = call.program.command("secrets set", argument=spec.secret)
        raise CommandError(
            f"the provider of {source} ({spec.provider}) delivers no secret: set the secret that it"
            f" shows, with `{remedy}`"
        )


def _show_enrolment(call: Invocation, source: str, *, by: str, until: datetime) -> None:
    url = call.target.urls[source]
    if call.as_json:
        data = {"source": source, "open_until": iso(until), "opened_by": by, "url": url}
        call.output.json(data)
        return
    call.output.line(f"{source} accepts the first secret offered until {iso(until)}.")
    call.output.note(f"Now create the webhook at the provider, with the URL {url}")
