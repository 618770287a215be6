"""The known name that an unknown one probably means."""

from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], *, similarity: float = 0.6) -> str:
    """Returns `did you mean "crm"?`, or "" if no known name is similar; a similarity is 0 to 1."""
    from difflib import get_close_matches  # noqa: PLC0415 - ingest's cold start does without

    close = get_close_matches(name, list(known), n=1, cutoff=similarity)
    return f'did you mean "{close[0]}"?' if close else ""
