"""Reads the times of options."""

from datetime import datetime

import typer

from webhook_inbox.client import times
from webhook_inbox.client.errors import WrongArgument


def moment(text: str, now: datetime) -> datetime:
    """Returns the time of an option, see `client.times`; raises BadParameter."""
    try:
        return times.moment(text, now)
    except WrongArgument as error:
        raise typer.BadParameter(str(error)) from error


def require_window(since: str | None, until: str | None, now: datetime) -> None:
    """Raises BadParameter for a window that ends before it begins."""
    if since is not None and moment(since, now) > (moment(until, now) if until else now):
        raise typer.BadParameter(f"--since {since} is not before --until {until or 'now'}")
