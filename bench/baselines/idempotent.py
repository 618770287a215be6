"""The bare handler with Powertools Idempotency in place of its own conditional write.

Powertools records the event's id before and after the work, in a table of its own.
"""

import os
from typing import Any, Final

from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)

from bench.baselines import bare
from bench.baselines.signatures import RefusedError, verified

config: Final = IdempotencyConfig(expires_after_seconds=bare.LIFE)
layer: Final = DynamoDBPersistenceLayer(table_name=os.environ["IDEMPOTENCY_TABLE"])


@idempotent_function(data_keyword_argument="key", persistence_store=layer, config=config)
def accept_once(*, key: str, source: str, event_id: str, body: bytes) -> str:  # noqa: ARG001
    """Accepts the event of a key; a repetition returns the recorded answer."""
    bare.accept(source, event_id, body)
    return event_id


def lambda_handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answers one delivery."""
    config.register_lambda_context(context)
    source, body = event["pathParameters"]["source"], event["body"].encode()
    try:
        event_id = verified(source, event["headers"], body)
    except RefusedError:
        return bare.answer(401, "invalid signature")
    key = f"{source}#{event_id}"
    accepted = accept_once(key=key, source=source, event_id=event_id, body=body)
    return bare.answer(202, accepted)
