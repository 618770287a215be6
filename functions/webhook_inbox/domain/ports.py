"""The ports of the core. The adapters implement them over AWS, `adapters.memory` in memory."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from webhook_inbox.domain.conditions import Condition
from webhook_inbox.domain.errors import Permanent, Unavailable
from webhook_inbox.domain.secret_document import Secrets

if TYPE_CHECKING:
    from webhook_inbox.domain.manifest import DestinationSpec
    from webhook_inbox.domain.secrets import SecretCache

T = TypeVar("T")
R = TypeVar("R")

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
    """Some rows of an index, in key order, and the start of the next page (None: no more)."""

    items: Sequence[Item]
    next: Mapping[str, Any] | None = None


class Table(Protocol):
    """The ledger's table. Every method raises `Unavailable` when the service fails."""

    def get(self, key: Key, *, consistent: bool = True) -> Item | None:
        """Returns the row, or None."""

    def get_many(self, keys: Sequence[Key], *, only: Sequence[str] = ()) -> list[Item]:
        """Returns the rows that exist, eventually consistent, in no order. Any number of keys.

        `only` names the attributes to return; by default, all.
        """

    def put(self, item: Item, *, when: Condition | None = None) -> None:
        """Writes the whole row; raises `ConditionFailed` with the existing row."""

    def update(self, key: Key, change: Change, *, when: Condition | None = None) -> Item:
        """Changes a row, creates it if absent, and returns the new row.

        Raises `ConditionFailed` with the row as it was.
        """

    def delete(self, key: Key) -> None:
        """Removes the row if it exists."""

    def query(
        self,
        pk: str,
        *,
        sk_prefix: str = "",
        consistent: bool = True,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[Item]:
        """Yields the rows of one partition, page by page, in sort-key order or in reverse.

        `limit` is the number of rows to read; all by default.
        """

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

        Eventually consistent: it may miss recent writes. Rows hold only the projected attributes.
        """


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to send.

    Attributes:
        body: its text.
        delay: the seconds (0-900) before it can be received; 0 on a FIFO queue.
        group: the message group id: the order of a FIFO queue, the fairness of a standard one;
            "" for none, on a standard queue only.
        dedup: the deduplication id, for 5 minutes; only on a FIFO queue.
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
    """The backlog of a queue; `oldest` is None if the age is unknown."""

    visible: int
    oldest: timedelta | None


class Queue(Protocol):
    """One SQS queue. Every method raises `Unavailable` when the service fails."""

    @property
    def fifo(self) -> bool:
        """True for a FIFO queue."""

    def send(self, messages: Sequence[Outgoing]) -> Sequence[Outgoing]:
        """Sends any number of messages and returns those that the queue rejected.

        On a FIFO queue, sending stops after a batch with a rejected message, so that a later retry
        of it does not change the order.
        """

    def hide(self, receipt: str, seconds: int) -> None:
        """Sets a received message's visibility timeout, 0-43200 s from now."""

    def receive(self, limit: int, *, hidden_for: int) -> Sequence[Message]:
        """Receives up to `limit` (1-10) messages by short polling, hidden for so many seconds."""

    def delete(self, receipt: str) -> None:
        """Deletes a received message."""

    def backlog(self) -> Backlog:
        """Returns the backlog."""


class Blobs(Protocol):
    """Large bodies."""

    def put(self, key: str, data: bytes) -> None:
        """Stores `data`; raises `Unavailable`."""

    def get(self, key: str) -> bytes | None:
        """Returns the data or None; raises `Unavailable`."""

    def delete(self, key: str) -> None:
        """Deletes the data, if any; raises `Unavailable`."""

    def list_keys(self, prefix: str) -> Sequence[str]:
        """Returns every key with this prefix, in order; raises `Unavailable`."""


class SecretStore(Protocol):
    """The store of one reader's secrets. Every method raises `Unavailable` when it fails."""

    def fetch(self) -> Secrets:
        """Returns all secrets that are set, with their live values, the current one first."""

    def generated(self, name: str, *, previous: bool = False) -> str:
        """Returns the current value of a key that the stack generates, or the previous one.

        "" without the key or that value.
        """


class Vault(Protocol):
    """The store of secrets that providers deliver."""

    def replace(self, name: str, value: str) -> None:
        """Sets the only live value.

        Raises `Unavailable`; then either the earlier ones are live or this one.
        """

    def revoke(self, name: str) -> None:
        """Leaves no value live until one is set. Raises `Unavailable`."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """A GET of a public https URL, or a POST if there is a body.

    The URL may be part of a delivery, so the creator of a Fetch has checked its host.
    `chosen_by_sender` is True if an unverified delivery names the key, in the URL or in the body.
    """

    url: str
    body: bytes | None = None
    chosen_by_sender: bool = False


class Fetcher(Protocol):
    """Fetches keys and certificates that providers publish."""

    def fetch(self, wanted: Fetch) -> bytes:
        """Returns the response's body, at most 64 KB; follows no redirect.

        Raises:
            NotPublished: the server answered, and its status says that it has no such document: any
                status but 200, 408, 425, 429 and 5xx.
            Unavailable: the server failed, limits requests, or did not answer within ingest's time
                budget.
        """


class UnavailableBlobs:
    """The bucket of a process that neither reads nor stores large bodies."""

    def put(self, key: str, data: bytes) -> None:  # noqa: ARG002 - part of the port
        """See `Blobs`."""
        raise Unavailable("s3", "PutObject", f"{key} cannot be stored from here")

    def get(self, key: str) -> bytes | None:
        """See `Blobs`."""
        raise Unavailable("s3", "GetObject", f"{key} cannot be read from here")

    def delete(self, key: str) -> None:
        """See `Blobs`."""
        raise Unavailable("s3", "DeleteObject", f"{key} cannot be deleted from here")

    def list_keys(self, prefix: str) -> Sequence[str]:
        """See `Blobs`."""
        raise Unavailable("s3", "ListObjectsV2", f"{prefix} cannot be listed from here")


class UnavailableSecrets:
    """The secret store of a process that reads no secrets."""

    def fetch(self) -> Secrets:
        """See `SecretStore`."""
        raise Unavailable("secretsmanager", "GetSecretValue", "secrets cannot be read from here")

    def generated(self, name: str, *, previous: bool = False) -> str:  # noqa: ARG002 - the port's
        """See `SecretStore`."""
        raise Unavailable("secretsmanager", "GetSecretValue", f"{name} cannot be read from here")


class UnavailableVault:
    """The vault of a process that takes no secrets from providers."""

    def replace(self, name: str, value: str) -> None:  # noqa: ARG002 - part of the port
        """See `Vault`."""
        raise Unavailable("vault", "PutSecretValue", f"{name} cannot be set from here")

    def revoke(self, name: str) -> None:
        """See `Vault`."""
        raise Unavailable("vault", "PutSecretValue", f"{name} cannot be revoked from here")


class UnavailableFetcher:
    """The fetcher of a process that fetches nothing."""

    def fetch(self, wanted: Fetch) -> bytes:
        """See `Fetcher`."""
        raise Unavailable("https", "GET", f"{wanted.url} cannot be reached from here")


UNAVAILABLE_FETCHER: Final = UnavailableFetcher()


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


class CallingThread:
    """Runs a handler in the calling thread, without a limit."""

    def run(self, work: Callable[[], None], *, seconds: float) -> None:  # noqa: ARG002 - the port's
        """See `Executor`."""
        work()


# Returns the client of a destination for one attempt, whose context it takes.
Clients = Callable[["DestinationSpec", Any], Any]


def no_clients(spec: "DestinationSpec", _: Any) -> Any:
    """Rejects every call, for a processor without destinations."""
    raise Permanent(f"this processor cannot call destination {spec.name!r}")


class Topics(Protocol):
    """Publishes to topics of Amazon SNS."""

    def publish(self, arn: str, subject: str, text: str) -> None:
        """Publishes one message; raises Permanent or Transient."""


class NoTopics:
    """Publishes nothing, for a processor outside of AWS."""

    def publish(self, arn: str, subject: str, text: str) -> None:  # noqa: ARG002 - part of the port
        """See `Topics`."""
        raise Permanent(f"{arn} cannot be reached from here: give the person another address")


class Parallel(Protocol):
    """Makes calls at the same time."""

    def map(self, work: Callable[[T], R], subjects: Iterable[T]) -> list[R]:
        """Returns the result of each subject, in order; raises the first error of `work`."""


class InTurn:
    """Makes one call after the other, so that the order is the same each time."""

    def map(self, work: Callable[[T], R], subjects: Iterable[T]) -> list[R]:
        """See `Parallel`."""
        return [work(subject) for subject in subjects]


IN_TURN: Final = InTurn()


@dataclass(frozen=True, kw_only=True)
class Ports:
    """The adapters of one process. Its entry point builds them once, and each part takes its own.

    A copy is another process over the same services, with its own cache of secrets.

    Attributes:
        queues: the work queues that the process may send to, by lane.
        dlqs: the DLQs that it may clear, by lane.
        parallel: makes independent calls.
    """

    table: Table
    clock: Clock
    randomness: Randomness
    blobs: Blobs = field(default_factory=UnavailableBlobs)
    queues: Mapping[str, Queue] = field(default_factory=dict)
    dlqs: Mapping[str, Queue] = field(default_factory=dict)
    secret_store: SecretStore = field(default_factory=UnavailableSecrets)
    vault: Vault = field(default_factory=UnavailableVault)
    fetcher: Fetcher = UNAVAILABLE_FETCHER
    parallel: Parallel = IN_TURN
    executor: Executor = field(default_factory=CallingThread)
    clients: Clients = no_clients
    topics: Topics = field(default_factory=NoTopics)

    @cached_property
    def secrets(self) -> "SecretCache":
        """The process's one cache of secrets."""
        # Its module imports this one.
        from webhook_inbox.domain.secrets import SecretCache  # noqa: PLC0415

        return SecretCache(store=self.secret_store, clock=self.clock)
