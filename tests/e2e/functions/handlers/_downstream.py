"""YOURS, an example: how the handlers here talk to a downstream system."""

from collections.abc import Mapping
from typing import Any

import httpx

from webhook_inbox import Context, Permanent, Transient

# Client errors worth a retry: request timeout, too early, too many requests.
WORTH_ANOTHER_TRY = frozenset({408, 425, 429})


def request_for(ctx: Context, effect: str) -> dict[str, Any]:
    """Returns what every request carries: the key that makes a repetition harmless (G4)."""
    return {"headers": {"Idempotency-Key": ctx.idempotency_key(effect)}}


def post(ctx: Context, path: str, *, effect: str, body: Mapping[str, Any]) -> Any:
    """Posts JSON to the destination `sink` and returns its answer.

    Raises:
        Permanent: the downstream refused it for good.
        Transient: it may take it later.
    """
    with httpx.Client(base_url=ctx.destination("sink").base_url, timeout=30) as client:
        return judged(client.post(path, json=body, **request_for(ctx, effect)))


def judged(response: httpx.Response) -> Any:
    """Returns a response's JSON, or raises what says whether to try again."""
    if response.is_success:
        return response.json()
    text = f"{response.request.url.path} answered {response.status_code}"
    if response.is_client_error and response.status_code not in WORTH_ANOTHER_TRY:
        raise Permanent(text)
    raise Transient(text)
