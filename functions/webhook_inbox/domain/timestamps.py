"""Durations as configuration spells them."""

import re
from datetime import timedelta
from typing import Final

from webhook_inbox.domain.errors import ConfigurationError

_SPELLING: Final = re.compile(r"([1-9][0-9]{0,5})([smh])", re.ASCII)
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours"}


def duration(text: str) -> timedelta:
    """Returns what `30s`, `5m` or `1h` say; raises ConfigurationError for anything else."""
    match = _SPELLING.fullmatch(text)
    if match is None:
        raise ConfigurationError(f'"{text}" is not a duration; write it like "30s", "5m" or "1h"')
    return timedelta(**{_UNITS[match[2]]: int(match[1])})
