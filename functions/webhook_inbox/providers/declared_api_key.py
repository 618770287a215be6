"""`auth = "api-key"`: callers send a key in a header; each agent may have one of its own.

The secret is the key, or a JSON object of agents and their keys. A key says nothing of the body.
"""

from collections.abc import Mapping
from typing import Any, Final

from webhook_inbox.recipe import Recipe
from webhook_inbox.schemes import credentials
from webhook_inbox.schemes import settings as given

SETTINGS: Final = frozenset({"header", "prefix", "event_id", "event_type"})
EXAMPLE: Final = {"event_id": {"header": "X-Event-Id"}, "event_type": {"json": "type"}}
HEADER: Final = "X-Api-Key"


def recipe(settings: Mapping[str, Any]) -> Recipe:
    """Returns the recipe that the tables declare; raises ConfigurationError."""
    scheme = credentials.Credentials(
        header=given.text(settings, "header", default=HEADER).lower(),
        prefix=given.text(settings, "prefix", default=""),
        wanted='an API key, or { "AGENT": "KEY" } as JSON',
    )
    return credentials.recipe("api-key", scheme, settings)
