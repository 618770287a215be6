"""What the backends have in common, for tests that need more than the port."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol, TypeVar

import pytest

from webhook_inbox.adapters.clock import SystemClock
from webhook_inbox.adapters.secretsmanager import SecretsManagerStore
from webhook_inbox.memory import ManualClock, MemorySecrets
from webhook_inbox.ports import Message, Queue, SecretStore

T = TypeVar("T")
BACKENDS = ("memory", "moto", "ministack")
# Well above what a loaded machine needs; a passing test waits for what it waits for, no longer.
DEADLINE = timedelta(seconds=20)


def only(*backends: str) -> pytest.MarkDecorator:
    """Runs a test over these backends alone; the test says how the others differ from AWS."""
    return pytest.mark.parametrize("aws", backends, indirect=True)


@dataclass
class Lane:
    """A queue, its DLQ (after two receives), and a way to wait that suits them."""

    queue: Queue
    dead_letters: Queue
    clock: ManualClock | None = None

    def until(self, look: Callable[[], T]) -> T:
        """Returns the first true thing that `look` sees."""
        clock = self.clock or SystemClock()
        deadline = clock.now() + DEADLINE
        while not (seen := look()):
            if clock.now() > deadline:
                pytest.fail(f"nothing after {DEADLINE}")
            clock.sleep(0.05)
        return seen

    def receive(self, *, hidden_for: int = 60) -> Message:
        """Returns the next message, waiting for one."""
        return self.until(lambda: self.queue.receive(1, hidden_for=hidden_for))[0]


class Vault(Protocol):
    """A secret store that can be written, which the port cannot."""

    @property
    def store(self) -> SecretStore: ...

    def set(self, name: str, value: str) -> None: ...

    def remove(self, name: str) -> None: ...


class MemoryVault:
    def __init__(self) -> None:
        self.store = MemorySecrets()

    def set(self, name: str, value: str) -> None:
        self.store.rotate(name, value)

    def remove(self, name: str) -> None:
        self.store.remove(name)


class AwsVault:
    def __init__(self, client: Any, prefix: str) -> None:
        self.store = SecretsManagerStore(client, prefix)
        self.client = client
        self.prefix = prefix

    def set(self, name: str, value: str) -> None:
        id_ = self.prefix + name
        try:
            self.client.put_secret_value(SecretId=id_, SecretString=value)
        except self.client.exceptions.ResourceNotFoundException:
            self.client.create_secret(Name=id_, SecretString=value)

    def remove(self, name: str) -> None:
        self.client.delete_secret(SecretId=self.prefix + name, RecoveryWindowInDays=7)
