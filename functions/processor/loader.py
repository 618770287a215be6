"""Finds a handler's function, importing its module when it is first needed.

So a module that cannot be imported fails its own runs, visibly, and nobody else's.
"""

import asyncio
import inspect
from importlib import import_module
from typing import Any

from webhook_inbox.errors import Transient
from webhook_inbox.manifest import HandlerSpec
from webhook_inbox.routing import Function, Registered, Router


def load(spec: HandlerSpec) -> Registered:
    """Returns a handler and what belongs to it as plain functions, async ones run to their end.

    Raises:
        Transient: the module does not define it; a rolling deployment may.
        Exception: whatever importing the module raises.
    """
    module = import_module(f"handlers.{spec.module}")
    routers = [value for value in vars(module).values() if isinstance(value, Router)]
    for router in routers:
        found = router.registered(spec.name)
        if found is not None:
            break
    else:
        raise Transient(f"handlers.{spec.module} does not define {spec.name!r}")
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
