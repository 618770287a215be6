"""A batch over HTTP becomes an event for each item, with the rights of the functions' own roles."""

import json
import random
from typing import Any

from tests.e2e.inquiry import fresh
from tests.e2e.mail_inbox import MailInbox
from webhook_inbox.domain.manifest import SPLIT


def item(type_: str = "delivered", **more: Any) -> dict[str, Any]:
    return {"sg_event_id": fresh(), "event": type_, "timestamp": 1_767_225_600, **more}


def test_a_batch_is_accepted_and_each_of_its_items_is_done(guarded: MailInbox) -> None:
    noise = random.Random(2).randbytes(24_000).hex()
    delivered, bounced, large = item(), item("bounce", cost=0.10), item(noise=noise)
    unwanted = item("open")
    body = json.dumps([delivered, bounced, unwanted, large], indent=1).encode()

    answer = guarded.send(body)

    # After a lost answer the retry of an accepted delivery is a duplicate.
    assert answer.json["status"] == "accepted" or answer.sendings > 1, answer
    assert answer.status in {200, 202}
    batch = answer.json["event_id"]
    [split] = guarded.settled("mail", batch).runs
    assert (split.handler, split.attempt_count) == (SPLIT, 1)
    assert split.progress == {"of": 4, "counts": {"accepted": 3, "ignored": 1}}
    for sent, runs in ((delivered, 1), (bounced, 2), (large, 1)):
        event_id = sent["sg_event_id"]
        found = guarded.settled("mail", event_id)
        assert found.event.type == sent["event"]
        assert found.event.body in body
        assert json.loads(found.event.body) == sent
        assert [run.attempt_count for run in found.runs] == [1] * runs
        effects = guarded.effects(event_id).values()
        assert [effect["requests"] for effect in effects] == [1] * runs
    assert guarded.overview("mail", unwanted["sg_event_id"]) is None

    again = guarded.send(body)

    assert (again.status, again.json["status"]) == (200, "duplicate")


def test_a_batch_that_is_delivered_five_times_at_once_is_split_once(guarded: MailInbox) -> None:
    items = [item() for _ in range(12)]
    body = json.dumps(items).encode()

    answers = guarded.at_once(5, lambda: guarded.send(body))

    assert {answer.status for answer in answers} <= {200, 202}
    assert len({answer.json["event_id"] for answer in answers}) == 1
    for sent in items:
        found = guarded.settled("mail", sent["sg_event_id"])
        assert [run.attempt_count for run in found.runs] == [1]
        (effect,) = guarded.effects(sent["sg_event_id"]).values()
        assert effect["requests"] == 1


def test_replaying_the_split_run_repeats_no_item(guarded: MailInbox) -> None:
    sent = item()
    batch = guarded.send(json.dumps([sent]).encode()).json["event_id"]
    before = guarded.settled("mail", sent["sg_event_id"])
    guarded.settled("mail", batch)

    report = guarded.replay(
        source="mail", event_ids=[batch], handler=SPLIT, force=True, reason="seen"
    )

    assert report["counts"] == {"replayed": 1}
    [split] = guarded.settled("mail", batch).runs
    assert split.progress["counts"] == {"duplicate": 1}
    assert guarded.overview("mail", sent["sg_event_id"]) == before
