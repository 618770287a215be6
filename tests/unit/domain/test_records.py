"""Statuses, the manifest, conditions, retries and references: the small parts, each alone."""

import json
import math
from datetime import UTC, datetime, timedelta

import pytest

from webhook_inbox.adapters.memory import SeededRandomness
from webhook_inbox.domain.conditions import (
    Absent,
    Condition,
    Equals,
    Less,
    OneOf,
    Present,
    either,
    every,
    number,
)
from webhook_inbox.domain.errors import (
    Deferred,
    ForeignMessage,
    Reason,
    Rejected,
    Transient,
    Unavailable,
)
from webhook_inbox.domain.manifest import (
    Backoff,
    DestinationSpec,
    HandlerSpec,
    LaneSpec,
    Manifest,
    SourceSpec,
    matches,
)
from webhook_inbox.domain.model import SETTLED, EventStatus, Status, WaitStrategy, event_status
from webhook_inbox.processor.retry_policy import backoff_delay
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.queue.outcomes import RunOutcome, RunResult
from webhook_inbox.queue.visibility import ceil_seconds, plan_wait

# -- an event's status

ORDER = [
    Status.DEAD_LETTER,
    Status.HELD,
    Status.FAILED,
    Status.DEFERRED,
    Status.PROCESSING,
    Status.PENDING,
    None,  # a run without a row: accepted
    Status.DONE,
    Status.SKIPPED,
]


@pytest.mark.parametrize("place", range(len(ORDER)))
@pytest.mark.parametrize("other", range(len(ORDER)))
def test_an_events_status_is_the_first_that_any_run_has(place: int, other: int) -> None:
    rows = {f"run-{n}": ORDER[n] for n in (place, other)}
    statuses = {name: status for name, status in rows.items() if status is not None}
    first = ORDER[min(place, other)]
    wanted = EventStatus.ACCEPTED if first is None else EventStatus(first)
    assert event_status(rows, statuses) is wanted


def test_an_event_without_runs_is_skipped() -> None:
    assert event_status([], {}) is EventStatus.SKIPPED


def test_a_run_of_a_handler_that_the_event_does_not_name_counts_too() -> None:
    assert event_status([], {"h": Status.FAILED}) is EventStatus.FAILED


def test_every_status_of_a_run_is_one_of_an_event() -> None:
    assert {str(status) for status in Status} <= {str(status) for status in EventStatus}
    assert {Status.DONE, Status.SKIPPED} == SETTLED


# -- the manifest

FULL = Manifest(
    stage="prod",
    version="abc",
    sources={
        "acme": SourceSpec("acme", "hmac", "acme", ("paid", "re*"), ("n",), {"signature": {"a": 1}})
    },
    handlers={
        "a": HandlerSpec("a", "m", "f", "acme", ("paid",), 3, 5.0, "slow", Backoff(1, 2, 3), 60.0),
        "b": HandlerSpec("b", "m", "g", "acme", ("*",)),
        "c": HandlerSpec("c", "m", "h", "other", ("*",)),
    },
    destinations={"crm": DestinationSpec("crm", "https://crm.example")},
    secrets=("acme", "crm"),
    lane_specs={"slow": LaneSpec(workers=9, runs_per_invocation=3)},
)


def test_a_manifest_is_read_as_it_was_written() -> None:
    assert Manifest.from_data(FULL.to_data()) == FULL


def test_a_manifest_survives_being_written_as_source_code() -> None:
    assert Manifest.from_data(eval(repr(FULL.to_data()))) == FULL
    assert Manifest.from_data(json.loads(json.dumps(FULL.to_data()))) == FULL


def test_an_event_has_the_runs_of_its_source_and_type_in_order() -> None:
    assert [spec.name for spec in FULL.runs_for("acme", "paid")] == ["a", "b"]
    assert [spec.name for spec in FULL.runs_for("acme", "refunded")] == ["b"]
    assert FULL.runs_for("nobody", "paid") == ()


def test_a_source_wants_the_types_it_names() -> None:
    source = FULL.sources["acme"]
    assert [FULL.wants(source, type_) for type_ in ("paid", "refunded", "Paid", "x")] == [
        True,
        True,
        False,
        False,
    ]


def test_the_default_lane_is_always_there() -> None:
    assert FULL.lanes == ("default", "slow")
    assert Manifest().lanes == ("default",)


@pytest.mark.parametrize(
    ("pattern", "type_", "fits"),
    [
        ("*", "", True),
        ("*", "any.thing", True),
        ("invoice.*", "invoice.paid", True),
        ("invoice.*", "invoice", False),
        ("invoice.*", "INVOICE.paid", False),
        ("invoice.paid", "invoice.paid", True),
        ("invoice.paid", "invoice.paid.twice", False),
        ("*.paid", "a.b.paid", True),
        ("in?oice", "invoice", True),
        ("[ab]", "a", True),
        ("a.b", "aXb", False),
    ],
)
def test_types_are_matched_by_glob_patterns(pattern: str, type_: str, fits: bool) -> None:
    assert matches((pattern,), type_) is fits


def test_any_pattern_will_do() -> None:
    assert matches(("a", "b"), "b")
    assert not matches((), "b")


# -- conditions

ROW = {"status": "done", "count": 3, "due": 10}


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (Absent("status"), False),
        (Absent("other"), True),
        (Present("status"), True),
        (Present("other"), False),
        (Equals("status", "done"), True),
        (Equals("status", "failed"), False),
        (Equals("other", "done"), False),
        (Less("due", 11), True),
        (Less("due", 10), False),
        (Less("other", 10), False),
        (OneOf("status", ("failed", "done")), True),
        (OneOf("status", ("failed",)), False),
        (OneOf("status", ()), False),
        (OneOf("other", ("done",)), False),
        (every(), True),
        (either(), False),
        (every(Present("status"), Less("due", 11)), True),
        (every(Present("status"), Less("due", 9)), False),
        (either(Present("other"), Less("due", 11)), True),
        (either(Present("other"), Less("due", 9)), False),
        (number("count", 3), True),
        (number("count", 0), False),
        (number("other", 0), True),
        (number("other", 3), False),
    ],
    ids=str,
)
def test_a_condition_holds_or_not(condition: Condition, holds: bool) -> None:
    assert condition.holds(ROW) is holds


def test_of_no_row_nothing_holds_but_absence() -> None:
    assert Absent("pk").holds({})
    assert number("generation", 0).holds({})
    assert not Less("due", 10**18).holds({})


# -- retries


@pytest.mark.parametrize(
    ("attempt", "ceiling"), [(1, 10), (2, 40), (3, 160), (7, 21_600), (8, 21_600), (1000, 21_600)]
)
def test_the_wait_is_anywhere_up_to_a_ceiling_that_grows(attempt: int, ceiling: float) -> None:
    randomness = SeededRandomness(attempt)
    waits = [backoff_delay(Backoff(), attempt, randomness).total_seconds() for _ in range(300)]
    assert 0 <= min(waits) < 0.1 * ceiling
    assert 0.9 * ceiling < max(waits) <= ceiling


def test_eight_steady_attempts_outlast_most_outages() -> None:
    ceilings = [min(21_600, 10 * 4**n) for n in range(7)]
    assert math.isclose(sum(ceilings) / 3600, 9.8, abs_tol=0.1) or sum(ceilings) > 9 * 3600


@pytest.mark.parametrize(
    ("seconds", "wait"),
    [
        (-1, WaitStrategy.COPY),
        (0, WaitStrategy.COPY),
        (60, WaitStrategy.COPY),
        (900, WaitStrategy.COPY),
        (900.001, WaitStrategy.PARKED),
        (86_400, WaitStrategy.PARKED),
    ],
)
def test_what_carries_a_wait_depends_on_its_length(seconds: float, wait: WaitStrategy) -> None:
    chosen = plan_wait(timedelta(seconds=seconds))
    assert chosen.wait is wait
    assert chosen.delay == timedelta(seconds=max(seconds, 0))


@pytest.mark.parametrize(
    ("seconds", "up"), [(0, 0), (0.001, 1), (1, 1), (1.000001, 2), (899.5, 900)]
)
def test_seconds_are_rounded_up(seconds: float, up: int) -> None:
    assert ceil_seconds(timedelta(seconds=seconds)) == up


# -- references


@pytest.mark.parametrize("event_id", ["evt-1", "ü", "a\nb", "\x00", '"', "x" * 512, "😀"])
@pytest.mark.parametrize("generation", [0, 1, 10**9])
def test_a_reference_is_read_as_it_was_written(event_id: str, generation: int) -> None:
    reference = RunMessage("acme", event_id, "acme.fulfil", generation)
    text = reference.encode()
    assert RunMessage.decode(text) == reference
    assert text.isascii()
    assert text.isprintable()


@pytest.mark.parametrize("name", ["v", "source", "event_id", "handler", "generation"])
@pytest.mark.parametrize("value", [None, [], {}, "", -1, 1.5, False, 10**30])
def test_a_reference_with_one_part_broken_is_foreign(name: str, value: object) -> None:
    data = json.loads(RunMessage("acme", "evt-1", "acme.fulfil").encode())
    with pytest.raises(ForeignMessage):
        RunMessage.decode(json.dumps({**data, name: value}))


def test_what_a_later_version_adds_within_this_one_is_passed_over() -> None:
    data = json.loads(RunMessage("acme", "evt-1", "acme.fulfil").encode())
    assert RunMessage.decode(json.dumps({**data, "more": 1})).event_id == "evt-1"


@pytest.mark.parametrize("depth", [10, 500, 990, 1500, 100_000])
def test_a_deeply_nested_message_is_foreign(depth: int) -> None:
    with pytest.raises(ForeignMessage):
        RunMessage.decode('{"v":' + "[" * depth + "]" * depth + "}")


# -- errors


def test_errors_say_what_happens_next() -> None:
    assert str(Rejected(Reason.STALE, "six minutes old")) == "stale: six minutes old"
    assert str(Unavailable("sqs", "SendMessage", "throttled")) == "sqs SendMessage: throttled"
    assert Transient("down", retry_after=timedelta(1)).retry_after == timedelta(days=1)
    assert Deferred(datetime(2026, 1, 1, tzinfo=UTC)).until.year == 2026


def test_a_result_keeps_its_message_unless_it_says_otherwise() -> None:
    assert RunResult(RunOutcome.BROKEN).keeps_message
