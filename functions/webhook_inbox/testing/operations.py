"""The operations of `webhook_inbox.client` on an inbox in memory."""

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from webhook_inbox.client import InboxClient
from webhook_inbox.client.target import Target
from webhook_inbox.domain.errors import InboxError
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.ports import Blobs, Clock, Ports, Queue, SecretStore, Table
from webhook_inbox.domain.replay_report import ReplayReport
from webhook_inbox.replay.request import ReplayRequest
from webhook_inbox.testing.errors import KitError, hidden

__tracebackhide__ = hidden

NAME = "local"
Replaying = Callable[[ReplayRequest], ReplayReport]


@dataclass(frozen=True, slots=True, kw_only=True)
class InMemoryTarget(Target):
    """An inbox in memory; of AWS's services it has Lambda, with the replay function only."""

    ports: Ports = field(repr=False)

    @property
    def table(self) -> Table:
        """The ledger's table."""
        return self.ports.table

    @property
    def blobs(self) -> Blobs:
        """The bucket of bodies."""
        return self.ports.blobs

    @property
    def secrets(self) -> SecretStore:
        """The secrets that verify deliveries."""
        return self.ports.secret_store

    @property
    def queues(self) -> Mapping[str, Queue]:
        """The work queues by lane."""
        return self.ports.queues

    @property
    def dlqs(self) -> Mapping[str, Queue]:
        """The dead-letter queues by lane."""
        return self.ports.dlqs


class ReplayFunction:
    """The client of a Lambda whose function is the inbox's replay."""

    def __init__(self, replay: Replaying) -> None:
        self._replay = replay

    def invoke(self, *, Payload: bytes, **_: str) -> dict[str, Any]:  # noqa: N803 - boto3's name
        """Returns the function's answer, or its error, as Lambda does."""
        try:
            answer = self._replay(ReplayRequest.read(json.loads(Payload))).to_data()
        except InboxError as error:
            fault = {"errorType": type(error).__name__, "errorMessage": str(error)}
            return {"FunctionError": "Unhandled", "Payload": _stream(fault)}
        return {"Payload": _stream(answer)}


class WorkingClock:
    """The inbox's clock; workers work while a client waits."""

    def __init__(self, clock: Clock, pass_time: Callable[[timedelta], None]) -> None:
        self._clock = clock
        self._pass_time = pass_time

    def now(self) -> datetime:
        """See the port."""
        return self._clock.now()

    def sleep(self, seconds: float) -> None:
        """Advances the clock, and processes everything due on the way."""
        self._pass_time(timedelta(seconds=seconds))


def client_of(manifest: Manifest, ports: Ports, replay: Replaying, clock: Clock) -> InboxClient:
    """Returns a client, with the right to change, of an inbox in memory."""
    function = ReplayFunction(replay)

    def clients(service: str) -> Any:
        if service != "lambda":
            raise KitError(
                f"the inbox in memory has no {service}: use an inbox of `webhookctl dev`"
            )
        return function

    target = InMemoryTarget(
        name=NAME,
        local=True,
        stage=manifest.stage,
        table_name="",
        bucket_name="",
        secret_prefix=f"webhook-inbox/{NAME}/",
        replay_function="replay",
        urls={name: f"https://inbox.example/webhooks/{name}" for name in manifest.sources},
        client=clients,
        api_url="https://inbox.example",
        read_manifest=lambda: manifest,
        ports=ports,
    )
    return InboxClient(
        target, write=True, clock=clock, randomness=ports.randomness, table=ports.table
    )


def _stream(data: object) -> io.BytesIO:
    return io.BytesIO(json.dumps(data).encode())
