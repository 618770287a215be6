"""Every command, with the fewest arguments that it takes."""

from collections.abc import Iterator
from typing import Any

import typer

from webhookctl.app import app

# Their purpose is the checkout's handlers and its app; `dev` is replaced in tests.
IMPORTING = {"check", "dev", "preflight"}
WHY = ("--reason", "why")
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "audit": (),
    "complete": ("evt-1", "--result", "1"),
    "conformance": ("body.json",),
    "destinations list": (),
    "handlers list": (),
    "handlers pause": ("acme.notify", *WHY),
    "handlers resume": ("acme.notify",),
    "hold approve": ("evt-1", *WHY),
    "hold deny": ("evt-1", *WHY),
    "hold list": ("--handler", "no.such"),
    "inbox export": ("evt-1",),
    "inbox ignored": (),
    "inbox inspect": ("evt-1", "--body"),
    "inbox list": ("--handler", "no.such"),
    "init": ("demo",),
    "rejected list": (),
    "rejected release": (),
    "rejected show": ("1-1",),
    "replay": ("--handler", "no.such"),
    "secrets enrol": ("acme",),
    "secrets list": (),
    "secrets set": ("acme",),
    "send": ("body.json", "--source", "acme", "--secret", "only a test"),
    "skip": ("evt-1", *WHY),
    "smoke": (),
    "sources reconcile": ("github", "--hook", "octo/app/7"),
    "verify": (
        *("--source", "acme", "--headers", "headers.txt", "--body", "body.json"),
        *("--secret-env", "SECRET"),
    ),
}


def leaves() -> dict[str, Any]:
    """Returns every command by its words."""
    return dict(_walk(typer.main.get_command(app), ""))


def _walk(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _walk(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command
