"""The code of docs/handlers.md runs, and does what the page says of it."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.docs.handlers_page import Chapter, Open, sections
from tests.docs.test_handlers_tour import CHAPTER
from webhook_inbox.configuration import inbox_toml
from webhook_inbox.testing import Fake, Request


def test_every_section_with_code_is_played() -> None:
    text = "".join(file.read_text(encoding="utf-8") for file in Path(__file__).parent.glob("*.py"))
    played = set(re.findall(r'opened\("([^"]+)"\)', text))
    with_code = {title for title, section in sections().items() if section.python}
    assert played | {CHAPTER} == with_code  # tests/docs/test_handlers_tour.py runs the tour


@pytest.mark.parametrize("title", [each.title for each in sections().values() if each.toml])
def test_every_table_of_inbox_toml_can_be_used(title: str, tmp_path: Path) -> None:
    file = tmp_path / "inbox.toml"
    file.write_text(sections()[title].inbox_toml, encoding="utf-8")

    loaded = inbox_toml.load(file, stage="dev")

    assert loaded.sources or loaded.destinations or loaded.lanes


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
    assert other.error.startswith("permanent: the body is not a valid Order")


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

    # The second failure opens the circuit.
    assert [run.status for run in runs] == ["failed", "deferred", "deferred", "deferred"]
    assert [run.attempts for run in runs] == [1, 0, 0, 0]
    assert (runs[2].error, runs[2].attempts) == ("destination crm: its circuit is open", 0)
    assert len(crm.requests) == 2
    crm.recovers()
    inbox.settle()
    assert ({run.status for run in runs}, len(crm.done)) == ({"done"}, 4)
    _play_limits(chapter)


def _play_limits(chapter: Chapter) -> None:
    table = tomllib.loads(chapter.section.inbox_toml)["destinations"]["crm"]
    for on_limit, status in (("drop", "skipped"), ("error", "failed"), ("queue", "deferred")):
        inbox = chapter.inbox(crm=Fake(**{**table, "rate": "1/m", "on_limit": on_limit}))
        first, second = (chapter.run(inbox, "shop.note") for _ in range(2))
        assert [first.status, second.status] == ["done", status]

    inbox = chapter.inbox(crm=chapter.fake("crm").answers(429, headers={"Retry-After": "300"}))
    limited, spared = (chapter.run(inbox, "shop.note") for _ in range(2))
    assert (limited.status, limited.effects["POST /notes"].status) == ("failed", "failed")
    assert (spared.status, spared.attempts) == ("deferred", 0)
    assert spared.error == "destination crm: paused after a 429"
