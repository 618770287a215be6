"""A change of many subjects, which is made while it is iterated."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Generic, Self, TypeVar

from webhook_inbox.domain.errors import Unavailable

T = TypeVar("T")


class Operation(Generic[T]):
    """Changes one subject with each iteration, and returns its result.

    An operation that ends early leaves the rest unchanged; the same call continues with it.

    Args:
        steps: makes the changes of this operation, one by one.
        done: returns what was done so far, by the counts.

    Attributes:
        counts: the number of results by outcome so far.
        ended_by: why it ended early, "" if it did not.
    """

    def __init__(
        self,
        steps: Callable[["Operation[T]"], Iterator[T]],
        *,
        done: Callable[[Counter[str]], str],
    ) -> None:
        self.counts = Counter[str]()
        self.ended_by = ""
        self._steps = steps(self)
        self._done = done

    def stop(self) -> None:
        """Ends the operation after the present subject; another thread may call it."""
        self.ended_by = "stopped"

    def __iter__(self) -> Iterator[T]:
        """Returns itself: a second iteration continues the first."""
        return self

    def __next__(self) -> T:
        """Changes the next subject; where AWS fails, the error says what was done before."""
        try:
            return next(self._steps)
        except Unavailable as error:
            done = self._done(self.counts)
            # The same error, so that its kind and its cause, which has the remedy, stay.
            error.args = (f"{error}; {done} so far, and the same command continues with the rest",)
            raise

    def complete(self) -> Self:
        """Changes all subjects."""
        for _ in self:
            pass
        return self
