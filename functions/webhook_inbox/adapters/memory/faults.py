"""How a test makes a double fail."""

from collections.abc import Callable
from enum import StrEnum
from types import TracebackType

from webhook_inbox.domain.errors import Unavailable


class Fault(StrEnum):
    """When a call fails, as seen from its effect."""

    BEFORE = "before"  # the service never saw the call
    AFTER = "after"  # the effect happened, the answer was lost


# (service, operation), spelled as botocore does, e.g. ("dynamodb", "PutItem"); None: no fault.
Faults = Callable[[str, str], str | None]


def no_faults(service: str, operation: str) -> None:
    """Lets every call through."""


class FaultyCall:
    """One call of a service: `with Call(faults, "sqs", "DeleteMessage"): ...` the effect."""

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
        # A lost answer is lost whatever it was: a failed condition is not heard of either.
        if self._fault == Fault.AFTER:
            raise Unavailable(self._service, self._operation, "the answer was lost (injected)")
