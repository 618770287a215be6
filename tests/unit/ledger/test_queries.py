"""The ledger read: one event whole, the events of a time, what needs attention; and lanes."""

from datetime import timedelta

import pytest

from tests.unit.support.world import World, handler, with_handlers
from webhook_inbox.adapters.memory import Fault, ManualClock, MemoryQueue, MemorySecrets
from webhook_inbox.domain.errors import Deferred, Held, Transient, Unavailable
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.ports import Outgoing
from webhook_inbox.domain.secrets import COMPLETION_KEY, GRACE, SecretCache
from webhook_inbox.ledger.queries import Ledger
from webhook_inbox.ledger.schema import WAKE
from webhook_inbox.queue.lanes import Lanes
from webhook_inbox.queue.message import RunMessage

# -- one event


def test_an_overview_is_the_event_with_its_runs() -> None:
    world = World(with_handlers(handler("acme.a"), handler("acme.b", lane="slow")))
    world.deliver()
    world.work_once("default")
    overview = world.overview()
    assert overview.event.runs == ("acme.a", "acme.b")
    assert [run.handler for run in overview.runs] == ["acme.a"]
    assert overview.status.value == "accepted"


def test_effects_are_part_of_it(world: World) -> None:
    world.deliver()
    row = world.event_row()
    assert row is not None
    world.table.put({"pk": row["pk"], "sk": "effect#acme.fulfil#order", "key": "k"})
    (effect,) = world.overview().effects
    assert effect["key"] == "k"


def test_its_body_is_read_when_it_is_asked_for(world: World) -> None:
    world.deliver(body=b"a" * 20_000)
    assert world.overview().event.body == b""
    assert world.body() == b"a" * 20_000


def test_without_a_bucket_no_body_is_read(world: World) -> None:
    world.deliver()
    found = Ledger(table=world.table).overview("acme", "evt-1", now=world.now, with_body=True)
    assert found is not None
    assert found.event.body == b""


@pytest.mark.parametrize("id_", ["evt-2", "evt", "evt-11", ""])
def test_an_unknown_event_is_none(world: World, id_: str) -> None:
    world.deliver()
    assert world.ledger.overview("acme", id_, now=world.now) is None
    assert world.ledger.overview("github", "evt-1", now=world.now) is None


def test_an_expired_event_is_none(world: World) -> None:
    world.deliver()
    assert world.ledger.overview("acme", "evt-1", now=world.now + timedelta(days=36)) is None


# -- what needs attention


def test_every_run_off_the_good_path_is_listed_and_no_other(world: World) -> None:
    world.deliver("good")
    world.work()
    world.script("acme.fulfil", Transient("down"))
    world.deliver("failed")
    world.work()
    world.dead("dead")
    world.deliver("accepted")
    listed = {run.event_id: run.status for run in world.ledger.due_runs()}
    assert listed == {"failed": Status.FAILED}
    assert [run.event_id for _, run in world.ledger.dead_runs() if run] == ["dead"]


def test_held_runs_are_first_in_a_partition_that_is_read_from_its_end(world: World) -> None:
    """A page reads a part of a partition, and runs that wait for a time must not hide them."""
    wait = Deferred(world.now + timedelta(days=3), "later")
    world.fails("acme.fulfil", wait)
    for number in range(40):
        world.deliver(f"waits-{number}")
    world.work()
    world.fails("acme.fulfil", Held("a lot"))
    for number in range(4):
        world.deliver(f"held-{number}")
    world.work()
    for bucket in world.ledger.due_buckets([WAKE]):
        statuses = [r.status for r in world.ledger.due_runs(bucket=bucket, newest_first=True)]
        assert statuses == sorted(statuses, key=lambda status: status is not Status.HELD)
        assert len(statuses) == len(list(world.ledger.due_runs(bucket=bucket)))
    every = {run.status for run in world.ledger.due_runs(newest_first=True)}
    assert every == {Status.HELD, Status.DEFERRED}


def test_an_entry_whose_row_is_gone_is_left_out(world: World) -> None:
    world.dead()
    world.table.lag = lambda unseen: unseen
    row = world.row()
    assert row is not None
    world.table._rows[row["pk"]].pop(row["sk"])
    world.table._replica[row["pk"]].pop(row["sk"])
    assert list(world.ledger.due_runs()) == []


# -- lanes


def lanes_of(*names: str) -> tuple[Lanes, dict[str, MemoryQueue]]:
    queues = {name: MemoryQueue(ManualClock(), name=name) for name in names}
    return Lanes(queues), queues


def test_each_reference_goes_to_its_lane() -> None:
    lanes, queues = lanes_of("default", "slow")
    lanes.send([("slow", RunMessage("a", "1", "h")), ("default", RunMessage("a", "2", "h"))])
    assert {name: len(queue) for name, queue in queues.items()} == {"default": 1, "slow": 1}


def test_a_lane_that_is_gone_is_the_default_one() -> None:
    lanes, queues = lanes_of("default")
    lanes.send([("gone", RunMessage("a", "1", "h"))])
    assert len(queues["default"]) == 1


def test_any_number_is_sent() -> None:
    lanes, queues = lanes_of("default")
    lanes.send(("default", RunMessage("a", str(n), "h")) for n in range(25))
    assert len(queues["default"]) == 25


def test_a_delay_is_every_messages() -> None:
    lanes, queues = lanes_of("default")
    lanes.send([("default", RunMessage("a", "1", "h"))], delay=60)
    assert queues["default"].receive(1, hidden_for=1) == []
    assert len(queues["default"]) == 1


def test_what_a_queue_refuses_is_unavailable() -> None:
    lanes, queues = lanes_of("default")
    queues["default"].refuses = lambda message: "2" in RunMessage.decode(message.body).event_id
    with pytest.raises(Unavailable, match="1 of 3"):
        lanes.send(("default", RunMessage("a", str(n), "h")) for n in (1, 2, 3))
    assert len(queues["default"]) == 2


def test_nothing_to_send_is_no_call() -> None:
    lanes, queues = lanes_of("default")
    calls: list[object] = []
    queues["default"].faults = lambda *call: calls.append(call)
    lanes.send([])
    assert calls == []


def test_a_lane_s_own_queue_is_found_even_empty() -> None:
    lanes, queues = lanes_of("default", "slow")
    assert lanes.queue("slow") is queues["slow"]
    queues["slow"].send([Outgoing("x")])
    assert lanes.queue("slow") is queues["slow"]


# -- live secrets


def live(**values: tuple[str, ...]) -> tuple[SecretCache, MemorySecrets, ManualClock]:
    clock, store = ManualClock(), MemorySecrets(values)
    return SecretCache(store=store, clock=clock), store, clock


def test_live_values_come_current_first() -> None:
    secrets, store, _ = live(acme=("old",))
    store.rotate("acme", "new")
    assert secrets.get("acme") == ("new", "old")


def test_what_is_not_set_is_nothing() -> None:
    secrets, _, _ = live()
    assert secrets.get("acme") == ()


@pytest.mark.parametrize("seconds", [1, 9.9])
def test_a_refresh_is_not_due_right_after_a_fetch(seconds: float) -> None:
    secrets, _, clock = live(acme=("one",))
    secrets.get("acme")
    clock.advance(seconds=seconds)
    assert secrets.refresh("acme") is None


def test_a_refresh_that_is_due_brings_the_new_values() -> None:
    secrets, store, clock = live(acme=("one",))
    secrets.get("acme")
    store.rotate("acme", "two")
    clock.advance(seconds=10)
    assert secrets.refresh("acme") == ("two", "one")
    assert secrets.get("acme") == ("two", "one")


def test_a_secret_that_was_taken_away_is_gone_within_a_minute() -> None:
    secrets, store, clock = live(acme=("one",))
    secrets.get("acme")
    store.remove("acme")
    clock.advance(seconds=61)
    assert secrets.get("acme") == ()


def test_a_store_that_never_answered_is_unavailable() -> None:
    secrets, store, _ = live(acme=("one",))
    store.faults = lambda *_: Fault.BEFORE
    with pytest.raises(Unavailable):
        secrets.get("acme")
    assert secrets.refresh("acme") is None


def test_known_values_outlive_the_store_for_an_hour() -> None:
    secrets, store, clock = live(acme=("one",))
    secrets.get("acme")
    store.faults = lambda *_: Fault.BEFORE
    clock.advance(seconds=GRACE.total_seconds())
    assert secrets.get("acme") == ("one",)
    clock.advance(seconds=1)
    with pytest.raises(Unavailable):
        secrets.get("acme")


def test_one_read_brings_every_secret_of_the_reader() -> None:
    secrets, store, clock = live(acme=("one",), github=("two",))
    reads = counted_reads(store)

    assert (secrets.get("acme"), secrets.get("github"), secrets.get("gone")) == (
        ("one",),
        ("two",),
        (),
    )
    clock.advance(seconds=59)
    secrets.get("github")

    assert reads == ["GetSecretValue"]


def test_an_absent_name_is_looked_for_again_after_two_seconds_and_no_earlier() -> None:
    secrets, store, clock = live(acme=("one",))
    reads = counted_reads(store)
    secrets.get("gone")
    clock.advance(seconds=1.9)
    assert secrets.get("gone") == ()
    assert len(reads) == 1

    store.rotate("gone", "there")
    clock.advance(seconds=0.1)

    assert secrets.get("gone") == ("there",)
    assert secrets.get("acme") == ("one",)
    assert len(reads) == 2


def test_an_absent_name_is_not_absent_for_an_hour_of_outage() -> None:
    secrets, store, clock = live(acme=("one",))
    secrets.get("acme")
    store.faults = lambda *_: Fault.BEFORE
    clock.advance(seconds=61)
    assert secrets.get("acme") == ("one",)
    with pytest.raises(Unavailable):
        secrets.get("gone")


def test_a_generated_key_is_read_by_itself() -> None:
    secrets, store, _ = live(**{"acme": ("one",), COMPLETION_KEY: ("key",)})
    reads = counted_reads(store)
    assert secrets.get(COMPLETION_KEY) == ("key",)
    assert secrets.get("acme") == ("one",)
    assert secrets.get(COMPLETION_KEY) == ("key",)
    assert len(reads) == 2


def test_the_previous_value_of_a_generated_key_is_read_only_where_it_is_asked_for() -> None:
    secrets, store, clock = live(**{COMPLETION_KEY: ("new", "old")})
    reads = counted_reads(store)

    assert next(secrets.keys(COMPLETION_KEY)) == "new"
    assert len(reads) == 1

    for _ in range(3):
        assert list(secrets.keys(COMPLETION_KEY)) == ["new", "old"]
    assert len(reads) == 2

    clock.advance(seconds=61)
    assert next(secrets.keys(COMPLETION_KEY)) == "new"
    assert len(reads) == 3


def test_an_absent_previous_value_is_looked_for_once_a_minute() -> None:
    secrets, store, clock = live(**{COMPLETION_KEY: ("key",)})
    reads = counted_reads(store)

    for _ in range(100):
        assert list(secrets.keys(COMPLETION_KEY)) == ["key"]
        clock.advance(seconds=0.5)

    assert len(reads) == 2


@pytest.mark.parametrize("seconds", [1, 31, 59])
def test_a_rotation_between_two_reads_hides_neither_value(seconds: float) -> None:
    """The absence of a previous value is cached, and then there is one."""
    secrets, store, clock = live(**{COMPLETION_KEY: ("one",)})
    secrets.get(COMPLETION_KEY)
    clock.advance(seconds=seconds)
    assert list(secrets.keys(COMPLETION_KEY)) == ["one"]

    store.rotate(COMPLETION_KEY, "two")
    assert list(secrets.keys(COMPLETION_KEY)) == ["one"]
    clock.advance(seconds=60 - seconds)

    assert list(secrets.keys(COMPLETION_KEY)) == ["two", "one"]


def test_a_previous_value_that_was_read_outlives_the_store_for_an_hour() -> None:
    secrets, store, clock = live(**{COMPLETION_KEY: ("new", "old")})
    assert list(secrets.keys(COMPLETION_KEY)) == ["new", "old"]
    store.faults = lambda *_: Fault.BEFORE
    clock.advance(seconds=GRACE.total_seconds())
    assert list(secrets.keys(COMPLETION_KEY)) == ["new", "old"]


def test_a_previous_value_that_cannot_be_read_is_not_an_absent_one() -> None:
    secrets, store, clock = live(**{COMPLETION_KEY: ("new", "old")})
    secrets.get(COMPLETION_KEY)
    store.faults = lambda *_: Fault.BEFORE
    clock.advance(seconds=61)
    keys = secrets.keys(COMPLETION_KEY)
    assert next(keys) == "new"
    with pytest.raises(Unavailable):
        next(keys)


def test_a_previous_value_that_was_read_is_redacted() -> None:
    secrets, _, _ = live(**{COMPLETION_KEY: ("the-key-of-today", "the-key-of-before")})
    list(secrets.keys(COMPLETION_KEY))
    assert secrets.redact("the-key-of-today the-key-of-before") == "[secret] [secret]"


def counted_reads(store: MemorySecrets) -> list[str]:
    """Returns a list that will name every later call of the store."""
    reads: list[str] = []

    def note(_: str, operation: str) -> None:
        reads.append(operation)

    store.faults = note
    return reads


def test_every_value_that_was_read_is_redacted_also_of_names_that_were_not_asked_for() -> None:
    secrets, _, _ = live(acme=("one",), github=("a-secret-of-github",))
    secrets.get("acme")
    assert secrets.redact("it is a-secret-of-github") == "it is [secret]"
