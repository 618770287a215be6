"""Every file of `events/` is accepted by the function whose name its directory bears."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.functions.bundles import NAMES
from tests.functions.inbox import SECRET, Inbox
from webhook_inbox.replay.request import ReplayRequest

EVENTS = Path(__file__).parents[2] / "events"


def files(function: str) -> pytest.MarkDecorator:
    paths = sorted((EVENTS / function).glob("*.json"))
    assert paths
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.stem)


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_the_directories_mirror_the_functions() -> None:
    assert sorted(path.name for path in EVENTS.iterdir()) == sorted(NAMES)


def test_an_unsigned_request_shows_that_ingest_is_alive_and_has_its_secret(inbox: Inbox) -> None:
    answer = inbox.request(read(EVENTS / "ingest" / "http_api__unsigned.json"))

    assert (answer.status, answer.json["reason"]) == (401, "missing-signature")


@files("replay")
def test_a_replay_payload_is_read(path: Path) -> None:
    request = ReplayRequest.read(read(path))

    assert request.dry_run or request.reason, "who replays says why"
    assert request.dry_run or request.requested_by


@files("replay")
def test_a_replay_payload_is_carried_out(inbox: Inbox, path: Path) -> None:
    report = inbox.invoke("replay", read(path), remaining=300)

    assert report["counts"] in ({}, {"missing": 1})


def test_the_forced_replay_replays_what_is_done(inbox: Inbox) -> None:
    body = (EVENTS / "ingest/stripe/invoice.payment_succeeded__subscription.json").read_bytes()
    inbox.post("stripe", body, inbox.sign("stripe", body))
    inbox.work()

    unforced = inbox.invoke("replay", read(EVENTS / "replay/event__one_by_id.json"))
    forced = inbox.invoke("replay", read(EVENTS / "replay/event__forced.json"))

    assert (unforced["counts"], forced["counts"]) == ({"finished": 1}, {"replayed": 1})


@files("processor")
def test_a_batch_is_processed(inbox: Inbox, path: Path) -> None:
    body = (EVENTS / "ingest/github/issues.opened__label.json").read_bytes()
    event_id = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
    headers = inbox.sign("github", body, event_id=event_id, event_type="issues.opened")
    assert inbox.post("github", body, headers).status == 202
    batch = read(path)

    answer = inbox.invoke("processor", batch)

    ours = path.stem != "message__not_ours"
    expected = [] if ours else [{"itemIdentifier": batch["Records"][0]["messageId"]}]
    assert answer == {"batchItemFailures": expected}


def test_the_schedule_makes_a_pass(inbox: Inbox) -> None:
    report = inbox.invoke("reconciler", read(EVENTS / "reconciler" / "schedule.json"))

    assert report["complete"]


def test_no_sample_holds_a_secret() -> None:
    for path in EVENTS.rglob("*.json"):
        assert SECRET not in path.read_text()
