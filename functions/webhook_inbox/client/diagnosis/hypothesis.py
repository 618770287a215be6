"""Hypotheses: variants of a delivery with one common change reverted."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.model import Delivery


@dataclass(frozen=True, slots=True)
class RejectionCause:
    """A cause and its remedy; `proven` if the delivery verifies without it."""

    code: str
    words: str
    remedy: str
    proven: bool = True


@dataclass(frozen=True, slots=True)
class Trial:
    """A delivery, its source and the secrets that verify it."""

    spec: SourceSpec
    delivery: Delivery
    secrets: tuple[str, ...]
    causes: tuple[RejectionCause, ...] = ()

    def without(self, cause: RejectionCause, **changed: Any) -> "Trial":
        """Returns the variant with one more change reverted."""
        return replace(self, causes=(*self.causes, cause), **changed)


Hypothesis = Callable[[Trial], Iterator[Trial]]
