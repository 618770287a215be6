"""`secrets`: sets secrets, and accepts the ones that providers deliver."""

import sys
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Final

import typer
from botocore.exceptions import ClientError

from webhook_inbox import providers
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.secrets import LIFE
from webhook_inbox.domain.timestamps import duration
from webhook_inbox.ingest import enrolment
from webhookctl.checkout import Checkout, known_manifest, known_source, unknown
from webhookctl.command_tree import CommandTree
from webhookctl.display.times import iso
from webhookctl.errors import CommandError
from webhookctl.invocation import By, Invocation, caller, takes_options
from webhookctl.target import Target

# Permission to set a secret does not imply permission to read it.
DENIED: Final = frozenset({"AccessDenied", "AccessDeniedException"})


class Change(StrEnum):
    """The effect of setting a secret."""

    CREATED = "created"  # had no value
    REPLACED = "replaced"
    UNCHANGED = "unchanged"
    UNKNOWN = "unknown"  # set; the previous value is unreadable


WORDS: Final = {
    Change.CREATED: "Set {}, which had no value.",
    Change.REPLACED: "Replaced {}; the previous value stays valid until the next change.",
    Change.UNCHANGED: "Unchanged: {} already has this value.",
    Change.UNKNOWN: "Set {}; a previous value stays valid until the next change.",
}

app: Final = CommandTree(help="Set secrets.")


@app.callback()
def secrets() -> None:
    """Set secrets."""


@app.command("set")
@takes_options
def set_secret(
    call: Invocation,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The secret, as in inbox.toml.")],
    *,
    create: Annotated[
        bool,
        typer.Option("--create", help="Create it for webhookctl only; no function can read it."),
    ] = False,
) -> None:
    """Set a secret from standard input, without its trailing line break."""
    target = call.target
    if not create:
        _require_used(call, name)
    value = read_value(f"Value of {name}: ")
    change, created = _put(target, name, value, create=create)
    secret, seconds = target.secret_prefix + name, int(LIFE.total_seconds())
    if call.as_json:
        data = {"name": name, "secret": secret, "created": created, "change": str(change)}
        call.output.json({**data, "seen_within_seconds": seconds})
        return
    call.output.line(WORDS[change].format(secret))
    if change is not Change.UNCHANGED and not create:
        call.output.note(f"The functions use it within {seconds} s.")


def _require_used(call: Invocation, name: str) -> None:
    """Raises CommandError for a secret that nothing deployed and nothing in the checkout uses."""
    manifest = known_manifest(call.target)
    deployed = [*(spec.secret for spec in manifest.sources.values()), *manifest.secrets]
    # Without permission to read the manifest, the name cannot be checked.
    if not deployed or name in deployed:
        return
    known = dict.fromkeys((*deployed, *_planned(call.target.stage)))
    if name not in known:
        there = unknown("secret", name, known, where="of a source, destination or handler")
        raise CommandError(
            f"{there}{' To' if there.endswith('?') else '; to'} store it all the same, add --create"
        )


def _planned(stage: str) -> tuple[str, ...]:
    """Returns the secrets of the checkout; none without a valid one."""
    try:
        return Checkout.required().configuration(stage).secrets
    except (CommandError, ConfigurationError):
        return ()


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


def _put(target: Target, name: str, value: str, *, create: bool) -> tuple[Change, bool]:
    """Stores the value; returns the change, and whether the secret was created."""
    vault = target.client("secretsmanager")
    secret_id = target.secret_prefix + name
    change = _change(vault, secret_id, value)
    if change is Change.UNCHANGED:
        # Setting it again would make it its own previous version and drop the one still in use.
        return change, False
    try:
        vault.put_secret_value(SecretId=secret_id, SecretString=value)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise
        if not target.local and not create:
            raise CommandError(
                f"the stack {target.name} has no secret {name}: add it to inbox.toml and deploy"
                " first; its functions can read no other"
            ) from error
    else:
        return change, False
    vault.create_secret(Name=secret_id, SecretString=value)
    return change, True


def _change(vault: Any, secret_id: str, value: str) -> Change:
    try:
        current = vault.get_secret_value(SecretId=secret_id).get("SecretString")
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code == "ResourceNotFoundException":
            return Change.CREATED
        if code in DENIED:
            return Change.UNKNOWN
        raise
    return Change.UNCHANGED if current == value else Change.REPLACED


@app.command("enrol")
@takes_options
def enrol(
    call: Invocation,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The source, as in inbox.toml.")],
    *,
    span: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="For how long, at most 1h.")
    ] = "15m",
    by: By = None,
) -> None:
    """Accept the secret that a source's provider delivers, in place of all earlier ones.

    Run it right before you create the webhook at the provider. If two different secrets are offered
    meanwhile, none is accepted, and an alarm fires: delete the webhook and repeat.
    """
    length = _length(span)
    target = call.target
    if source not in target.urls:
        raise CommandError(unknown("source", source, target.urls, where="is deployed"))
    _require_offers(call, source)
    who, now = by or caller(target), call.clock.now()
    enrolment.begin(target.table, source, by=who, now=now, until=now + length)
    _show_enrolment(call, source, by=who, until=now + length)


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
