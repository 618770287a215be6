"""A FIFO lane on the local runtime: accounts' events in order, whatever fails in between."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from tests.e2e.inquiry import fresh
from tests.e2e.whole_inbox import WholeInbox
from webhook_inbox.domain.model import Run, Status
from webhook_inbox.queue.line import TURN

ACCOUNTS = "accounts"


@pytest.fixture
def accounts() -> tuple[str, str]:
    """Two accounts that no other test knows."""
    return fresh(), fresh()


def test_two_accounts_keep_their_order_while_one_s_events_fail(
    inbox: WholeInbox, accounts: tuple[str, str], gate: Path
) -> None:
    one, other = accounts
    faulty = {"mood": "raise", "while": str(gate)}
    sent: dict[str, list[str]] = {one: [], other: []}
    for number in range(5):
        sent[one].append(inbox.accept("booking", account=one, **(faulty if number == 1 else {})))
        sent[other].append(inbox.accept("booking", account=other))

    theirs = [_done(inbox, event_id, "lab.book") for event_id in sent[other]]
    stuck = inbox.becomes(sent[one][1], "lab.book", Status.FAILED)
    assert [inbox.runs("lab", event_id) for event_id in sent[one][2:]] == [{}, {}, {}]
    gate.unlink()
    ours = [_done(inbox, event_id, "lab.book") for event_id in sent[one]]

    assert {run.ordering_key for run in ours} == {one}
    assert ours[1].attempt_count > stuck.attempt_count > 0
    assert "failed" in {attempt.outcome for attempt in ours[1].attempts}
    # Carried by one message from first to last: nothing was sent anew.
    assert {run.generation for run in (*ours, *theirs)} == {0}
    for runs in (ours, theirs):
        _one_after_the_other(runs)


def test_an_account_stands_still_after_a_death_until_it_is_replayed(
    inbox: WholeInbox, accounts: tuple[str, str], gate: Path
) -> None:
    one, other = accounts
    first = inbox.accept("seal", account=one, mood="raise", **{"while": str(gate)})
    later = [inbox.accept("seal", account=one) for _ in range(2)]
    elsewhere = inbox.accept("seal", account=other)

    dead = inbox.becomes(first, "lab.seal", Status.DEAD_LETTER)
    waiting = inbox.becomes(later[0], "lab.seal", Status.DEFERRED)
    _done(inbox, elsewhere, "lab.seal")

    assert dead.blocking
    assert (waiting.waits_for, waiting.attempt_count) == (TURN, 0)
    assert first in waiting.last_error
    assert inbox.dead_letters(first, lane=ACCOUNTS) == []
    gate.unlink()
    assert inbox.replay(source="lab", event_ids=[first])["counts"] == {"replayed": 1}
    _one_after_the_other([_done(inbox, event_id, "lab.seal") for event_id in (first, *later)])


def test_an_event_without_an_account_dies_by_itself(inbox: WholeInbox) -> None:
    event_id = inbox.accept("booking")

    run = inbox.becomes(event_id, "lab.book", Status.DEAD_LETTER)

    assert "'account'" in run.last_error
    assert inbox.effects(event_id) == {}


def _done(inbox: WholeInbox, event_id: str, handler: str) -> Run:
    inbox.settled("lab", event_id)
    return inbox.run(event_id, handler)


def _one_after_the_other(runs: Sequence[Run]) -> None:
    for before, after in pairwise(runs):
        assert before.attempts[-1].ended_at <= after.attempts[0].started_at
