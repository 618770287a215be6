"""The time in which a provider expects its answer."""

import re
from collections.abc import Iterable
from typing import Final

from webhook_inbox import providers
from webhook_inbox.domain.manifest import SourceSpec

_TIME: Final = re.compile(r"(\d+)(?: to \d+)? (s|minutes)\b")
_SECONDS: Final = {"s": 1, "minutes": 60}


def answer_limit(fact: str) -> int | None:
    """Returns the seconds of a provider's `answer_within`, of a range the lower, or None."""
    found = _TIME.search(fact)
    return int(found[1]) * _SECONDS[found[2]] if found else None


def strictest(sources: Iterable[SourceSpec], *, at_most: int) -> int:
    """Returns the lowest limit in seconds of these sources' providers, and of ingest's own."""
    facts = (providers.load(spec).facts for spec in sources)
    limits = (answer_limit(each.answer_within) for each in facts if each is not None)
    return min([at_most, *(limit for limit in limits if limit is not None)])
