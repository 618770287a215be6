"""A list of results that is read while it is iterated."""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from webhook_inbox.client.scope import Scope

T = TypeVar("T")


class Listing(Generic[T]):
    """Results that are read page by page, once, while they are iterated.

    Both attributes hold for what was iterated so far.

    Attributes:
        full: whether the limit was reached; there may be more results.
    """

    def __init__(self, scope: Scope, items: Iterable[T], *, limit: int | None = None) -> None:
        self._scope = scope
        self._items = iter(items)
        self._left = limit
        self.full = limit == 0

    @property
    def partial(self) -> bool:
        """Whether results are missing, since the client's budget is spent."""
        return self._scope.is_cut

    def __iter__(self) -> Iterator[T]:
        """Returns itself: a second iteration continues the first."""
        return self

    def __next__(self) -> T:
        """Returns the next result."""
        if self.full:
            raise StopIteration
        item = next(self._items)
        if self._left is not None:
            self._left -= 1
            self.full = self._left == 0
        return item
