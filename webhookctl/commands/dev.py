"""`dev`: runs the inbox on this machine."""

import re
import sys
import tomllib
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from webhookctl.checkout import Checkout
from webhookctl.errors import INSTALL, CommandError
from webhookctl.invocation import EXPOSED, Invocation, interactive

STDIN: Final = Path("-")
HOST: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


@interactive
def dev(
    call: Invocation,
    *,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the local API.")] = 8787,
    sink_port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the sink.")] = 8788,
    secret: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE=VALUE",
            help="A source's real secret, visible to other users of this machine; repeatable.",
        ),
    ] = None,
    secrets_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="File of SOURCE=VALUE lines, or TOML; `-` reads standard input."
        ),
    ] = None,
    public_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="The host name of a tunnel to the local API; repeatable."
        ),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Directory that keeps events, secrets and effects until the next start.",
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Delete what the directory of --keep has kept.")
    ] = False,
) -> None:
    """Run the inbox on this machine until Ctrl-C."""
    if fresh and keep is None:
        raise typer.BadParameter("--fresh deletes what --keep DIR has kept: give --keep DIR too")
    values = {} if secrets_file is None else read_file(secrets_file)
    values |= dict(pair(text, f"--secret number {n}") for n, text in enumerate(secret or (), 1))
    if secret:
        call.output.note(f"Note: --secret {EXPOSED}: use --secrets-file FILE, or - for its input.")
    hosts = frozenset(map(_host, public_host or ()))
    root = Checkout.required().functions.parent
    options = {"secrets": values, "hosts": hosts, "keep": keep, "fresh": fresh}
    raise typer.Exit(_run(root, port=port, sink_port=sink_port, **options))


def _host(name: str) -> str:
    if not HOST.fullmatch(name.lower()):
        raise typer.BadParameter(
            f"--public-host {name!r} is not a host name: give it as in abc.example.com, without"
            " https:// and port"
        )
    return name.lower()


def _run(root: Path, **options: Any) -> int:
    try:
        # Needs the CDK and the repository; the other commands do not.
        from webhookctl.local.session import run_dev  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise CommandError(
            f"the local runtime needs {error.name}, which is not installed: {INSTALL}"
        ) from error
    return run_dev(root, **options)


def read_file(path: Path) -> dict[str, str]:
    """Returns secrets by source.

    Raises:
        CommandError: a line is invalid; the text has its number, never its content.
    """
    try:
        text = sys.stdin.read() if path == STDIN else path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        # Not chained: the original error carries the file's bytes.
        raise CommandError(f"{path}: not UTF-8; save it as UTF-8") from None
    values = _toml(text)
    if values is not None:
        return values
    lines = enumerate(text.splitlines(), 1)
    kept = ((n, line) for n, line in lines if line.strip() and not line.lstrip().startswith("#"))
    return dict(pair(line, f"{path}, line {n}") for n, line in kept)


def _toml(text: str) -> dict[str, str] | None:
    """Returns the values of a TOML file; None where it is not TOML with only strings."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    # `acme=0123` is a number in TOML; the user means a secret.
    return document if all(isinstance(value, str) for value in document.values()) else None


def pair(text: str, where: str) -> tuple[str, str]:
    """Returns (source, value) of SOURCE=VALUE; raises CommandError without the content."""
    source, equals, value = (part.strip() for part in text.partition("="))
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    if not (source and equals and value):
        raise CommandError(f"{where}: write SOURCE=VALUE")
    return source, value
