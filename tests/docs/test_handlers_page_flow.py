"""The code of docs/handlers.md runs: order, policies, jobs, errors, forwarding, tests."""

import inspect
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest

from tests.docs.handlers_page import Chapter, Open
from tests.unit.handlers.forwarding.aws import Aws, payload
from webhook_inbox.adapters.aws import operation
from webhook_inbox.testing import Fake, HandlerRun, Inbox

# -- order, policies, versions


def test_orders_are_kept(opened: Open) -> None:
    chapter = opened("order")
    inbox = chapter.inbox()

    def mirrored(version: int) -> str:
        told = {"customer": {"id": "c-1", "version": version}}
        run = chapter.run(inbox, "shop.mirror", told, event_type="customer.changed")
        return f"{run.status}: {run.error}"[:14]

    assert [mirrored(version) for version in (9, 10, 9)] == ["done: ", "done: ", "skipped: stale"]
    _play_a_sequence(chapter)
    changed = chapter.run(inbox, "shop.change_cart", {"customer": "c"}, event_type="cart.emptied")
    assert changed.effects["change"].result == "cart.emptied"
    newer, as_known, gone = (
        chapter.run(inbox, "shop.follow", {"customer": customer, "version": version})
        for customer, version in (("c-1", 8), ("c-1", 7), ("c-2", 7))
    )
    assert newer.status == "failed"
    assert newer.due is not None
    assert newer.due >= inbox.now + timedelta(seconds=9)
    assert [as_known.status, gone.status] == ["done", "skipped"]


def _play_a_sequence(chapter: Chapter) -> None:
    inbox = chapter.inbox()
    runs: list[HandlerRun] = []
    for number, before in ((3, []), (1, ["deferred"]), (2, ["deferred", "done"])):
        assert [run.status for run in runs] == before
        runs.append(chapter.run(inbox, "shop.book", {"account": "a", "number": number}))
    assert [(run.status, run.attempts) for run in runs] == [("done", 1)] * 3

    lonely = chapter.run(inbox, "shop.book", {"account": "b", "number": 4})
    assert (lonely.status, lonely.attempts) == ("deferred", 0)
    inbox.advance(seconds=90)
    assert lonely.status == "done"


def test_policies_decide_first(opened: Open) -> None:
    chapter = opened("policies and agents")
    inbox = chapter.inbox()

    def asked(cents: int, agent: str = "desk", **headers: str) -> Any:
        return chapter.run(inbox, "shop.refund", {"cents": cents}, agent=agent, headers=headers)

    assert asked(5).status == "done"
    assert asked(5, "stranger").error.startswith("denied: agent 'stranger' is not one of desk")
    assert asked(200_000).error == "denied: over 1000 EUR"
    held = asked(20_000)
    assert (held.status, held.row.held["shows"]) == ("held", "20000 cents")
    assert held.approve().status == "done"
    looping = asked(5, **{"x-agent-call-chain": "desk, shop.refund"})
    assert looping.error == "agent loop: desk → shop.refund → shop.refund"
    assert asked(5, **{"x-agent-call-depth": "8"}).status == "done"
    assert asked(5, **{"x-agent-call-depth": "9"}).status == "skipped"


def test_a_payload_is_read_by_its_version(opened: Open) -> None:
    chapter = opened("versions")
    inbox = chapter.inbox()

    def booked(told: dict[str, Any]) -> Any:
        run = chapter.run(inbox, "shop.book", told)
        return run.effects["book"].result if run.status == "done" else run.error

    assert booked({"amount": 1.5}) == ["1", 0]
    assert booked({"api": 2, "cents": 150}) == ["2", 150]
    assert booked({"api": "3"}) == ["3", 0]
    error = booked({"api": "4"}).removeprefix("permanent: ")
    assert f"`{error}`" in chapter.section.text


# -- long work, errors


def test_a_job_is_waited_for(opened: Open) -> None:
    chapter = opened("long-running jobs")
    made: dict[str, str] = {}
    encoder = Fake().handles(lambda request: made if request.method == "GET" else {"id": "j-1"})
    billing = Fake().handles(lambda _: {"paid": len(billing.requests) > 3})
    inbox = chapter.inbox(encoder=encoder, billing=billing)

    told = chapter.run(inbox, "shop.encode")
    asking = chapter.run(inbox, "shop.encode")
    assert (told.status, told.row.waits_for) == ("deferred", "completion of encode")
    assert encoder.requests[0].json["report_to"].startswith("/completions/")
    assert told.complete("encode", "v.mp4").effects["publish"].result == "v.mp4"
    made["made"] = "w.mp4"
    inbox.advance(minutes=6)
    assert asking.effects["publish"].result == "w.mp4"
    assert (asking.attempts, len(encoder.done)) == (1, 2)

    paid = chapter.run(inbox, "shop.chase", {"invoice": 7})
    assert (paid.status, paid.error) == ("deferred", "it is not paid yet")
    assert (paid.settle().attempts, len(billing.requests)) == (1, 4)
    _play_failed_jobs(chapter)


def _play_failed_jobs(chapter: Chapter) -> None:
    inbox = chapter.inbox(encoder=Fake())
    again = chapter.run(inbox, "shop.encode")
    assert again.fail("encode", "no disk", retry=True).status == "failed"
    inbox.advance(minutes=1)
    assert sorted(again.effects) == ["encode", "encode:2"]
    assert again.fail("encode", "no such film").error == "permanent: encode failed: no such film"


def test_what_is_raised_decides(opened: Open) -> None:
    chapter = opened("errors")
    inbox = chapter.inbox()
    gone, bad, busy, odd = (
        chapter.run(inbox, "shop.end", event_type=type_) for type_ in ("gone", "bad", "busy", "odd")
    )

    assert [run.status for run in (gone, bad, busy, odd)] == [
        "skipped",
        "dead_letter",
        "failed",
        "held",
    ]
    assert [run.attempts for run in (gone, bad, busy, odd)] == [1, 1, 1, 0]
    assert busy.due is not None
    assert busy.due >= inbox.now + timedelta(minutes=4)
    inbox.advance(minutes=10)
    assert (busy.status, busy.attempts) == ("dead_letter", 2)
    assert odd.row.held["shows"] == "an odd order"


# -- ready-made handlers, the kit


def test_ready_made_handlers_hand_on(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    services = {name: Aws(name) for name in ("events", "lambda", "stepfunctions")}
    made = Mock(create_client=lambda name, **_: services[name].client)
    monkeypatch.setattr(operation, "session", lambda: made)
    services["events"].answers("put_events", {"FailedEntryCount": 0, "Entries": [{"EventId": "e"}]})
    services["lambda"].answers("invoke", {"StatusCode": 200, "Payload": payload(b"{}")})
    machine = "arn:aws:states:eu-west-1:111122223333:execution:orders:e"
    started = {"executionArn": machine, "startDate": "2026-11-21"}
    services["stepfunctions"].answers("start_execution", started)
    chapter = opened("forwarding")
    billing = Fake(sign="signing")
    inbox = chapter.inbox(billing=billing)

    names = ("shop.forward", "shop.bus", "shop.invoke", "shop.start")
    runs = [chapter.run(inbox, name, event_type="paid") for name in names]

    assert {run.status for run in runs} == {"done"}, runs
    headers = billing.requests[0].headers
    told = ("source", "event-id", "event-type", "received-at", "attempt")
    for name in (f"inbox-{each}" for each in told):
        assert name in headers
        assert f"`{name}`" in chapter.section.text


def test_the_tests_of_the_page_pass(opened: Open) -> None:
    chapter = opened("testing")
    tests = [each for name, each in vars(chapter.module).items() if name.startswith("test_")]
    assert len(tests) == 4
    for test in tests:
        inbox = Inbox(chapter.module.shop, destinations={"crm": Fake()})
        given = {"inbox": inbox, "fake": inbox.destinations.__getitem__}
        test(**{name: given[name] for name in inspect.signature(test).parameters})
        inbox.verify()
    chapter.ran |= {"shop.order", "shop.refund"}
