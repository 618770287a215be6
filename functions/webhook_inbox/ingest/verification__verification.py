"""Verifying one delivery: with the source's secrets, or with what its provider publishes.

Ingest, the conformance command and the one that verifies rejected deliveries again use this.
"""

from collections.abc import Sequence

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Recipe, Verified
from webhook_inbox.ingest.verification import PublishedKeys


def verify(
    recipe: Recipe, delivery: Delivery, secrets: Sequence[str], keys: PublishedKeys
) -> Verified:
    """Returns how the delivery was verified.

    Args:
        recipe: its provider's.
        delivery: judged at the time it was received.
        secrets: the source's live secrets, the current one first.
        keys: where published keys come from.

    Raises:
        Rejected: always with a reason, whatever the input; nothing else is ever raised.
    """
    if recipe.needs_secret and not secrets:
        raise Rejected(Reason.NO_SECRET, "the source's secret is not set")
    if recipe.fetches is None:
        return recipe.verify(delivery, secrets)
    wanted = recipe.fetches(delivery, secrets)
    if wanted is None:
        return recipe.verify(delivery, secrets)
    try:
        return recipe.verify(delivery, (keys.get(wanted, delivery.received_at),))
    except Rejected as error:
        # The provider may have made a new key since.
        if error.reason is not Reason.INVALID_SIGNATURE:
            raise
        fresh = keys.refresh(wanted, delivery.received_at)
        if fresh is None:
            raise
    return recipe.verify(delivery, (fresh,))
