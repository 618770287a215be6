"""The inbox under test: everything `webhookctl dev` runs."""

from collections.abc import Callable
from pathlib import Path

from tests.e2e.inquiry import Inquiry
from tests.e2e.project import shift_reconciler, write_functions
from webhookctl.local.inbox import LocalInbox


class WholeInbox(LocalInbox, Inquiry):
    """A running inbox with the repository's handlers and the laboratory's."""

    def __init__(self, directory: Path, *, tell: Callable[[str], None] = lambda _: None) -> None:
        self.source = write_functions(directory / "given")
        super().__init__(self.source, state=directory / "state", tell=tell)

    def copy_functions(self) -> None:
        super().copy_functions()
        shift_reconciler(self.functions)
