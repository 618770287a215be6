"""A circuit admits one probe at a time, and none too early."""

from typing import Any

import pytest

from simulation.invariants.circuits import changed, check_held, is_circuit
from simulation.invariants.observer import Observer, Violation
from webhook_inbox.domain.ports import Item, Key

NOW = 1_767_225_600_000
ROW = Key("destination#sink", "breaker")
OPEN = {"open_until": NOW - 1, "failures": 5}
PROBED = {**OPEN, "probe": "one", "probe_until": NOW + 30_000}


def write(old: Item, new: Item, *, max_skew: int = 0, **notes: Any) -> Observer:
    observer = Observer(**notes)
    changed(observer, ROW, old, new, now=NOW, max_skew=max_skew)
    return observer


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (ROW, True),
        (Key("destination#sink", "limit"), False),
        (Key("event#acme#e1", "breaker"), False),
    ],
)
def test_a_circuit_is_known_by_its_key(key: Key, expected: bool) -> None:
    assert is_circuit(key) is expected


GOOD: dict[str, tuple[Item, Item]] = {
    "it opens": ({"failures": 5}, OPEN),
    "it is probed": (OPEN, PROBED),
    "another probe, after the first one's time": (
        {**PROBED, "probe_until": NOW - 1},
        {**PROBED, "probe": "two"},
    ),
    "the probe was good": (PROBED, {"failures": 0}),
    "the probe failed": (PROBED, {**OPEN, "open_until": NOW + 60_000}),
    "it is paused": ({}, {"paused_until": NOW + 10_000}),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_change_that_may_be_is_counted(name: str) -> None:
    observer = write(*GOOD[name], circuits={ROW.pk: (3, 0)})
    assert observer.circuits == {ROW.pk: (4, NOW)}


@pytest.mark.parametrize(
    ("old", "new"),
    [({"failures": 1}, {"failures": 2}), (PROBED, {**PROBED, "expires_at": 1})],
    ids=["counted", "prolonged"],
)
def test_a_write_that_leaves_the_circuit_unchanged_is_not_counted(old: Item, new: Item) -> None:
    assert write(old, new).circuits == {}


BAD: dict[str, tuple[Item, Item, str]] = {
    "two at once": (PROBED, {**PROBED, "probe": "two"}, "a second probe while one is running"),
    "too early": (
        {"open_until": NOW + 1},
        {"open_until": NOW + 1, "probe": "one", "probe_until": NOW + 9},
        "before the circuit may be probed",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_probe_that_may_not_be_is_seen(name: str) -> None:
    old, new, text = BAD[name]
    with pytest.raises(Violation, match=text) as violation:
        write(old, new)
    assert violation.value.guarantee == "circuit"


HELD: Item = {"open_until": 10**14, "held_since": NOW}


@pytest.mark.parametrize(
    ("old", "new"),
    [(HELD, {"failures": 0}), ({}, HELD), (HELD, {**HELD, "open_until": NOW + 30_000})],
    ids=["closed", "opened", "recovering"],
)
def test_only_a_person_changes_a_circuit_that_a_person_opened(old: Item, new: Item) -> None:
    check_held(ROW, old, new, by_hand=True)
    with pytest.raises(Violation, match="of a circuit that a person controls"):
        check_held(ROW, old, new, by_hand=False)


def test_clocks_may_be_apart() -> None:
    write(*BAD["too early"][:2], max_skew=2)
