"""Says what an erasure has left, and what is to do next."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from webhook_inbox.client.erasing import ErasedEvent, TenantErasureCounts
from webhook_inbox.client.times import iso
from webhookctl.display.json_object import json_object


@json_object.register
def _(counts: TenantErasureCounts) -> dict[str, Any]:
    shown = {each.name: json_object(getattr(counts, each.name)) for each in fields(counts)}
    del shown["unchanged"]
    return shown


def erasure_notes(erased: ErasedEvent) -> Iterator[str]:
    """Yields what is left, and the next action."""
    if erased.unfinished:
        yield (
            f"In progress or held: {', '.join(erased.unfinished)}. Erase it again when they have"
            " ended, which erases their error texts as well."
        )
    if erased.arriving_until:
        yield (
            "A delivery that was received before the erasure may still store its payload. Erase it"
            f" again after {iso(erased.arriving_until)}."
        )
    if erased.batch:
        yield (
            f"It is an item of {erased.batch}, whose body still has its text. Erase that event,"
            " with its other items, as well."
        )
    yield f"Not erased: {', '.join(erased.not_erased)}."
