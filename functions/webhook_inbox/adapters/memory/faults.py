"""Injected faults of the doubles."""

from collections.abc import Callable
from enum import StrEnum
from types import TracebackType

from webhook_inbox.domain.errors import Unavailable


class Fault(StrEnum):
    """The time of a failure, before or after the effect of the call."""

    BEFORE = "before"  # the service never saw the call
    AFTER = "after"  # the effect happened, the answer was lost


# (service, operation), spelled as botocore does, e.g. ("dynamodb", "PutItem"); None: no fault.
Faults = Callable[[str, str], str | None]


def no_faults(service: str, operation: str) -> None:
    """Lets every call through."""


class FaultyCall:
    """One call of a service; its effect is the body of the `with` statement."""

    __slots__ = ("_fault", "_operation", "_service")

    def __init__(self, faults: Faults, service: str, operation: str) -> None:
        self._service = service
        self._operation = operation
        self._fault = faults(service, operation)

    def __enter__(self) -> None:
        if self._fault == Fault.BEFORE:
            raise Unavailable(self._service, self._operation, "did not answer (injected)")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # A lost response hides a failed condition as well.
        if self._fault == Fault.AFTER:
            raise Unavailable(self._service, self._operation, "the answer was lost (injected)")
