"""`auth = "api-key"`: callers send a key in a header; each agent may have its own.

The secret is the key, or a JSON object of agents and their keys. A key does not cover the body.
Source: your own callers; no standard defines how keys are sent.
"""

from collections.abc import Mapping
from typing import Any, Final

from webhook_inbox.domain.provider import Facts, Provider
from webhook_inbox.providers.schemes.generic import callers
from webhook_inbox.providers.schemes.generic import settings as given

SETTINGS: Final = frozenset({"header", "prefix", "event_id", "event_type"})
EXAMPLE: Final = {"event_id": {"header": "X-Event-Id"}, "event_type": {"json": "type"}}
HEADER: Final = "X-Api-Key"
FACTS: Final = Facts(
    title="Your own callers, by API key",
    scheme="the agent's key itself",
    body="none",
    event_id="as declared: a header, a JSON path, or the body's hash",
    answer_within="as your callers do",
    retries="as your callers do",
    key_from='made by you: the key, or `{"AGENT": "KEY"}`',
    resend="as your callers do",
)


def provider(settings: Mapping[str, Any]) -> Provider:
    """Returns the provider that the tables declare; raises ConfigurationError."""
    scheme = callers.CallerCredentials(
        header=given.text(settings, "header", default=HEADER).lower(),
        prefix=given.text(settings, "prefix", default=""),
        wanted='an API key, or { "AGENT": "KEY" } as JSON',
    )
    return callers.provider("api-key", scheme, settings, facts=FACTS)
