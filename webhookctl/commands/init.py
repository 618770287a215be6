"""`init`: writes a new project."""

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from string import Template
from typing import Annotated, Final
from urllib.parse import urlsplit

import typer
from pydantic import ValidationError

from webhook_inbox.client.suggestions import quoted
from webhook_inbox.configuration.addresses import MEANING, kind_of
from webhook_inbox.configuration.destination import Destination
from webhook_inbox.configuration.document import Alarms
from webhook_inbox.domain.manifest import SINK
from webhook_inbox.domain.printable import counted
from webhookctl.errors import CommandError
from webhookctl.invocation import Invocation, offline

TEMPLATE: Final = Path(__file__).resolve().parents[1] / "template"
# The effect of the first event, in the README.
HANDLED: Final = "the handler\nconfirms the order once"
FORWARDED: Final = "your\nservice receives the event once"
EXAMPLE: Final = "https://hooks.acme.com/in"
# The deployed address where only one on this machine is known.
PLACEHOLDER: Final = """\
# Before you deploy, replace this placeholder with your service's address and delete `allow`.
base_url = "https://app.example.com"
allow = ["placeholder"]"""

# With the stage, the longest name is within CloudFormation's 128 characters.
STACK_LIMIT: Final = 60
NO_ADDRESS: Final = "none"
LATER: Final = "later"
# Not an address, so that no alarm goes to a stranger before it is replaced.
UNSET: Final = """\
# [alarms]
# notify = ["mailto:TEAM@COMPANY"]"""


@offline
def init(
    call: Invocation,
    *,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The project's directory.")],
    forward: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Forward every event to this service, instead of a handler in Python.",
        ),
    ] = None,
    alarms: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Send every alarm to mailto:… or https://…, or to none. Asked on a terminal.",
        ),
    ] = None,
) -> None:
    """Write a new project: configuration, a first handler, its test, a CDK app and CI."""
    words = _words(directory, forward)
    address = None if alarms is None else _address(alarms)
    parts = ("project", "handler" if forward is None else "forward")
    files = dict(pair for part in parts for pair in _files(TEMPLATE / part))
    _require_free(directory, files)
    address = address or _asked(call)
    _write(directory, files, {**words, "alarms": _table(address)})
    _report(call, directory, count=len(files))
    if address == LATER:
        call.output.note(
            "No address receives the alarms: before you deploy, set one in functions/inbox.toml."
        )
    if words.get("deployed") == PLACEHOLDER:
        call.output.note(
            f"{forward} is on this machine: before you deploy, set the service's address in"
            " functions/inbox.toml."
        )


def _words(directory: Path, forward: str | None) -> Mapping[str, str]:
    words = {
        "name": directory.resolve().name,
        "stack": _stack(directory.resolve().name),
        "version": version("webhook-inbox"),
        "effect": HANDLED if forward is None else FORWARDED,
    }
    return words if forward is None else {**words, **_service(forward)}


def _stack(name: str) -> str:
    """Returns the stacks' name without the stage, of the letters that CloudFormation takes.

    Where letters are left out, a hash distinguishes it: a second project whose stack had the name
    of a first one's would replace that on its deployment.
    """
    plain = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")
    if name.isascii() and 0 < len(plain) <= STACK_LIMIT:
        return f"WebhookInbox-{plain}"
    hashed = sha256(os.fsencode(name)).hexdigest()[:8]
    return f"WebhookInbox-{plain[: STACK_LIMIT - 9].strip('-') or 'project'}-{hashed}"


def _asked(call: Invocation) -> str:
    """Returns the address that the user types; LATER without one, or without a terminal."""
    if call.as_json or not sys.stdin.isatty():
        return LATER
    question = f"Send alarms to (mailto:… or https://…, or {NO_ADDRESS})"
    answer: str = typer.prompt(question, default=LATER, value_proc=_address, err=True)
    return answer


def _address(given: str) -> str:
    """Returns an address of `[alarms]`, NO_ADDRESS or LATER; raises BadParameter for others."""
    text = given.strip()
    if text in {NO_ADDRESS, LATER}:
        return text
    address = text if ":" in text else f"mailto:{text}"
    try:
        Alarms(notify=[address])
    except ValidationError:
        address = ""
    if not address or not address.isprintable():
        raise typer.BadParameter(
            f"{given!r} is not an address: give mailto:… or https://…, or {NO_ADDRESS}"
        )
    return address


def _table(address: str) -> str:
    """Returns the table `[alarms]` of inbox.toml."""
    if address == LATER:
        return UNSET
    listed = [] if address == NO_ADDRESS else [address]
    return f"[alarms]\nnotify = {json.dumps(listed, ensure_ascii=False)}"


def _service(url: str) -> Mapping[str, str]:
    """Returns the addresses of a service: deployed, and on this machine.

    Raises BadParameter for one with which the project's own `check` would fail.
    """
    try:
        parts = urlsplit(url)
        if not parts.hostname or any(not c.isprintable() or c in '"\\ ' for c in url):
            raise typer.BadParameter(f"--forward {url!r} is not a URL as in {EXAMPLE}")
        Destination(base_url=url)
    except ValidationError as error:
        mistake = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise typer.BadParameter(f"--forward {url!r}: {mistake}") from error
    except ValueError as error:
        raise typer.BadParameter(f"--forward {url!r} is not a URL as in {EXAMPLE}") from error
    found = kind_of(url)
    if found == "loopback":
        return {"deployed": PLACEHOLDER, "local": url}
    if found:
        raise typer.BadParameter(
            f"--forward {url!r} {MEANING[found]}: give the address that the deployed functions"
            f" call, as in {EXAMPLE}, or one of this machine"
        )
    # A session on this machine must not call the deployed service.
    return {"deployed": f'base_url = "{url}"', "local": SINK}


def _files(top: Path) -> Iterator[tuple[str, Path]]:
    """Yields (name in the project, template file)."""
    for path in top.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(top).as_posix(), path


def _write(directory: Path, files: Mapping[str, Path], words: Mapping[str, str]) -> None:
    for name, source in sorted(files.items()):
        target = directory / name
        target.parent.mkdir(parents=True, exist_ok=True)
        template = Template(source.read_text(encoding="utf-8"))
        target.write_text(template.substitute(words), encoding="utf-8")


def _require_free(directory: Path, files: Mapping[str, Path]) -> None:
    """Raises CommandError where a file exists, or one in place of a directory."""
    parents = {parent for name in files for parent in (directory / name).parents}
    for path in sorted(parents):
        if os.path.lexists(path) and not path.is_dir():
            raise CommandError(
                f"{path} is not a directory: choose a new directory, or remove the file"
            )
    taken = sorted(name for name in files if os.path.lexists(directory / name))
    if taken:
        raise CommandError(
            f"{directory} already has {', '.join(taken)}: choose a new directory, or remove"
            f" {'it' if len(taken) == 1 else 'them'}"
        )


def _report(call: Invocation, directory: Path, *, count: int) -> None:
    if call.as_json:
        call.output.json({"directory": str(directory.resolve()), "files": count})
        return
    call.output.line(f"Created {directory} with {counted(count, 'file')}. Next:")
    call.output.line()
    call.output.line(f"  cd {quoted(str(directory))}")
    call.output.fields(
        {"webhookctl dev": "receive webhooks on this machine", "pytest": "test the handlers"},
        indent="  ",
    )
