"""The code of docs/handlers.md runs, and does what the page says of it."""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tests.readme.handlers_page import Chapter, built, sections
from tests.unit.ready.aws import Aws, payload
from webhook_inbox import configuration
from webhook_inbox.adapters import targets
from webhook_inbox.testing import Fake, Request, Run

Open = Callable[[str], Chapter]


@pytest.fixture
def opened() -> Iterator[Open]:
    """Opens chapters; every handler of each has to be run in the test."""
    chapters: list[Chapter] = []

    def open_(title: str) -> Chapter:
        section = sections()[title]
        chapters.append(Chapter(section, built(section)))
        return chapters[-1]

    yield open_
    for chapter in chapters:
        assert chapter.declared == chapter.ran, f"not run of {chapter.section.title!r}"


def test_every_section_with_code_is_played() -> None:
    played = set(re.findall(r'opened\("([^"]+)"\)', Path(__file__).read_text(encoding="utf-8")))
    assert played == {title for title, section in sections().items() if section.python}


@pytest.mark.parametrize("title", [each.title for each in sections().values() if each.toml])
def test_every_table_of_inbox_toml_can_be_used(title: str, tmp_path: Path) -> None:
    file = tmp_path / "inbox.toml"
    file.write_text(sections()[title].inbox_toml, encoding="utf-8")

    loaded = configuration.load(file, stage="dev")

    assert loaded.sources or loaded.destinations


def test_handlers_are_declared(opened: Open) -> None:
    chapter = opened("Declaring")
    inbox = chapter.inbox()
    run = chapter.run(inbox, "shop.record", {"order": "o-1"}, event_type="order.paid")
    kept = chapter.run(inbox, "audit.everything", event_type="anything")

    assert (run.effects["record"].result, kept.effects["keep"].result) == (
        {"order": "o-1"},
        "anything",
    )


def test_an_event_is_read(opened: Open) -> None:
    chapter = opened("event")
    run = chapter.run(chapter.inbox(), "shop.read", {"id": "e-1", "order": "o-1", "cents": 5})
    assert run.effects["seen"].result == ["e-1", "paid", "o-1", 5]

    other = chapter.run(chapter.inbox(), "shop.read", {"cents": 5})
    assert other.error.startswith("permanent: the body is no Order")


def test_a_context_is_used(opened: Open) -> None:
    chapter = opened("ctx")
    maps = chapter.fake("maps")
    run = chapter.run(chapter.inbox(maps=maps, secrets={"maps": "word"}), "shop.locate")

    assert run.effects["located"].result == ["shop.locate", 1, 200]
    [request] = maps.requests
    assert (request.path, request.headers["x-key"]) == ("/v1/find", "word")


# -- effects


def test_two_events_of_one_payment_make_one_order(opened: Open) -> None:
    chapter = opened("effects")
    crm = Fake()
    inbox = chapter.inbox(crm=crm, printer=Fake())
    paid = {"payment": "p-7", "cents": 100}

    first = chapter.run(inbox, "shop.order", {**paid, "id": "evt-1"})
    second = chapter.run(inbox, "shop.order", {**paid, "id": "evt-2"}, event_type="paid.again")
    other = chapter.run(inbox, "shop.order", {**paid, "cents": 200})

    assert [run.status for run in (first, second, other)] == ["done", "done", "held"]
    assert first.effects["told"].result == second.effects["told"].result == "crm-1"
    assert first.effects["order"].key == "order:payment:p-7" == crm.requests[0].key
    assert len(crm.requests) == 1
    _play_the_rest_of_effects(chapter)


def _play_the_rest_of_effects(chapter: Chapter) -> None:
    labels: list[dict[str, str]] = []

    def answer(request: Request) -> Any:
        if request.method == "GET":
            return {"labels": labels}
        labels.append(request.json)
        return labels[-1]

    printer = Fake(idempotency=False).handles(answer)
    inbox = chapter.inbox(printer=printer)
    printed = chapter.run(inbox, "shop.print_label", crash_before_commit="label").settle()
    assert (printed.status, len(labels)) == ("done", 1)
    assert printed.effects["label"].result == labels[0]

    held = chapter.run(inbox, "shop.refund", {"cents": 5})
    assert (held.status, held.row.held["subject"]) == ("held", "effect:refund")
    assert held.approve().effects["refund"].result == {"cents": 5}


# -- ctx.http and destinations


def test_a_call_carries_what_its_table_says(opened: Open) -> None:
    chapter = opened("ctx.http")
    crm = chapter.fake("crm")
    run = chapter.run(chapter.inbox(crm=crm), "shop.note", {"texts": ["a", "b"]})

    assert sorted(run.effects) == ["POST /notes", "note:0", "note:1"]
    named, first, second, past = crm.requests
    assert named.path == "/v2/notes"
    assert named.key == named.headers["x-request-key"] == named.headers["webhook-id"]
    assert len({named.key, first.key, second.key}) == 3
    assert (past.key, past.path) == ("", "/v2/seen")
    assert named.headers["authorization"] == "Bearer testing-crm-api"
    assert {"webhook-timestamp", "webhook-signature", "traceparent"} <= named.headers.keys()
    assert named.headers["x-agent-call-chain"] == "shop.note"

    crm.answers(409, done=True)
    assert chapter.run(chapter.inbox(crm=crm), "shop.note").status == "done"


def test_a_destination_that_fails_is_left_alone_and_tried_by_one(opened: Open) -> None:
    chapter = opened("destinations")
    crm = chapter.fake("crm").answers(500, times=None)
    inbox = chapter.inbox(crm=crm)
    runs = [chapter.run(inbox, "shop.note") for _ in range(4)]

    assert [run.status for run in runs] == ["failed", "failed", "deferred", "deferred"]
    assert (runs[2].error, runs[2].attempts) == ("destination crm: its circuit is open", 0)
    assert len(crm.requests) == 2
    crm.recovers()
    inbox.settle()
    assert ({run.status for run in runs}, len(crm.done)) == ({"done"}, 4)


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
    runs: list[Run] = []
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
    chapter = opened("long work")
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
    monkeypatch.setattr(targets, "session", lambda: made)
    services["events"].answers("put_events", {"FailedEntryCount": 0, "Entries": [{"EventId": "e"}]})
    services["lambda"].answers("invoke", {"StatusCode": 200, "Payload": payload(b"{}")})
    machine = "arn:aws:states:eu-west-1:111122223333:execution:orders:e"
    started = {"executionArn": machine, "startDate": "2026-11-21"}
    services["stepfunctions"].answers("start_execution", started)
    chapter = opened("ready-made handlers")
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
    assert len(tests) == 2
    for test in tests:
        test()
    chapter.ran.add("shop.order")
