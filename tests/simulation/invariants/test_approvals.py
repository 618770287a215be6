"""The checks of requests that people decide."""

from typing import Any

import pytest

from simulation.invariants.approvals import changed, check_begun, check_end, check_woken, told
from simulation.invariants.observer import Actor, Observer, Violation
from webhook_inbox.domain.ports import Item, Key
from webhook_inbox.handlers.effects.plan import Approval

RUN = ("acme", "e1", "mail")
ANN = Actor("person", person="ann")
WORKER = Actor("processor")
KEY = Key("event#acme#e1", "approval#mail#effect:pay#0#1")


def word(said: str, at: int = 5) -> Item:
    return {"word": said, "at": at, "reason": "", "proof": "link"}


def request(**values: Any) -> Item:
    return {
        "pk": KEY.pk,
        "sk": KEY.sk,
        "source": "acme",
        "event_id": "e1",
        "handler": "mail",
        "fingerprint": "f",
        "state": "open",
        "until": 100,
        **values,
    }


def write(old: Item, new: Item, actor: Actor = ANN, *, now: int = 10) -> None:
    changed(Observer(), actor, old, new, [], now=now)


def test_a_decision_in_time_by_the_person_who_acts_is_fine() -> None:
    write(request(), request(decisions={"ann": word("approve")}))


@pytest.mark.parametrize(
    ("old", "new", "actor", "now"),
    [
        (request(state="approved"), request(), ANN, 10),
        (request(decisions={"bob": word("deny")}), request(), ANN, 10),
        (
            request(decisions={"ann": word("approve")}),
            request(decisions={"ann": word("approve", 9)}),
            ANN,
            10,
        ),
        (request(), request(decisions={"ann": word("approve", 100)}), ANN, 100),
        (request(), request(decisions={"bob": word("approve")}), ANN, 10),
        (request(), request(decisions={"ann": word("approve")}), WORKER, 10),
        (request(escalated_at=5), request(escalated_at=6), WORKER, 10),
        (request(), request(announced={"ann": 5}), WORKER, 10),
        (request(until=10**6), request(until=10**6, state="expired"), WORKER, 10),
    ],
)
def test_a_wrong_write_is_found(old: Item, new: Item, actor: Actor, now: int) -> None:
    with pytest.raises(Violation, match="hold"):
        write(old, new, actor, now=now)


def test_two_open_requests_of_one_effect_are_found() -> None:
    with pytest.raises(Violation, match="asks twice"):
        changed(Observer(), WORKER, {}, request(), [request(fingerprint="g")], now=10)


@pytest.mark.parametrize(
    "found",
    [
        [],
        [request()],
        [request(state="approved", fingerprint="g", decisions={"ann": word("approve")})],
        [request(state="approved", decisions={"ann": word("approve")})],
        [request(state="approved", decisions={"ann": word("approve"), "bob": word("deny")})],
        [
            request(
                state="approved", decisions={"ann": word("approve"), "bob": word("approve", 100)}
            )
        ],
    ],
)
def test_an_effect_without_enough_approvals_is_found(found: list[Item]) -> None:
    with pytest.raises(Violation, match="began"):
        check_begun(RUN, "f", Approval("finance", 2), found)


def test_an_effect_that_two_people_approved_may_begin() -> None:
    given = {"ann": word("approve"), "bob": word("approve")}
    check_begun(RUN, "f", Approval("finance", 2), [request(state="approved", decisions=given)])


HELD = {"due_at": 3_660_010, "held": {"at": 5}}


def test_a_run_that_waits_past_its_decision_is_found() -> None:
    decided = request(state="approved", ended_at=10)
    check_woken(RUN, HELD, decided, faultless=False)
    with pytest.raises(Violation, match="was not sent"):
        check_woken(RUN, HELD, decided, faultless=True)
    with pytest.raises(Violation, match="waited for its next wake"):
        check_woken(RUN, {**HELD, "due_at": 3_660_011}, decided, faultless=False)
    check_woken(RUN, HELD, request(), faultless=True)


def test_messages_are_counted() -> None:
    observer = Observer()
    told(observer, KEY, "ann", most=1)
    with pytest.raises(Violation, match="told 2 times"):
        told(observer, KEY, "ann", most=1)


def test_a_request_that_stays_open_and_a_person_who_was_never_told_are_found() -> None:
    observer = Observer()
    with pytest.raises(Violation, match="still open"):
        check_end(observer, request(), set(), ended=False)
    check_end(observer, request(), set(), ended=True)
    expired = request(state="expired", decisions={"bob": word("approve")})
    with pytest.raises(Violation, match="never told"):
        check_end(observer, expired, {"ann", "bob"}, ended=True)
    observer.told[*KEY, "ann"] = 1
    check_end(observer, expired, {"ann", "bob"}, ended=True)
