"""Which calls of the doubles fail next, and which calls were made."""

from dataclasses import dataclass

from webhook_inbox.adapters.memory import Fault


@dataclass(slots=True)
class _Planned:
    service: str
    operation: str
    fault: Fault
    skip: int
    times: int


class Plan:
    """Fails planned calls, once each unless told otherwise; notes every call.

    One plan serves all doubles, so `calls` is the order in which AWS would have seen them.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self._planned: list[_Planned] = []

    def fail(
        self,
        operation: str,
        fault: Fault = Fault.BEFORE,
        *,
        service: str = "",
        skip: int = 0,
        times: int = 1,
    ) -> None:
        """Plans that `operation` fails `times` times, after `skip` calls that pass."""
        self._planned.append(_Planned(service, operation, fault, skip, times))

    def heal(self) -> None:
        """Lets every call through from now on."""
        self._planned.clear()

    def __call__(self, service: str, operation: str) -> str | None:
        self.calls.append((service, operation))
        for planned in self._planned:
            if planned.operation != operation or planned.service not in {"", service}:
                continue
            if planned.skip:
                planned.skip -= 1
                continue
            if planned.times:
                planned.times -= 1
                return planned.fault
        return None

    def operations(self) -> list[str]:
        """Returns the operations since the last time this was asked, and forgets them."""
        seen = [operation for _, operation in self.calls]
        self.calls.clear()
        return seen
