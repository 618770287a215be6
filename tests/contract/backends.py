"""The common interface of the backends, for tests that need more than the port."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

import pytest

from tests.waiting import DEADLINE
from webhook_inbox.adapters.aws.secrets_manager import SecretDocument, SecretsManagerStore
from webhook_inbox.adapters.memory import ManualClock, MemorySecrets
from webhook_inbox.adapters.system import SystemClock
from webhook_inbox.domain.ports import Message, Outgoing, Queue, SecretStore
from webhook_inbox.domain.ports import Vault as VaultPort
from webhook_inbox.domain.secret_document import removed, rotated

T = TypeVar("T")
BACKENDS = ("memory", "moto", "ministack")
# Ingest's own clients over ministack; where it differs from AWS, it does so for them as well.
LEAN = "lean"


def aws_differs(page: str, **others: str) -> pytest.MarkDecorator:
    """Marks a test of what AWS documents and not every backend does.

    It runs on those as well and has to fail there: if one comes round, that shows.

    Args:
        page: the address of AWS's page.
        others: what the other backends do, by name, as `docs/doubles.md` says it.
    """
    assert page.startswith("https://docs.aws.amazon.com/"), page
    return undocumented(**others)


def undocumented(**others: str) -> pytest.MarkDecorator:
    """Marks a test of what AWS's pages leave open: the double does the stricter thing.

    Args:
        others: what the backends do that are not as strict, by name.
    """
    assert set(others) < set(BACKENDS), others
    others |= {LEAN: others["ministack"]} if "ministack" in others else {}
    parameters = [
        pytest.param(name, marks=[pytest.mark.differs(others[name])] if name in others else [])
        for name in (*BACKENDS, LEAN)
    ]
    return pytest.mark.parametrize("aws", parameters, indirect=True)


@dataclass
class Lane:
    """A queue, its DLQ (after two receives), and a way to wait that suits them."""

    queue: Queue
    dead_letters: Queue
    clock: ManualClock | None = None

    def now(self) -> datetime:
        """Returns the time: a slow machine makes waits longer, and none shorter."""
        return (self.clock or SystemClock()).now()

    def wait(self, seconds: float) -> None:
        """Lets time pass."""
        (self.clock or SystemClock()).sleep(seconds)

    def until(self, look: Callable[[], T]) -> T:
        """Returns the first true thing that `look` sees."""
        clock = self.clock or SystemClock()
        deadline = clock.now() + timedelta(seconds=DEADLINE)
        while not (seen := look()):
            if clock.now() > deadline:
                pytest.fail(f"nothing after {DEADLINE:.0f} s")
            clock.sleep(0.05)
        return seen

    def send(self, *bodies: str) -> None:
        """Sends messages."""
        assert self.queue.send([Outgoing(body) for body in bodies]) == []

    def receive(self, *, hidden_for: int = 60) -> Message:
        """Returns the next message, waiting for one."""
        return self.until(lambda: self.queue.receive(1, hidden_for=hidden_for))[0]

    def received(self, amount: int) -> list[str]:
        """Returns the bodies of as many messages as are expected, in the order they came."""
        bodies: list[str] = []

        def look() -> bool:
            bodies.extend(message.body for message in self.queue.receive(10, hidden_for=60))
            return len(bodies) >= amount

        self.until(look)
        return bodies

    def fail(self, times: int = 2) -> Message:
        """Receives the next message so often and shows it again; returns it as it first came."""
        first = self.receive()
        self.queue.hide(first.receipt, 0)
        for _ in range(times - 1):
            self.queue.hide(self.receive().receipt, 0)
        return first


class ReplaceableSecrets(SecretStore, VaultPort, Protocol):
    """The two ports of one store."""


class Vault(Protocol):
    """A secret store whose secrets can be rotated and removed, which the ports cannot."""

    @property
    def store(self) -> ReplaceableSecrets: ...

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
    def __init__(self, client: Any, name: str) -> None:
        self.store = SecretsManagerStore(client, name, keys={})
        self.document = SecretDocument(client, name)
        self.client = client

    def set(self, name: str, value: str) -> None:
        self.document.change(lambda secrets: rotated(secrets, name, value))

    def remove(self, name: str) -> None:
        self.document.change(lambda secrets: removed(secrets, name))
