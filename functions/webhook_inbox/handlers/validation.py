"""Of what kind the options of a handler are, and the handler itself.

What is of another kind would fail far from where it is written: in ingest, at the first event, or
never, as a generator function that nobody runs.
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
    """Refuses options that are of another kind than is taken.

    Args:
        where: names the call, for the error.
        types: glob patterns; a function, where the decorator was written without parentheses.
        max_attempts: a whole number.
        seconds: the options that are numbers of seconds.
        destinations: names.
        order: what `latest`, `sequence` or `serial` returned, or None.
        policy: a function of event and context, or None.
        versions: `Versions`, or None.

    Raises:
        ConfigurationError: one is.
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
    """Refuses what cannot be called with event and context, or would do nothing then.

    Raises:
        ConfigurationError: it is so.
    """
    lazy = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
    faults = {
        "it is called with event and context, and takes others": not _takes_two(function),
        "it yields, and nobody would run it: return, or await": lazy,
    }
    _refuse(where, faults)


def _takes_two(function: Any) -> bool:
    try:
        inspect.signature(function).bind(None, None)
    except ValueError:  # some builtins tell nothing of themselves
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
