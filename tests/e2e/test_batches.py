"""A batch over HTTP becomes an event for each item, with the rights of the functions' own roles."""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.guarded_inbox import GuardedInbox
from tests.e2e.http_call import Answer
from tests.e2e.inquiry import FRAGILE, fresh
from webhook_inbox import providers
from webhook_inbox.manifest import SPLIT
from webhook_inbox.recipe import Sample
from webhook_inbox.registration import registered_modules

SOURCE = '\n[sources.mail]\nprovider = "sendgrid"\ntypes = ["delivered", "bounce"]\n'
HANDLERS = f"""
from handlers._downstream import post
from webhook_inbox.routing import Router

mail = Router("mail")


@mail.on("*")
def note(event, ctx):
    post(ctx, "/mails", effect="note", body={{"event": event.id}})


@mail.on("bounce", lane="{FRAGILE}")
def suppress(event, ctx):
    post(ctx, "/suppressed", effect="suppress", body={{"event": event.id}})
"""


class MailInbox(GuardedInbox):
    """A deployed inbox with a source of batches, signed as SendGrid does."""

    private_key: str

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        settings, handlers = self.functions / "inbox.toml", self.functions / "handlers"
        settings.write_text(settings.read_text() + SOURCE)
        modules = (*registered_modules(self.functions), "mail")
        (handlers / "mail.py").write_text(HANDLERS)
        (handlers / "__init__.py").write_text(f"MODULES = {modules!r}\n")

    def enrol(self) -> None:
        """Gives the source a public key, and these tests the private one."""
        pair = providers.load(self.manifest.sources["mail"]).pair
        assert pair is not None
        self.private_key, public = pair()
        name = self.outputs["SecretPrefix"] + "mail"
        self.client("secretsmanager").put_secret_value(SecretId=name, SecretString=public)

    def send(self, body: bytes) -> Answer:
        """Posts a batch."""
        recipe = providers.load(self.manifest.sources["mail"])
        sent = recipe.send(Sample("", "", body), self.private_key, datetime.now(UTC))
        return self.post("mail", sent.body, dict(sent.headers))


@pytest.fixture(scope="module")
def mailing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MailInbox]:
    with MailInbox(tmp_path_factory.mktemp("mailing")) as running:
        running.enrol()
        yield running


def item(type_: str = "delivered", **more: Any) -> dict[str, Any]:
    return {"sg_event_id": fresh(), "event": type_, "timestamp": 1_767_225_600, **more}


def test_a_batch_is_accepted_and_each_of_its_items_is_done(mailing: MailInbox) -> None:
    noise = random.Random(2).randbytes(24_000).hex()
    delivered, bounced, large = item(), item("bounce", cost=0.10), item(noise=noise)
    unwanted = item("open")
    body = json.dumps([delivered, bounced, unwanted, large], indent=1).encode()

    answer = mailing.send(body)

    assert (answer.status, answer.json["status"]) == (202, "accepted"), answer
    batch = answer.json["event_id"]
    [split] = mailing.settled("mail", batch).runs
    assert (split.handler, split.attempt_count) == (SPLIT, 1)
    assert split.progress == {"of": 4, "counts": {"accepted": 3, "ignored": 1}}
    for sent, runs in ((delivered, 1), (bounced, 2), (large, 1)):
        event_id = sent["sg_event_id"]
        found = mailing.settled("mail", event_id)
        assert found.event.type == sent["event"]
        assert found.event.body in body
        assert json.loads(found.event.body) == sent
        assert [run.attempt_count for run in found.runs] == [1] * runs
        effects = mailing.effects(event_id).values()
        assert [effect["requests"] for effect in effects] == [1] * runs
    assert mailing.overview("mail", unwanted["sg_event_id"]) is None

    again = mailing.send(body)

    assert (again.status, again.json["status"]) == (200, "duplicate")


def test_a_batch_that_is_delivered_five_times_at_once_is_split_once(mailing: MailInbox) -> None:
    items = [item() for _ in range(12)]
    body = json.dumps(items).encode()

    answers = mailing.at_once(5, lambda: mailing.send(body))

    assert {answer.status for answer in answers} <= {200, 202}
    assert len({answer.json["event_id"] for answer in answers}) == 1
    for sent in items:
        found = mailing.settled("mail", sent["sg_event_id"])
        assert [run.attempt_count for run in found.runs] == [1]
        (effect,) = mailing.effects(sent["sg_event_id"]).values()
        assert effect["requests"] == 1


def test_replaying_the_split_run_repeats_no_item(mailing: MailInbox) -> None:
    sent = item()
    batch = mailing.send(json.dumps([sent]).encode()).json["event_id"]
    before = mailing.settled("mail", sent["sg_event_id"])
    mailing.settled("mail", batch)

    report = mailing.replay(source="mail", event_ids=[batch], handler=SPLIT, force=True)

    assert report["counts"] == {"replayed": 1}
    [split] = mailing.settled("mail", batch).runs
    assert split.progress["counts"] == {"duplicate": 1}
    assert mailing.overview("mail", sent["sg_event_id"]) == before
