"""The inbox under test: everything `webhookctl dev` runs."""

from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

from tests.e2e.http_call import Answer
from tests.e2e.inquiry import Inquiry
from tests.e2e.project import shift_reconciler, write_functions
from webhookctl.local.inbox import LocalInbox

SENDINGS = 3


class WholeInbox(LocalInbox, Inquiry):
    """A running inbox with the repository's handlers and the laboratory's."""

    def __init__(self, directory: Path, *, tell: Callable[[str], None] = lambda _: None) -> None:
        self.source = write_functions(directory / "given")
        super().__init__(self.source, state=directory / "state", tell=tell)

    def post(self, source: str, body: bytes, headers: dict[str, str]) -> Answer:
        """Posts; sends again after a 502, as a provider does: ministack may lose a worker."""
        for _ in range(SENDINGS):
            answer = super().post(source, body, headers)
            if answer.status != HTTPStatus.BAD_GATEWAY:
                break
        return answer

    def copy_functions(self) -> None:
        super().copy_functions()
        shift_reconciler(self.functions)
