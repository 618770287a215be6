"""Validates the types of a handler's options and the handler's signature.

A wrong type would otherwise fail later, in ingest or at the first event, or never, as a generator
function that is not run.
"""

import inspect
from collections.abc import Sequence
from typing import Any

from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.handlers.ordering.declaration import Ordering
from webhook_inbox.handlers.schema_versions import Versions


def check_options(
    where: str,
    *,
    types: Sequence[object],
    max_attempts: object,
    seconds: Sequence[object],
    destinations: object,
    order: object,
    policy: object,
    versions: object,
) -> None:
    """Validates the types of `Router.on`'s options.

    `types` holds a function if the decorator was written without parentheses. `seconds` are the
    options in seconds, `where` names the call in the error.

    Raises:
        ConfigurationError: an option has a wrong type.
    """
    listed = isinstance(destinations, list | tuple)
    faults = {
        'types are glob patterns, each in quotes: on("invoice.*", "charge.*")': not _texts(types),
        "max_attempts is a whole number": type(max_attempts) is not int,
        "timeout and max_age are seconds, as numbers": any(
            isinstance(each, bool) or not isinstance(each, int | float) for each in seconds
        ),
        'destinations is a list of names, like ["crm"]': not (listed and _texts(destinations)),
        "order is latest(…), sequence(…) or serial(…)": not isinstance(order, Ordering | None),
        "policy is a function of event and context": not (policy is None or _takes_two(policy)),
        "versions is Versions(…)": not isinstance(versions, Versions | None),
    }
    _refuse(where, faults)


def check_handler(where: str, function: object) -> None:
    """Validates that a handler takes event and context, and is not a generator function.

    Raises:
        ConfigurationError: it does not, or is one.
    """
    lazy = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
    faults = {
        "it is called with event and context, and takes other arguments": not _takes_two(function),
        "it is a generator function, which is not run: return, or await": lazy,
    }
    _refuse(where, faults)


def _takes_two(function: Any) -> bool:
    try:
        inspect.signature(function).bind(None, None)
    except ValueError:  # some builtins have no signature
        return callable(function)
    except TypeError:
        return False
    return True


def _texts(given: Any) -> bool:
    return all(isinstance(each, str) for each in given)


def _refuse(where: str, faults: dict[str, bool]) -> None:
    for remedy, wrong in faults.items():
        if wrong:
            raise ConfigurationError(f"{where}: {remedy}")
