"""The known name that an unknown one probably means."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns `did you mean "crm"?`, or "" if no known name is similar."""
    close = get_close_matches(name, list(known), n=1)
    return f'did you mean "{close[0]}"?' if close else ""
