"""Every command, with the fewest arguments that it takes."""

from collections.abc import Iterator
from typing import Any

import typer

from webhookctl.app import app

# Their purpose is the checkout's handlers and its app; `dev` is replaced in tests. `mcp` serves
# until its input ends: see tests/webhookctl/agents. `console` serves until a signal ends it.
IMPORTING = {"check", "console", "cost", "dev", "mcp", "preflight"}
WHY = ("--reason", "why")
# The effect of each command. "destructive": it changes several runs, removes what cannot be set
# again, or notifies people; such a command is a dry run without --yes.
EFFECTS = {
    "alarms list": "read",
    "alarms test": "destructive",
    "audit": "read",
    "check": "read",
    "complete": "write",
    "completion": "read",
    "conformance": "read",
    "console": "write",
    "cost": "read",
    "destinations close": "write",
    "destinations list": "read",
    "destinations open": "write",
    "dev": "write",
    "dlq list": "read",
    "doctor": "read",
    "erase": "destructive",
    "handlers list": "read",
    "handlers pause": "write",
    "handlers resume": "write",
    "hold approve": "destructive",
    "hold deny": "destructive",
    "hold list": "read",
    "inbox errors": "read",
    "inbox export": "read",
    "inbox ignored": "read",
    "inbox inspect": "read",
    "inbox list": "read",
    "inbox search": "read",
    "inbox tail": "read",
    "init": "write",
    "listen": "read",
    "mcp": "write",
    "preflight": "read",
    "rejected list": "read",
    "rejected release": "destructive",
    "rejected show": "read",
    "replay": "destructive",
    "runbook": "read",
    "secrets enrol": "write",
    "secrets list": "read",
    "secrets revoke": "destructive",
    "secrets rotate": "write",
    "secrets set": "write",
    "secrets status": "read",
    "send": "write",
    "skip": "write",
    "smoke": "write",
    "sources reconcile": "destructive",
    "tenants list": "read",
    "tenants pause": "write",
    "tenants resume": "write",
    "verify": "read",
}
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "alarms list": (),
    "alarms test": (),
    "audit": (),
    "complete": ("evt-1", "--result", "1"),
    "completion": ("bash",),
    "conformance": ("body.json",),
    "destinations close": ("crm",),
    "destinations list": (),
    "destinations open": ("crm", *WHY),
    "dlq list": (),
    "doctor": (),
    "erase": ("evt-1", *WHY),
    "handlers list": (),
    "handlers pause": ("acme.notify", *WHY),
    "handlers resume": ("acme.notify",),
    "hold approve": ("evt-1", *WHY),
    "hold deny": ("evt-1", *WHY),
    "hold list": ("--handler", "no.such"),
    "inbox errors": ("--handler", "no.such"),
    "inbox export": ("evt-1",),
    "inbox ignored": (),
    "inbox inspect": ("evt-1", "--body"),
    "inbox list": ("--handler", "no.such"),
    "inbox search": ("id", "--source", "no-such"),
    "inbox tail": ("--source", "no-such"),
    "init": ("demo",),
    "listen": ("--forward", "http://localhost:1", "--source", "no-such"),
    "rejected list": (),
    "rejected release": (),
    "rejected show": ("1-1",),
    "replay": ("--handler", "no.such"),
    "runbook": (),
    "secrets enrol": ("acme",),
    "secrets list": (),
    "secrets revoke": ("acme", "--previous"),
    "secrets rotate": ("acme",),
    "secrets set": ("acme",),
    "secrets status": (),
    "send": ("body.json", "--source", "acme", "--secret", "only a test"),
    "skip": ("evt-1", *WHY),
    "smoke": (),
    "sources reconcile": ("github", "--hook", "octo/app/7"),
    "tenants list": (),
    "tenants pause": ("acct_7", *WHY),
    "tenants resume": ("acct_7",),
    "verify": (
        *("--source", "acme", "--headers", "headers.txt", "--body", "body.json"),
        *("--secret-env", "SECRET"),
    ),
}


def ended(code: int, told: str) -> bool:
    """Returns whether a call with these arguments ended as expected.

    Some name a handler, a source or a destination that does not exist, so that they end at once.
    """
    names = ("handler no.such", "source no-such", "destination crm")
    unknown = any(f"no {name}" in told for name in names)
    return code in {0, 1} or (code == 2 and unknown)


def leaves() -> dict[str, Any]:
    """Returns every command by its words."""
    return dict(_walk(typer.main.get_command(app), ""))


def _walk(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _walk(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command
