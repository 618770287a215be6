"""`secrets set`: gives a source, a destination or a handler its secret."""

import sys
from typing import Annotated, Final

import typer
from botocore.exceptions import ClientError

from webhook_inbox.live_secrets import LIFE
from webhookctl.errors import CommandError
from webhookctl.invocation import Invocation, takes_options
from webhookctl.target import Target

app: Final = typer.Typer(no_args_is_help=True, help="Set secrets.", rich_markup_mode=None)


@app.callback()
def secrets() -> None:
    """Set secrets."""


@app.command("set")
@takes_options
def set_secret(
    call: Invocation,
    name: Annotated[str, typer.Argument(metavar="NAME", help="As in inbox.toml.")],
) -> None:
    """Set a secret to the value on standard input, without its last line break."""
    target = call.target
    value = read_value(f"Value of {name}: ")
    created = _put(target, name, value)
    seconds = int(LIFE.total_seconds())
    if call.as_json:
        data = {"name": name, "secret": target.secret_prefix + name, "created": created}
        call.output.json({**data, "seen_within_seconds": seconds})
        return
    call.output.line(f"Set {target.secret_prefix}{name}.")
    call.output.note(
        f"The functions use it within {seconds} s; the value before it is accepted as well until"
        " it is replaced once more."
    )


def read_value(prompt: str) -> str:
    """Returns a secret from standard input, asked for without echo on a terminal.

    Raises:
        CommandError: it is empty, or no text.
    """
    try:
        text: str = (
            typer.prompt(prompt, hide_input=True, prompt_suffix="", err=True)
            if sys.stdin.isatty()
            else sys.stdin.read()
        )
    except UnicodeDecodeError:
        # Not chained: the original error carries the secret's bytes.
        raise CommandError(
            "the secret is not UTF-8 text: pass it as the provider shows it"
        ) from None
    value = text.removesuffix("\n").removesuffix("\r")
    if not value.strip():
        raise CommandError("the secret is empty: pass it on standard input, `… < file`")
    return value


def _put(target: Target, name: str, value: str) -> bool:
    """Stores the value; returns whether the secret had to be created."""
    vault = target.client("secretsmanager")
    secret_id = target.secret_prefix + name
    try:
        vault.put_secret_value(SecretId=secret_id, SecretString=value)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise
        if not target.local:
            raise CommandError(
                f"the stack {target.name} has no secret {name}: name it in inbox.toml and deploy"
                " first; its functions have no right to read any other"
            ) from error
    else:
        return False
    vault.create_secret(Name=secret_id, SecretString=value)
    return True
