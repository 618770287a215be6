"""Finds a handler's function, importing its module when it is first needed.

So a module that cannot be imported fails its own runs, visibly, and nobody else's.
"""

import asyncio
import inspect
from importlib import import_module

from webhook_inbox.context import Context, Event
from webhook_inbox.errors import Transient
from webhook_inbox.manifest import HandlerSpec
from webhook_inbox.processor import Work
from webhook_inbox.routing import Router


def load(spec: HandlerSpec) -> Work:
    """Returns the handler as a plain function, an async one run to its end.

    Raises:
        Transient: the module does not define it; a rolling deployment may.
        Exception: whatever importing the module raises.
    """
    module = import_module(f"handlers.{spec.module}")
    routers = [value for value in vars(module).values() if isinstance(value, Router)]
    for router in routers:
        function = router.function(spec.name)
        if function is not None:
            break
    else:
        raise Transient(f"handlers.{spec.module} does not define {spec.name!r}")

    def work(event: Event, context: Context) -> None:
        returned = function(event, context)
        if inspect.iscoroutine(returned):
            asyncio.run(returned)

    return work
