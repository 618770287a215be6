"""`auth = "basic"`: callers send user and password (RFC 7617); each agent may have its own.

The secret is `user:password`, or a JSON object of agents and theirs. It does not cover the body.
Source: RFC 7617.
"""

from collections.abc import Mapping
from typing import Any, Final

from webhook_inbox.domain.provider import Facts, Provider
from webhook_inbox.providers.schemes.generic import callers

SETTINGS: Final = frozenset({"event_id", "event_type"})
EXAMPLE: Final = {"event_id": {"header": "X-Event-Id"}, "event_type": {"json": "type"}}
FACTS: Final = Facts(
    title="Your own callers, by password",
    scheme="user and password in base64, after `Basic `",
    body="none",
    event_id="as declared: a header, a JSON path, or the body's hash",
    answer_within="as your callers do",
    retries="as your callers do",
    key_from='made by you: `user:password`, or `{"AGENT": "user:password"}`',
    resend="as your callers do",
)
SCHEME: Final = callers.CallerCredentials(
    header="authorization",
    prefix="Basic ",
    write=callers.user_and_password,
    wanted='user:password, or { "AGENT": "user:password" } as JSON',
)


def provider(settings: Mapping[str, Any]) -> Provider:
    """Returns the provider that the tables declare; raises ConfigurationError."""
    return callers.provider("basic", SCHEME, settings, facts=FACTS)
