"""What commonly happens to a delivery, its secret or its source, undone.

Each suspicion is a delivery as it would have been without one mishap. The one that verifies has
found what went wrong; see `diagnosis`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.model import Delivery


@dataclass(frozen=True, slots=True)
class Cause:
    """What went wrong, in plain words, and what to do about it.

    `proven` tells that the delivery verifies without it.
    """

    code: str
    words: str
    remedy: str
    proven: bool = True


@dataclass(frozen=True, slots=True)
class Trial:
    """A delivery, the source it is for, and the secrets it is judged by."""

    spec: SourceSpec
    delivery: Delivery
    secrets: tuple[str, ...]
    causes: tuple[Cause, ...] = ()

    def without(self, cause: Cause, **changed: Any) -> "Trial":
        """Returns it as it would be without one more mishap."""
        return replace(self, causes=(*self.causes, cause), **changed)


Hypothesis = Callable[[Trial], Iterator[Trial]]
