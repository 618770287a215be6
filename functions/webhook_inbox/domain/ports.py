"""What the core asks of the world. Adapters talk to AWS; `memory` is the double of each."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, Protocol

from webhook_inbox.domain.conditions import Condition
from webhook_inbox.domain.errors import Unavailable

# A row: attribute values are str, int, bool, bytes, or lists and dicts of these.
Item = dict[str, Any]


class Key(NamedTuple):
    """A row's primary key."""

    pk: str
    sk: str


@dataclass(frozen=True, slots=True)
class Change:
    """One update of one row: DynamoDB's SET, SET if_not_exists, ADD and REMOVE."""

    set: Mapping[str, Any] = field(default_factory=dict)
    default: Mapping[str, Any] = field(default_factory=dict)
    add: Mapping[str, int] = field(default_factory=dict)
    remove: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of an index, in key order, and where the next page starts (None: no more)."""

    items: Sequence[Item]
    next: Mapping[str, Any] | None = None


class Table(Protocol):
    """The ledger's table. Every method raises `Unavailable` when the service fails."""

    def get(self, key: Key, *, consistent: bool = True) -> Item | None:
        """Returns the row, or None."""

    def get_many(self, keys: Sequence[Key]) -> list[Item]:
        """Returns the rows that exist, eventually consistent, in no order. Any number of keys."""

    def put(self, item: Item, *, when: Condition | None = None) -> None:
        """Writes the whole row; raises `ConditionFailed` with the row that was in the way."""

    def update(self, key: Key, change: Change, *, when: Condition | None = None) -> Item:
        """Changes a row, creating it where absent, and returns it as it is afterwards.

        Raises `ConditionFailed` with the row as it was.
        """

    def delete(self, key: Key) -> None:
        """Removes the row if it is there."""

    def query(self, pk: str, *, sk_prefix: str = "", consistent: bool = True) -> Iterator[Item]:
        """Yields the rows of one partition in sort-key order, every page of them."""

    def query_index(
        self,
        index: str,
        value: str,
        *,
        low: int,
        high: int,
        newest_first: bool = False,
        limit: int | None = None,
        start: Mapping[str, Any] | None = None,
    ) -> Page:
        """Returns one page of an index: partition `value`, sort key in [low, high].

        Eventually consistent: it may miss rows written a moment ago. Rows hold the index's
        projected attributes only.
        """


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to send.

    Attributes:
        body: its text.
        delay: the seconds (0-900) before it can be received; 0 on a FIFO queue.
        group: on a FIFO queue, and only there, what it is kept in order with.
        dedup: on a FIFO queue, and only there, what a second one within 5 minutes is known by,
            and not delivered.
    """

    body: str
    delay: int = 0
    group: str = ""
    dedup: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """A received queue message."""

    id: str
    receipt: str
    body: str
    sent_at: datetime
    receive_count: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """How much waits in a queue; `oldest` is None where the age is not known."""

    visible: int
    oldest: timedelta | None


class Queue(Protocol):
    """One SQS queue. Every method raises `Unavailable` when the service fails."""

    @property
    def fifo(self) -> bool:
        """Whether it is a FIFO queue."""

    def send(self, messages: Sequence[Outgoing]) -> Sequence[Outgoing]:
        """Sends up to any number of messages and returns those the queue did not take.

        A FIFO queue is sent nothing after a batch that it did not take whole: what was refused is
        sent again later, and should not come after what follows it here.
        """

    def hide(self, receipt: str, seconds: int) -> None:
        """Sets a received message's visibility timeout, 0-43200 s from now."""

    def receive(self, limit: int, *, hidden_for: int) -> Sequence[Message]:
        """Receives up to `limit` (1-10) messages without waiting, hidden for so many seconds."""

    def delete(self, receipt: str) -> None:
        """Deletes a received message."""

    def backlog(self) -> Backlog:
        """Returns how much waits."""


class Blobs(Protocol):
    """Large bodies."""

    def put(self, key: str, data: bytes) -> None:
        """Stores `data`; raises `Unavailable`."""

    def get(self, key: str) -> bytes | None:
        """Returns the data or None; raises `Unavailable`."""


class SecretStore(Protocol):
    """Where secrets are kept."""

    def fetch(self, name: str) -> tuple[str, ...]:
        """Returns the live values, the current one first; () when none is set.

        Raises `Unavailable`.
        """


class Vault(Protocol):
    """Where a secret that a provider delivers is put."""

    def rotate(self, name: str, value: str) -> None:
        """Sets the current value; the one before it stays live. Raises `Unavailable`."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """A request for something public: a GET of an https URL, or a POST where there is a body.

    Whoever makes one has pinned its host: the URL may come from a stranger.
    """

    url: str
    body: bytes | None = None


class Fetcher(Protocol):
    """Fetches keys and certificates that providers publish."""

    def fetch(self, wanted: Fetch) -> bytes:
        """Returns the answer's body, at most 64 KB; follows no redirect.

        Raises `Unavailable` for all else than a 200 within the time that ingest has.
        """


class Nowhere:
    """The double of both where nothing is fetched and no secret delivered."""

    def fetch(self, wanted: Fetch) -> bytes:
        """See `Fetcher`."""
        raise Unavailable("https", "GET", f"{wanted.url} cannot be reached from here")

    def rotate(self, name: str, value: str) -> None:  # noqa: ARG002 - part of the port
        """See `Vault`."""
        raise Unavailable("vault", "PutSecretValue", f"{name} cannot be set from here")


NOWHERE: Final = Nowhere()


class Clock(Protocol):
    """The time."""

    def now(self) -> datetime:
        """Returns the aware UTC time."""

    def sleep(self, seconds: float) -> None:
        """Waits."""


class Randomness(Protocol):
    """Randomness."""

    def token(self) -> str:
        """Returns 128 random bits as 32 hex digits."""

    def uniform(self, low: float, high: float) -> float:
        """Returns a random number in [low, high]."""


class Executor(Protocol):
    """Runs a handler under a time limit."""

    def run(self, work: Callable[[], None], *, seconds: float) -> None:
        """Runs `work`, raising what it raises, or `HandlerTimedOut` after `seconds`."""
