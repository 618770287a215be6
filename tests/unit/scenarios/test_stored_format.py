"""Rows and messages that version 1 stored are read by today's code and mean the same."""

import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import timedelta
from functools import cache
from typing import Any

import pytest

from tests.unit.scenarios.stored_format import (
    BILL,
    FULFIL,
    LONG_ID,
    MESSAGES,
    OFFERED,
    RESULT,
    SHIP,
    VERSION,
    Scenario,
    accept,
    body_of,
    load,
    new_world,
    offer,
    read,
)
from tests.unit.support.holding import deciding
from tests.unit.support.people import person
from tests.unit.support.world import World
from webhook_inbox import Approval
from webhook_inbox.domain.errors import Rejected
from webhook_inbox.domain.model import ApprovalOutcome, EventStatus, Run, Status
from webhook_inbox.domain.ports import Item, Outgoing
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.handlers.approvals.hold import ApprovalRequest, holds
from webhook_inbox.handlers.effects.journal import EffectState
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.ingest.rejected import RejectedFilter, find
from webhook_inbox.ledger import pauses, payloads, schema
from webhook_inbox.queue.message import RunMessage

CHANGED = "the stored format changed: add a migration and freeze version 2"
# Maps whose names are data; the others have fixed names.
DATA = {
    "announced",
    "approvals",
    "decisions",
    "headers",
    "held.unannounced",
    "ordering_keys",
    "request",
    "reservations",
}

STATUSES = {
    "bill-dead": EventStatus.DEAD_LETTER,
    "bill-next": EventStatus.DEFERRED,
    "bill-pending": EventStatus.PENDING,
    "bulk-1": EventStatus.DONE,
    "bulk-2": EventStatus.DEFERRED,
    "call-1": EventStatus.DEFERRED,
    "call-2": EventStatus.DEFERRED,
    "count-1": EventStatus.DONE,
    "count-3": EventStatus.DEFERRED,
    "evt-approved": EventStatus.PENDING,
    "evt-asked": EventStatus.HELD,
    "evt-dead": EventStatus.DEAD_LETTER,
    "evt-done": EventStatus.DONE,
    "evt-failed": EventStatus.FAILED,
    "evt-fresh": EventStatus.ACCEPTED,
    "evt-held": EventStatus.HELD,
    "evt-large": EventStatus.DONE,
    schema.dedupe_key(LONG_ID): EventStatus.DONE,
    "evt-limited": EventStatus.FAILED,
    "evt-pending": EventStatus.PENDING,
    "evt-processing": EventStatus.PROCESSING,
    "evt-rendered": EventStatus.DONE,
    "evt-shared": EventStatus.DONE,
    "evt-skipped": EventStatus.SKIPPED,
    "evt-waiting": EventStatus.DEFERRED,
    "evt-zlib": EventStatus.DONE,
    "export-1": EventStatus.DEFERRED,
    "gh-1": EventStatus.DONE,
    "gh-copy": EventStatus.HELD,
    "ship-fresh": EventStatus.ACCEPTED,
    "ship-keyless": EventStatus.ACCEPTED,
    "ship-pending": EventStatus.PENDING,
    "sync-1": EventStatus.DONE,
}


@cache
def frozen() -> Mapping[str, Any]:
    """Returns the frozen content."""
    return load()


@cache
def written_today() -> Mapping[str, Any]:
    """Returns what today's code stores in the same scenario."""
    return read(Scenario().frozen())


@pytest.fixture(params=["frozen", "earlier"])
def world(request: pytest.FixtureRequest) -> World:
    """Returns an inbox of today's code over the frozen rows, at the time of writing."""
    made = new_world(seed=1)
    made.clock.advance(seconds=(frozen()["written_at"] - to_ms(made.now)) / 1000)
    made.blobs.objects.update(frozen()["objects"])
    for row in frozen()["rows"]:
        is_earlier = request.param == "earlier" and row["sk"] == "event"
        made.table.put(earlier(row, made) if is_earlier else row)
    return made


def earlier(row: Item, world: World) -> Item:
    """Returns an event's row as it was before its hashes were bytes and its key had its name."""
    source, event_id = schema.identify(row["pk"])
    named = {"source": source, "event_id": event_id, "verified_with": 0}
    hashes = {
        name: row[name].hex() if name in row else ""
        for name in ("fingerprint", "signature_hash", "guard")
    }
    if row["body_encoding"] == "words1":
        body = zlib.compress(payloads.unpack(row, world.blobs))
        hashes |= {"body": body, "body_encoding": "zlib"}
    return {**row, **named, **hashes}


def send(world: World, *kinds: str) -> None:
    """Sends frozen messages of these kinds."""
    for message in frozen()["messages"]:
        if message["kind"] in kinds:
            sent = Outgoing(*(message[name] for name in ("body", "delay", "group", "dedup")))
            assert not world.queues[message["lane"]].send([sent])


def run_rows() -> list[Item]:
    return [row for row in frozen()["rows"] if row["sk"].startswith(schema.RUN_PREFIX)]


# -- the file is complete


def documented() -> dict[tuple[str, str], re.Pattern[str]]:
    """Returns the key patterns of the table in the schema's docstring."""
    table = (schema.__doc__ or "").split("\n    pk ", 1)[1].partition("\n\n")[0]
    found, pk = {}, ""
    for line in table.splitlines()[1:]:
        columns = re.fullmatch(r" {4}(\S+) {2,}(\S+) {2,}\S.*", line)
        assert columns, f"not a row of the schema's table: {line}"
        pk = pk if columns[1] == "same" else columns[1]
        text = re.escape(f"{pk}\n{columns[2]}")
        found[pk, columns[2]] = re.compile(re.sub(r"\\{.*?\\}", ".+", text))
    return found


def kind_of(row: Item) -> tuple[str, str]:
    """Returns the only documented pattern that a row's key matches."""
    key = f"{row['pk']}\n{row['sk']}"
    kinds = [kind for kind, pattern in documented().items() if pattern.fullmatch(key)]
    assert len(kinds) == 1, f"{key!r} matches {kinds}"
    return kinds[0]


@pytest.mark.parametrize("content", [frozen, written_today])
def test_there_is_a_row_of_every_documented_kind_and_of_no_other(content: Any) -> None:
    assert {kind_of(row) for row in content()["rows"]} == set(documented())


def test_there_is_a_run_of_every_status_and_an_effect_of_every_state() -> None:
    effects = {row["status"] for row in frozen()["rows"] if "idempotency_key" in row}
    assert {row["status"] for row in run_rows()} == set(Status)
    assert effects == set(EffectState)
    assert any(row.get("blocking") for row in run_rows())


def test_there_is_a_message_of_every_kind() -> None:
    assert frozen()["version"] == VERSION
    assert [message["kind"] for message in frozen()["messages"]] == list(MESSAGES)


# -- today's code writes the same


def paths(value: Any, at: str = "") -> Iterator[str]:
    """Yields the path and the type of every value in a row."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from paths(each, f"{at}.*" if at in DATA else f"{at}.{name}".lstrip("."))
    elif isinstance(value, list):
        for each in value:
            yield from paths(each, f"{at}[]")
    # Times in another unit have another number of digits.
    is_time = type(value) is int and value > 10**9
    yield f"{at}: {type(value).__name__}{len(str(value)) if is_time else ''}"


def formats(content: Mapping[str, Any]) -> dict[str, set[str]]:
    """Returns, by kind, the attributes that its rows have, and whether all of them do."""
    found: dict[str, list[set[str]]] = defaultdict(list)
    for row in content["rows"]:
        found[" ".join([*kind_of(row), str(row.get("status", ""))])].append(set(paths(row)))
    for message in content["messages"]:
        body = json.loads(message["body"])
        found[message["kind"]].append({*paths(message), *paths(body), f"v{body['v']}"})
    return {
        kind: {
            f"{path}, in {'all' if all(path in row for row in rows) else 'some'} rows"
            for path in set().union(*rows)
        }
        for kind, rows in found.items()
    }


def test_todays_code_writes_the_frozen_attributes_and_types() -> None:
    now, then = formats(written_today()), formats(frozen())
    changes = {
        kind: {"new": sorted(written - before), "gone": sorted(before - written)}
        for kind in now.keys() | then.keys()
        if (written := now.get(kind, set())) != (before := then.get(kind, set()))
    }
    assert not changes, f"{CHANGED}: {changes}"


def test_todays_code_addresses_messages_as_the_frozen_ones() -> None:
    now, then = written_today()["messages"], frozen()["messages"]
    for ours, theirs in zip(now, then, strict=True):
        assert ours == theirs, CHANGED


# -- rows are read


def test_every_event_has_its_status_its_effects_and_its_jobs(world: World) -> None:
    assert world.statuses() == STATUSES
    effects = {row["name"]: row["status"] for row in world.overview("evt-failed").effects}
    assert effects == {"charge": "failed"}
    (shared,) = world.overview("evt-shared").effects
    assert (shared["name"], shared["status"]) == ("transfer", "committed")
    (job,) = world.overview("evt-waiting").waits
    assert job["name"] == "render"


def test_every_attribute_of_an_event_is_read(world: World) -> None:
    for row in frozen()["rows"]:
        if row["sk"] == "event":
            stored = schema.event_from(row, b"")
            body = {name: row[name] for name in row if name.startswith("body")}
            assert schema.event_to(stored) | body == row


def test_every_attribute_of_a_run_is_read() -> None:
    names = {field.name for field in fields(Run)}
    for row in run_rows():
        run = schema.run_from(row)
        assert row.keys() - names == {"pk", "sk"} | {"due_bucket", "due_at"} & row.keys()
        assert run.in_due_index is ("due_bucket" in row)
        assert schema.key_of_run(run) == (row["pk"], row["sk"])
        if run.in_due_index:
            waits = run.parked or run.status is Status.HELD
            kind = schema.WAKE if waits else schema.WATCH
            assert schema.due_bucket(schema.key_of_run(run), kind) == row["due_bucket"]
        assert [schema.attempt_to(each) for each in run.attempts] == row.get("attempts", [])
        for name in row.keys() & names - {"attempts", "expires_at"}:
            value = getattr(run, name)
            value = to_ms(value) if hasattr(value, "tzinfo") else value
            assert (list(value) if isinstance(value, tuple) else value) == row[name]


def test_the_due_index_lists_every_run_that_it_listed(world: World) -> None:
    listed = {schema.key_of_run(run) for run in world.ledger.due_runs()}
    listed |= {schema.key_of_run(run) for _, run in world.ledger.dead_runs() if run}
    assert listed == {(row["pk"], row["sk"]) for row in run_rows() if "due_bucket" in row}


def test_events_are_listed_by_the_time_they_were_received_at(world: World) -> None:
    buckets = schema.received_buckets(world.now - timedelta(minutes=1), world.now)
    pages = [
        world.table.query_index(schema.BY_RECEIVED, bucket, low=0, high=to_ms(world.now))
        for bucket in buckets
    ]
    assert {schema.identify(row["pk"])[1] for page in pages for row in page.items} == set(STATUSES)


@pytest.mark.parametrize(
    ("event_id", "body"),
    [
        ("evt-done", {}),
        ("evt-zlib", {"text": "x" * 2000}),
    ],
)
def test_a_body_is_what_was_accepted(world: World, event_id: str, body: Any) -> None:
    assert world.body(event_id) == body_of(event_id, **body)


def test_a_body_in_the_bucket_is_what_was_accepted(world: World) -> None:
    assert json.loads(world.body("evt-large"))["id"] == "evt-large"
    (body_ref,) = (row["body_ref"] for row in frozen()["rows"] if "body_ref" in row)
    assert list(frozen()["objects"]) == [body_ref]


# -- deliveries


def test_a_known_event_is_a_duplicate_or_a_conflict(world: World) -> None:
    same = world.deliver("evt-done", body=body_of("evt-done"))
    other = world.deliver("evt-done", body=body_of("evt-done", other=1))
    assert same.outcome is IngestOutcome.DUPLICATE
    assert world.deliver(LONG_ID, body=body_of(LONG_ID)).outcome is IngestOutcome.DUPLICATE
    assert other.outcome is IngestOutcome.CONFLICT


def test_the_guard_recognises_a_body_under_another_id(world: World) -> None:
    assert world.deliver("gh-2", source="github").outcome is IngestOutcome.HELD


def test_a_copy_is_still_held_and_still_the_copy_of_its_first_event(world: World) -> None:
    event = world.overview("gh-copy", "github").event
    assert (event.identical_to, event.held) == ("gh-1", True)
    assert world.deliver("gh-copy", source="github").outcome is IngestOutcome.DUPLICATE
    (held,) = (hold for hold in holds(world.ledger) if hold.run.event_id == "gh-copy")
    assert held.subject == schema.IDENTICAL_BODY
    deciding(world).approve(held, by=person("ops"), reason="a second event")
    world.work()
    assert world.run("gh-copy", "github.announce", "github").status is Status.DONE


def test_rejected_deliveries_are_found_and_counted(world: World) -> None:
    (found,) = find(world.table, "acme", RejectedFilter(), now=world.now)
    assert found.reason == "invalid-signature"
    for number in range(60):
        world.deliver(f"evt-forged-{number}", secret="another-secret")
    assert world.rows("rejected-count#acme")[0]["well_formed"] == 60


def test_an_open_enrolment_takes_a_secret_and_a_used_one_no_other(world: World) -> None:
    offer(world, "asana")
    offer(world, "taken")
    assert world.vault.live("asana") == (OFFERED,)
    with pytest.raises(Rejected):
        offer(world, "taken", "another-secret")


# -- effects, approvals and jobs


@pytest.mark.parametrize(
    ("event_id", "name", "options"),
    [("evt-done", "charge", {}), ("evt-shared", "transfer", {"key": "pay-7"})],
)
def test_a_committed_effect_returns_its_result(
    world: World, event_id: str, name: str, options: Any
) -> None:
    results: list[Any] = []
    world.behaviours[FULFIL] = lambda _, ctx: results.append(
        ctx.effect(name, lambda key: "executed again", **options)
    )
    world.replay(event_ids=[event_id], handler=FULFIL, force=True)
    world.work()
    assert results == [RESULT]


def test_another_event_shares_the_effect_of_a_business_key(world: World) -> None:
    results: list[Any] = []
    world.behaviours[FULFIL] = lambda _, ctx: results.append(
        ctx.effect("transfer", lambda key: "executed again", key="pay-7")
    )
    accept(world, "evt-sharing")
    world.work()
    assert results == [RESULT]


def test_an_effect_in_doubt_is_held_where_it_takes_no_key(world: World) -> None:
    world.behaviours[FULFIL] = lambda _, ctx: ctx.effect("charge", lambda: RESULT)
    world.clock.advance(minutes=20)
    world.replay(event_ids=["evt-processing"], handler=FULFIL)
    world.work()
    assert world.run("evt-processing").status is Status.HELD


def test_a_held_run_is_approved(world: World) -> None:
    (request,) = (hold for hold in holds(world.ledger) if hold.run.event_id == "evt-held")
    world.behaviours[FULFIL] = lambda _, ctx: ctx.effect(
        request.effect, lambda key: RESULT, approve=True
    )
    deciding(world).approve(request, by=person("ops"), reason="checked")
    world.work()
    assert world.run("evt-held").status is Status.DONE


def test_a_request_needs_the_second_person_only(world: World) -> None:
    (hold,) = (hold for hold in holds(world.ledger) if hold.run.event_id == "evt-asked")
    assert hold.unannounced == {"bob": "503"}
    decision = deciding(world).approve(hold, by=person("bob"), reason="checked")
    assert decision.outcome is ApprovalOutcome.APPROVED
    results: list[Any] = []
    world.behaviours[FULFIL] = lambda _, ctx: results.append(
        ctx.effect(
            "refund", lambda key: RESULT, args={"amount": 42}, approve=Approval("finance", 2)
        )
    )
    world.work()
    assert results == [RESULT]


def test_an_approval_is_remembered(world: World) -> None:
    asked: list[str] = []

    def ask(_: object, ctx: Any) -> None:
        ctx.hold("a large amount", shows="42 EUR")
        asked.append(ctx.event_id)

    world.behaviours[FULFIL] = ask
    run = world.run("evt-approved")
    world.lanes.send([("default", RunMessage.of(run))])
    world.work()
    assert asked == ["evt-approved"]


@pytest.mark.parametrize("event_id", ["evt-waiting", "evt-rendered"])
def test_a_job_is_completed_with_its_token(world: World, event_id: str) -> None:
    results: list[Any] = []
    world.behaviours[FULFIL] = lambda _, ctx: results.append(
        ctx.wait_for("render", lambda key, token: "started again", timeout="2h")
    )
    if event_id == "evt-waiting":
        done = world.completions.by_token(frozen()["token"], b'{"result": {"pages": 3}}')
        assert done.outcome == "recorded"
    else:
        world.replay(event_ids=[event_id], handler=FULFIL, force=True)
    world.work()
    assert results == [{"pages": 3}]


# -- destinations, pauses and orders


@pytest.mark.parametrize(
    ("type_", "waits_for", "minutes"),
    [
        ("call", "destination crm", 59),
        ("bulk", "destination erp", 1),
        ("export", "resumption", 59),
    ],
)
def test_a_circuit_a_rate_and_a_pause_defer_another_run(
    world: World, type_: str, waits_for: str, minutes: int
) -> None:
    accept(world, "evt-new", type_)
    world.work()
    run = world.run("evt-new", f"acme.{type_}")
    assert (run.status, run.waits_for) == (Status.DEFERRED, waits_for)
    assert run.next_attempt_at is not None
    assert (run.next_attempt_at - world.now).total_seconds() > minutes * 60


def test_a_blocked_ordering_key_blocks(world: World) -> None:
    accept(world, "bill-new", "bill", customer="cus_1")
    accept(world, "bill-free", "bill", customer="cus_3")
    world.work()
    assert "bill-dead" in world.run("bill-new", BILL).last_error
    assert world.run("bill-free", BILL).status is Status.DONE


def test_states_of_ordering_keys_keep_the_order(world: World) -> None:
    accept(world, "sync-old", "sync", customer="cus_1", version=4)
    accept(world, "count-2", "count", customer="cus_1", number=2)
    world.work()
    assert world.run("sync-old", "acme.sync").status is Status.SKIPPED
    assert [event_id for _, event_id, _ in world.handled] == ["count-2", "count-3"]


def test_operator_actions_are_listed(world: World) -> None:
    actions = [row["action"] for row in world.table.query("audit#2026-01-01")]
    replays, pauses_ = ["replay"] * 4, ["pause"] * 3
    asked = ["announce", "approve", "approve", "ask", "escalate"]
    assert sorted(actions) == [*asked, *pauses_, *replays, "resume"]


def test_a_worker_knows_the_paused_tenants(world: World) -> None:
    worker = pauses.TenantPauses(world.table, world.clock)
    assert [worker.paused(tenant) for tenant in ("acct_7", "acct_8")] == ["a flood", None]


def test_a_selection_is_replayed(world: World) -> None:
    [head] = [row for row in world.rows("selection#") if row["sk"] == "head"]
    report = world.replay(selection=head["pk"].removeprefix("selection#"))
    assert report.counts == {"replayed": len(report.sample)}
    assert {run.status for run in report.sample} == {"dead_letter"}


# -- messages


def test_every_message_names_its_run() -> None:
    for message in frozen()["messages"]:
        named = RunMessage.decode(message["body"])
        handler, event_id = MESSAGES[message["kind"]]
        generation = 0 if event_id.endswith(("fresh", "keyless")) else 1
        assert named == RunMessage("acme", event_id, handler, generation)


@pytest.mark.parametrize("kind", MESSAGES)
def test_a_message_is_processed(world: World, kind: str) -> None:
    handler, event_id = MESSAGES[kind]
    send(world, kind)
    world.clock.advance(seconds=300)
    world.work()
    # A serial run whose body has no ordering key is dead.
    ended = Status.DEAD_LETTER if event_id == "ship-keyless" else Status.DONE
    assert world.run(event_id, handler).status is ended


def test_operators_bring_everything_to_its_end(world: World) -> None:
    send(world, *MESSAGES)
    request = pauses.PauseRequest("acme.export", person("ops"), "it is back", world.now)
    assert pauses.resume(world.table, world.randomness, request)
    for held in list(holds(world.ledger)):
        deciding(world).approve(ApprovalRequest(held.run), by=person("ops"), reason="checked")
    accept(world, "count-2", "count", customer="cus_1", number=2)
    for event_id, handler in (("evt-dead", FULFIL), ("bill-dead", BILL)):
        world.replay(event_ids=[event_id], handler=handler)

    world.run_until_quiet()

    unfinished = {
        event_id: status
        for event_id, status in world.statuses().items()
        if status not in {EventStatus.DONE, EventStatus.SKIPPED}
    }
    assert unfinished == {"ship-keyless": EventStatus.DEAD_LETTER}
    assert world.run("ship-fresh", SHIP).ordering_key == "cus_9"
