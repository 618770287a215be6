"""Closes what ingest's clients keep open, as a process does at its end."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from webhook_inbox.adapters.aws.connection import Connection


@contextmanager
def closed_at_the_end() -> Iterator[None]:
    """Closes all connections that were opened within."""
    opened: list[Connection] = []
    open_one = Connection._open

    def recorded(connection: Connection) -> None:
        opened.append(connection)
        open_one(connection)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "_open", recorded)
        yield
    for connection in opened:
        connection.close()
