"""`secrets`: sets and lists secrets, and accepts the ones that providers deliver."""

import sys
from datetime import timedelta
from functools import partial
from typing import Annotated, Any, Final

import typer

from webhook_inbox.client.named_secrets import StoredSecret
from webhook_inbox.client.secret_documents import SecretChange
from webhook_inbox.client.secrets import LONGEST_ENROLMENT, PlannedSecrets, Secrets
from webhook_inbox.client.target import NoStack
from webhook_inbox.client.times import iso
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.timestamps import duration
from webhookctl.checkout import declared_manifest
from webhookctl.command_tree import CommandTree
from webhookctl.display.json_object import json_object
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
# By the number of values.
STATES: Final = ("not set", "one value", "two values")
ONCE_DEPLOYED: Final = "The functions read it once the stack is deployed."
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
    secrets, declared = _secrets(call)
    if not create:
        # Before the value is asked for.
        secrets.document_of(name, declared=declared)
    value = read_value(f"Value of {name}: ")
    how = partial(secrets.set, name, value, declared=declared, replace=replace, create=create)
    if isinstance(secrets, PlannedSecrets):
        changed = how()
    else:
        changed = how(reason=reason, by=call.actor(by))
    words = ALONE if replace and changed.change is SecretChange.REPLACED else WORDS[changed.change]
    call.output.result(changed, words.format(f"{name} in {changed.document}"))
    if call.as_json:
        return
    if isinstance(secrets, PlannedSecrets):
        call.output.note(f"Note: {secrets.no_stack}. {ONCE_DEPLOYED}")
    elif changed.change is not SecretChange.UNCHANGED and not create:
        call.output.note(f"The functions use it within {changed.seen_within_seconds} s.")


def _secrets(call: Invocation) -> tuple[Secrets | PlannedSecrets, Manifest]:
    """Returns the secrets, also of a stack that does not exist yet, and the checkout's manifest."""
    try:
        client = call.client
    except NoStack as error:
        return PlannedSecrets(error), declared_manifest(error.planned.stage)
    return client.secrets, declared_manifest(client.target.stage)


@app.command("list")
@takes_options
def list_secrets(call: Invocation) -> None:
    """List the secrets that the inbox uses or stores, with their state; values are never shown."""
    secrets, declared = _secrets(call)
    if isinstance(secrets, PlannedSecrets):
        found = list(secrets.list(declared=declared))
    else:
        found = list(secrets.list())
    if call.as_json:
        call.output.results(found)
        return
    if isinstance(secrets, PlannedSecrets):
        call.output.note(f"Note: {secrets.no_stack}. The list is that of this checkout.")
    if not found:
        call.output.note("The inbox uses no secret, and none is stored.")
        return
    call.output.table(COLUMNS, [_row(each) for each in found])
    if any(each.is_missing for each in found):
        remedy = call.program.command("secrets set", argument="NAME")
        call.output.note(f"Set a missing one with `{remedy}`.")


@json_object.register
def _(each: StoredSecret) -> Any:
    return {
        "name": each.name,
        "document": each.document,
        "values": each.values,
        "used_by": list(each.used_by),
    }


def _row(each: StoredSecret) -> tuple[object, ...]:
    unused = "" if each.used_by else ", unused"
    return each.name, f"{STATES[each.values]}{unused}", each.document, each.used_by


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
    length = bounded("--for", span, LONGEST_ENROLMENT, EXPOSED_MEANWHILE)
    opened = call.client.secrets.enrol(source, span=length, reason=reason, by=call.actor(by))
    until = iso(opened.open_until)
    call.output.result(opened, f"{source} accepts the first secret offered until {until}.")
    if not call.as_json:
        call.output.note(f"Now create the webhook at the provider, with the URL {opened.url}")


def bounded(option: str, text: str, longest: timedelta, otherwise: str) -> timedelta:
    """Returns the duration of an option; raises BadParameter where it is longer than `longest`."""
    try:
        length = duration(text)
    except ConfigurationError as error:
        raise typer.BadParameter(f"{option}: {error}") from error
    if length > longest:
        raise typer.BadParameter(f"{option}: {text} is too long: {otherwise}")
    return length
