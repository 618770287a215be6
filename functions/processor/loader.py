"""Finds a handler's function; imports its module on first use.

A module that cannot be imported therefore fails only its own runs.
"""

from importlib import import_module

from webhook_inbox.domain.errors import Transient
from webhook_inbox.domain.manifest import HandlerSpec
from webhook_inbox.handlers.coroutines import plain
from webhook_inbox.handlers.router import Registered, Router


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
    return plain(found)
