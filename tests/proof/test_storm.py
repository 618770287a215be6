"""Over HTTP, against downstreams that fail, stall, refuse and are killed: G2, G4, G8.

Everything runs as deployed, with four workers a lane; the sink follows a script.
"""

import threading
import time
from collections import Counter
from itertools import groupby, pairwise
from random import Random

from tests.proof.storm.inbox import WORKERS, Storm
from tests.waiting import eventually
from webhook_inbox.domain.model import Status

# Which of these happen to each event, one after the other, before its sink behaves.
TROUBLES = ("500", "429", "done500", "drop", "refuse", "stall")
# Behaviors without doubt: the sink did nothing and said so.
CLEAR = frozenset({"429"})
# Settings of the destination `fragile` in inbox.toml.
RECOVERY = 6.0
FAILURES = 5
DRAIN = 5


def scripts(dice: Random, number: int, *, longest: int) -> list[list[str]]:
    """Returns scripts; each trouble comes first in at least one of them."""
    drawn = [dice.choices(TROUBLES, k=dice.randint(0, longest)) for _ in range(number)]
    return [[trouble] for trouble in TROUBLES] + drawn


def test_every_effect_lands_once_where_keys_are_honoured(storm: Storm) -> None:
    dice = Random(1)
    told = scripts(dice, 54, longest=4)
    events = [{"event": f"keyed-{n}", "script": script} for n, script in enumerate(told)]
    ids = [event["event"] for event in events]
    killings = threading.Thread(target=_killings, args=(storm, 3))

    killings.start()
    storm.send("keyed", [*events, *dice.sample(events, 20)])
    ended = storm.ended(ids, "storm.keyed")
    killings.join()

    assert set(ended.values()) == {Status.DONE}
    assert storm.done("/keyed/orders") == dict.fromkeys(ids, 1)
    requests = storm.journal("/keyed/orders")
    keys = {(entry["body"]["event"], entry["key"]) for entry in requests}
    assert len(keys) == len(ids), "an event was told under two keys"
    assert {entry["behaviour"] for entry in requests} >= {*TROUBLES, "ok"}
    for id_ in ids:
        (effect,) = storm.overview("storm", id_).effects  # type: ignore[union-attr]
        assert effect["status"] == "committed"


def _killings(storm: Storm, times: int) -> None:
    """Kills the sink in the middle of what it does, and raises it again."""
    for _ in range(times):
        before = len(storm.journal("/keyed/orders"))
        eventually(lambda seen=before: len(storm.journal("/keyed/orders")) >= seen + 8, what="work")  # type: ignore[misc]
        storm.kill_sink()
        storm.raise_sink()


def test_an_effect_lands_at_most_once_where_no_keys_are_known(storm: Storm) -> None:
    dice = Random(2)
    told = scripts(dice, 34, longest=2)
    events = [{"event": f"keyless-{n}", "script": script} for n, script in enumerate(told)]
    ids = [event["event"] for event in events]

    storm.send("keyless", events)
    ended = storm.ended(ids, "storm.keyless")

    did = storm.done("/keyless/mails")
    for event in events:
        id_, script = event["event"], event["script"]
        doubtful = any(trouble not in CLEAR for trouble in script)
        assert ended[id_] is (Status.HELD if doubtful else Status.DONE), (id_, script)
        assert did[id_] <= 1, (id_, script)
        assert doubtful or did[id_] == 1, (id_, script)
    held = next(id_ for id_, status in ended.items() if status is Status.HELD)
    assert "did not commit" in storm.runs("storm", held)["storm.keyless"].last_error


def test_a_refusal_for_good_is_a_dead_letter_after_one_call(storm: Storm) -> None:
    events = [{"event": f"refused-{n}", "script": ["422"] * 9} for n in range(3)]
    storm.send("keyed", events)
    ended = storm.ended([event["event"] for event in events], "storm.keyed")
    assert set(ended.values()) == {Status.DEAD_LETTER}
    calls = [e for e in storm.journal("/keyed/orders") if e["body"]["event"] in ended]
    assert len(calls) == 3


def test_a_circuit_opens_and_closes_and_nothing_is_called_in_between(storm: Storm) -> None:
    storm.mood(fragile="500")
    ids = [f"fragile-{n}" for n in range(60)]
    storm.send("fragile", [{"event": id_} for id_ in ids])
    row = eventually(lambda: _breaker(storm), what="the circuit open")

    # Until then: as many calls as it takes, and those that were under way.
    calls = storm.journal("/fragile/notes")
    opened_at = row["open_until"] / 1000 - RECOVERY
    before = [entry for entry in calls if entry["at"] <= opened_at]
    assert 5 <= len(before) <= 5 + WORKERS - 1

    # A probe each time it has been open for six seconds, and nothing else.
    eventually(lambda: len(storm.journal("/fragile/notes")) >= len(before) + 3, what="probes")
    probes = [e["at"] for e in storm.journal("/fragile/notes") if e["at"] > opened_at + 1]
    assert all(later - earlier > RECOVERY - 0.5 for earlier, later in pairwise(probes))

    storm.mood()
    ended = storm.ended(ids, "storm.fragile")
    assert set(ended.values()) == {Status.DONE}
    assert not _breaker(storm)
    calls = storm.journal("/fragile/notes")
    assert storm.done("/fragile/notes") == dict.fromkeys(ids, 1)
    # The history has each call; those of the closed circuit count, but for the one that opened it.
    failed = [entry for entry in calls if entry["behaviour"] == "500"]
    runs = [storm.runs("storm", id_)["storm.fragile"] for id_ in ids]
    outcomes = Counter(attempt.outcome for run in runs for attempt in run.attempts)
    assert outcomes["failed"] + outcomes["not counted"] == len(failed)
    assert sum(run.attempt_count for run in runs) - len(ids) == outcomes["failed"] < FAILURES
    # They come at the drain's rate, one probe first; SQS delays by whole seconds.
    drained = sorted(entry["at"] for entry in calls if entry["behaviour"] == "ok")
    assert _densest(drained[1:], 5.0) <= DRAIN * (5 + 1) + WORKERS


def _breaker(storm: Storm) -> dict[str, int] | None:
    """Returns the row of the circuit if it is open."""
    rows = storm.rows("destination#fragile")
    return next((row for row in rows if "open_until" in row), None)


def test_the_rate_is_kept_in_every_ten_seconds(storm: Storm) -> None:
    ids = [f"paced-{n}" for n in range(500)]
    storm.send("paced", [{"event": id_} for id_ in ids])
    ended = storm.ended(ids, "storm.paced")
    assert set(ended.values()) == {Status.DONE}
    calls = sorted(entry["at"] for entry in storm.journal("/paced/calls"))
    assert len(calls) == len(ids)
    assert _densest(calls, 10.0) <= 20 * 10 * 1.05


def _densest(times: list[float], seconds: float) -> int:
    """Returns how many of these times lie in a window of so many seconds, at most."""
    first, most = 0, 0
    for last, time_ in enumerate(times):
        while times[first] <= time_ - seconds:
            first += 1
        most = max(most, last - first + 1)
    return most


def test_order_holds_for_2000_events_that_come_shuffled(storm: Storm) -> None:
    dice = Random(3)
    changes = [
        {"event": f"{kind}-{account}-{number}", "account": f"a{account}", "number": number}
        for kind, accounts, numbers in (("change", 20, 50), ("state", 20, 50))
        for account in range(accounts)
        for number in range(1, numbers + 1)
    ]
    assert len(changes) == 2000
    dice.shuffle(changes)
    repeated = dice.sample(changes, 100)

    for kind in ("change", "state"):
        mine = [each for each in [*changes, *repeated] if each["event"].startswith(kind)]
        storm.send(kind, mine)
    sequence = {c["event"] for c in changes if c["event"].startswith("change")}
    latest = {c["event"] for c in changes if c["event"].startswith("state")}

    assert set(storm.ended(sequence, "storm.change").values()) == {Status.DONE}
    assert set(storm.ended(latest, "storm.state").values()) <= {Status.DONE, Status.SKIPPED}
    for account, numbers in _by_account(storm, "/keyed/changes"):
        assert numbers == list(range(1, 51)), account
    seen = dict(_by_account(storm, "/keyed/states"))
    assert len(seen) == 20
    for account, numbers in seen.items():
        assert numbers == sorted(numbers), account
        assert numbers[-1] == 50, account


def _by_account(storm: Storm, path: str) -> list[tuple[str, list[int]]]:
    did = [entry["body"] for entry in storm.journal(path) if entry["did"]]
    did.sort(key=lambda body: body["account"])  # stable: within an account as they happened
    groups = groupby(did, key=lambda body: body["account"])
    return [(account, [body["number"] for body in bodies]) for account, bodies in groups]


def test_a_handler_that_fails_for_ever_delays_no_other(storm: Storm) -> None:
    """Its runs' retries share nothing with the other's but the table."""
    ids = [f"shared-{n}" for n in range(100)]
    began = time.time()
    storm.send("shared", [{"event": id_} for id_ in ids])
    assert set(storm.ended(ids, "storm.fine").values()) == {Status.DONE}
    statuses = storm.statuses(ids, "storm.doomed")
    assert Status.DONE not in statuses.values()
    attempts = [storm.runs("storm", id_)["storm.doomed"].attempt_count for id_ in ids[:10]]
    assert max(attempts) > 1, "the other one was not failing meanwhile"

    alone = [f"alone-{n}" for n in range(20)]
    for id_ in alone:
        storm.deliver("storm", "shared", {"event": id_}, event_id=id_)
    assert set(storm.ended(alone, "storm.fine").values()) == {Status.DONE}
    calls = {e["body"]["event"]: e["at"] for e in storm.journal("/keyed/fine")}
    waits = [
        calls[id_] - storm.overview("storm", id_).event.received_at.timestamp()  # type: ignore[union-attr]
        for id_ in alone
    ]
    # A retry of the other one waits for up to two seconds: no run of this one waited for that.
    assert sorted(waits)[len(waits) // 2] < 2.0, waits
    assert time.time() - began < 300
