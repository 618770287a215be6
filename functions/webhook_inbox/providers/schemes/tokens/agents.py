"""A secret that holds the credentials of several agents: a JSON object of them by name.

An agent is whoever calls a source with a credential of its own. A secret that is no such object is
one credential of nobody in particular.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from webhook_inbox.domain.json_path import parse

NAME_LIMIT: Final = 128


def is_name(text: str) -> bool:
    """Tells whether an agent can be called so: it is stored, shown, and asked for by policies."""
    return 0 < len(text) <= NAME_LIMIT and text.isprintable() and text.strip() == text


def document(secret: str) -> dict[str, Any] | None:
    """Returns the JSON object that a secret is; None where it is none, {} where it is broken."""
    if not secret.lstrip().startswith("{"):
        return None
    try:
        found = parse(secret)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def named(entries: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yields agents with what the secret holds of them; not those that cannot be called so."""
    return ((name, value) for name, value in entries.items() if is_name(name))


def credentials(secret: str) -> list[tuple[str, str]]:
    """Returns (agent, credential) of all that a secret holds, the agent "" where it names none.

    An empty credential is none: everybody has it.
    """
    entries = document(secret)
    if entries is None:
        return [("", secret)] if secret else []
    return [(name, text) for name, text in named(entries) if isinstance(text, str) and text]
