"""The clients of all functions but ingest retry by themselves."""

from collections.abc import Iterator

import pytest

from webhook_inbox.adapters.aws import clients
from webhook_inbox.adapters.aws.clients import steady


@pytest.fixture(autouse=True)
def _no_account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    clients.session.cache_clear()
    yield
    clients.session.cache_clear()


def test_a_steady_client_retries_by_itself() -> None:
    config = steady("sqs").meta.config

    assert config.retries["total_max_attempts"] == 4
    assert (config.connect_timeout, config.read_timeout) == (1.0, 5.0)
