"""Fixtures of the reconciler's tests."""

import pytest

from webhook_inbox.reconciler.received import ReceivedEvents


@pytest.fixture
def due_index_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets passes read the due index and no events."""
    monkeypatch.setattr(ReceivedEvents, "look", lambda _: None)
