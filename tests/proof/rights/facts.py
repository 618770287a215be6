"""The outcomes of each function with all its rights; they are the same in each run."""

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.e2e.http_call import call
from tests.e2e.inquiry import fresh
from tests.e2e.test_reconciled import accept_without_sending, start_over
from tests.proof.rights.inbox import BRIEF, RightsInbox
from webhook_inbox.adapters.aws.s3 import S3Blobs
from webhook_inbox.domain.digest import digest_of
from webhook_inbox.domain.model import StoredEvent
from webhook_inbox.domain.ports import Change
from webhook_inbox.domain.timestamps import to_ms, to_seconds
from webhook_inbox.ingest.rejected import partition
from webhook_inbox.ledger import payloads
from webhook_inbox.ledger.schema import RECEIVED_SHARDS, event_to, run_key
from webhook_inbox.queue.line import ENTRY
from webhook_inbox.reconciler import retention

LARGE = random.Random(3).randbytes(48 * 1024).hex()
HANDLERS = {"default": "choir.plain", "fragile": "choir.numbered", "accounts": "choir.ordered"}
Facts = dict[str, Any]


def facts_of(inbox: RightsInbox, function: str) -> Facts:
    """Lets a function do all that it does, and returns the outcomes."""
    kind, _, lane = function.partition(" ")
    if kind == "processor":
        return of_processor(inbox, lane)
    return {"ingest": of_ingest, "replay": of_replay, "reconciler": of_reconciler}[kind](inbox)


def of_ingest(inbox: RightsInbox) -> Facts:
    """New, duplicate, large and forged deliveries."""
    first = fresh()
    facts: Facts = {
        "new": _post(inbox, "task", {}, first),
        "duplicate": _post(inbox, "task", {}, first),
        "large": _post(inbox, "task", {"noise": LARGE}, fresh()),
    }
    before = _kept(inbox)
    facts["forged"] = _post(inbox, "task", {"noise": LARGE}, fresh(), secret="forged")
    facts["kept"] = _kept(inbox) - before
    return facts


def _post(
    inbox: RightsInbox, type_: str, wish: Any, event_id: str, *, secret: str | None = None
) -> tuple[int, str]:
    body = json.dumps(wish).encode()
    headers = inbox.signed("lab", type_, body, event_id=event_id, secret=secret)
    url = f"{inbox.front_url}/webhooks/lab"
    answer = call(url, "POST", body=body, headers=headers, trust=inbox.trust)
    return answer.status, str(answer.json.get("status", ""))


def _kept(inbox: RightsInbox) -> int:
    return len(inbox.rows(partition("lab")))


def of_processor(inbox: RightsInbox, lane: str) -> Facts:
    """Runs that end, wait, fail, come early, or die, and messages of others."""
    key = fresh()
    first, third, second = fresh(), fresh(), fresh()
    facts: Facts = {
        "done": _serve(inbox, lane, first, "sing", key=key, number=1, noise=LARGE),
        "again": _prolonged(inbox, lane, first),
        "early": _serve(inbox, lane, third, "sing", key=key, number=3),
        "second": _serve(inbox, lane, second, "sing", key=key, number=2),
        "third": _next(inbox, lane, third),
        "completed": _completed(inbox, lane),
        "fails": _serve(inbox, lane, fresh(), "raise", key=fresh(), number=1),
        "dies": _serve(inbox, lane, fresh(), "refuse", key=fresh(), number=1),
        "foreign": _foreign(inbox, lane),
        "ordering": len(inbox.rows(f"ordering_key#{HANDLERS[lane]}#{key}")),
    }
    if lane == "default":
        facts["batch"] = _split(inbox)
    return facts


def _serve(
    inbox: RightsInbox, lane: str, event_id: str, wish: str, **more: Any
) -> tuple[str, str, int]:
    inbox.deliver("lab", f"sing.{lane}", {"wish": wish, **more}, event_id=event_id)
    return _next(inbox, lane, event_id)


def _next(inbox: RightsInbox, lane: str, event_id: str) -> tuple[str, str, int]:
    """Serves an event's message; returns what became of message and run."""
    served = inbox.serve(lane, event_id)
    run = inbox.runs("lab", event_id).get(HANDLERS[lane])
    return (served, str(run.status), run.attempt_count) if run else (served, "", 0)


def _foreign(inbox: RightsInbox, lane: str) -> str:
    """Serves a message that names no run, which SQS is to move to the DLQ."""
    text = fresh()
    _post_message(inbox, inbox.queue(lane), text, ordered=lane == "accounts")
    return inbox.serve(lane, text)


def _post_message(inbox: RightsInbox, url: str, body: str, *, ordered: bool) -> None:
    order = {"MessageGroupId": fresh(), "MessageDeduplicationId": fresh()} if ordered else {}
    inbox.client("sqs").send_message(QueueUrl=url, MessageBody=body, **order)


def _prolonged(inbox: RightsInbox, lane: str, event_id: str) -> bool:
    """Tells whether a copy of the message of a done run, of an older event, prolongs its life."""
    key = run_key("lab", event_id, HANDLERS[lane])
    soon = to_seconds(datetime.now(UTC) + timedelta(days=1))
    inbox.table.update(key, Change(set={"expires_at": soon}))
    _send(inbox, lane, event_id)
    inbox.serve(lane, event_id)
    row = inbox.table.get(key)
    return row is not None and row["expires_at"] > soon


def _send(inbox: RightsInbox, lane: str, event_id: str, *, dead: bool = False) -> None:
    reference = {
        "v": 1,
        "source": "lab",
        "event_id": event_id,
        "handler": HANDLERS[lane],
        "generation": 0,
    }
    url = inbox.dlq(lane) if dead else inbox.queue(lane)
    _post_message(inbox, url, json.dumps(reference), ordered=lane == "accounts")


def _completed(inbox: RightsInbox, lane: str) -> Facts:
    """A job that waits for its completion, one behind it, and the completion."""
    event_id, behind, key = fresh(), fresh(), fresh()
    facts: Facts = {
        "waits": _serve(inbox, lane, event_id, "wait", key=key, number=1),
        "behind": _serve(inbox, lane, behind, "sing", key=key, number=2),
    }
    job = inbox.effects(event_id).get(f"print:{HANDLERS[lane]}:lab:{event_id}")
    if job is None:
        return facts
    url, body = inbox.front_url + job["body"]["callback"], b'{"result": 1}'
    headers = {"Content-Type": "application/json"}
    facts["told"] = call(url, "POST", body=body, headers=headers, trust=inbox.trust).status
    facts["resumed"] = _next(inbox, lane, event_id)
    facts["after it"] = _next(inbox, lane, behind)
    facts["line"] = len(inbox.rows(f"ordering_key#{HANDLERS[lane]}#{key}"))
    return facts


def _split(inbox: RightsInbox) -> Facts:
    """A batch of two items for two lanes, one of them large."""
    items = [
        {"sg_event_id": fresh(), "event": "bounce", "timestamp": 1_767_225_600, "noise": noise}
        for noise in ("", LARGE)
    ]
    batch = inbox.send(json.dumps(items).encode()).json["event_id"]
    served = inbox.serve("default", batch)
    return {
        "served": served,
        "stored": [inbox.overview("mail", item["sg_event_id"]) is not None for item in items],
    }


def of_replay(inbox: RightsInbox) -> Facts:
    """Searches of each kind, a list of events, an audit row, and both kinds of dead letters."""
    lost, named = fresh(), fresh()
    for event_id in (lost, named):
        _serve(inbox, "default", event_id, "refuse", key=fresh(), number=1, noise=LARGE)
    _fill_dlq(inbox)
    select = {"source": "lab", "rate_per_second": 500}
    search = {**select, "error_contains": lost, "dry_run": True}
    window = {"received_after": (datetime.now(UTC) - timedelta(hours=1)).isoformat()}
    statuses = {"status": ["dead_letter", "done"], **window}
    by_time = inbox.call_function("replay", {**search, **statuses})
    by_body = inbox.call_function("replay", {**search, "where": "noise"})
    found = inbox.call_function("replay", {**select, "error_contains": lost})
    facts: Facts = {
        "search": _counted(found),
        "by time": _counted(by_time),
        "by body": _counted(by_body),
        "foreign letter": _letter_is_visible(inbox),
        "named": _counted(inbox.call_function("replay", {**select, "event_ids": [named]})),
    }
    sent = "".join(inbox.waiting("default"))
    facts["sent"] = [event_id in sent for event_id in (lost, named)]
    return facts


def _fill_dlq(inbox: RightsInbox) -> None:
    """Puts a copy of a done run's message and a foreign letter into an empty DLQ."""
    inbox.client("sqs").purge_queue(QueueUrl=inbox.dlq())
    _send(inbox, "default", inbox.done, dead=True)
    inbox.client("sqs").send_message(QueueUrl=inbox.dlq(), MessageBody="foreign")


def _letter_is_visible(inbox: RightsInbox) -> bool:
    found = inbox.client("sqs").receive_message(QueueUrl=inbox.dlq(), VisibilityTimeout=0)
    return bool(found.get("Messages"))


def _counted(report: Any) -> Any:
    if not isinstance(report, dict):
        return report
    return {key: report.get(key) for key in ("counts", "dlq_removed", "errors", "complete")}


def of_reconciler(inbox: RightsInbox) -> Facts:
    """Lost messages, a backlog, an expired run of a key, dead letters, and a past retention."""
    never_sent, lost, key = accept_without_sending(inbox, "task"), fresh(), fresh()
    inbox.lose_pending("lab", lost, "lab.work")
    backlogged = _backlogged(inbox)
    _fill_dlq(inbox)
    line = _expired_in_line(inbox, key)
    start_over(inbox)
    bodies = S3Blobs(inbox.client("s3"), inbox.outputs["BucketName"])
    prefix = _past_retention(inbox, bodies)
    report = inbox.call_function("reconciler", {})
    if report == "error":
        return {"pass": report}
    return {
        "complete": (report["complete"], report["errors"]),
        "adopted": "lab.work" in inbox.runs("lab", never_sent),
        "resent": [_resends(inbox, lost, "lab.work"), _resends(inbox, *backlogged)],
        "sent": lost in "".join(inbox.waiting("default")),
        "dlq": (report["counts"].get("dlq_removed"), _letter_is_visible(inbox)),
        "line": len(inbox.rows(line)),
        "erased": bodies.list_keys(prefix) == [],
    }


def _past_retention(inbox: RightsInbox, bodies: S3Blobs) -> str:
    """Stores an event whose retention has passed; returns the prefix of its object."""
    received_at, body = datetime.now(UTC) - timedelta(hours=25), LARGE.encode()
    event = StoredEvent(
        source=BRIEF,
        event_id=fresh(),
        type="push",
        received_at=received_at,
        body=body,
        fingerprint=digest_of(body),
        headers={},
        runs=(),
    )
    inbox.table.put({**event_to(event), **payloads.pack_event(event).store(bodies)})
    # A first look would read the index of 35 days.
    before = dict.fromkeys(map(str, range(RECEIVED_SHARDS)), to_ms(received_at) - 1)
    inbox.table.update(retention.CURSORS, Change(set={"positions": {f"{BRIEF}/0": before}}))
    return payloads.event_prefix(BRIEF, event.event_id)


def _resends(inbox: RightsInbox, event_id: str, handler: str) -> int:
    row = inbox.table.get(run_key("lab", event_id, handler))
    return int((row or {}).get("resends", 0))


def _backlogged(inbox: RightsInbox) -> tuple[str, str]:
    """Makes a run of a lane whose queue has a message older than the run; returns its key."""
    event_id, handler = fresh(), HANDLERS["fragile"]
    inbox.lose_pending("lab", event_id, handler)
    inbox.client("sqs").purge_queue(QueueUrl=inbox.queue("fragile"))
    _post_message(inbox, inbox.queue("fragile"), "old", ordered=False)
    return event_id, handler


def _expired_in_line(inbox: RightsInbox, key: str) -> str:
    """Makes a run that has waited in the line of an ordering key until its event's end."""
    event_id, line = fresh(), f"ordering_key#{HANDLERS['accounts']}#{key}"
    inbox.lose_pending("lab", event_id, HANDLERS["accounts"])
    run = run_key("lab", event_id, HANDLERS["accounts"])
    tomorrow = to_seconds(datetime.now(UTC) + timedelta(days=1))
    waited = {"ordering_key": key, "place": 1, "expires_at": tomorrow}
    inbox.table.update(run, Change(set=waited))
    entry = {"source": "lab", "event_id": event_id, "expires_at": tomorrow}
    inbox.table.put({"pk": line, "sk": f"{ENTRY}{1:012}", **entry})
    return line
