"""Turns async handlers into plain functions."""

import asyncio
import inspect
from typing import Any

from webhook_inbox.handlers.router import Function, Registered


def plain(found: Registered) -> Registered:
    """Returns a handler with its policy and backfill as plain functions."""
    return Registered(
        _plain(found.function),
        policy=found.policy and _plain(found.policy),
        backfill=found.backfill and _plain(found.backfill),
        versions=found.versions,
    )


def _plain(function: Function) -> Function:
    def call(*args: Any) -> Any:
        returned = function(*args)
        return asyncio.run(returned) if inspect.iscoroutine(returned) else returned

    return call
