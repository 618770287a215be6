"""`client.events`: typed events, and changes that are audited first, stop and continue."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.unit.support.world import ACME
from tests.webhookctl.commands.conftest import _alone, cli, inbox
from tests.webhookctl.commands.stage import MANIFEST, Cli, Inbox
from webhook_inbox.client import budget
from webhook_inbox.client.client import InboxClient
from webhook_inbox.client.connection import Selection
from webhook_inbox.client.effects import Standing
from webhook_inbox.client.erasing import TenantErasure
from webhook_inbox.client.errors import NotFound, Refused, WrongArgument
from webhook_inbox.client.exporting import ExportedEvent, ExportedFile
from webhook_inbox.client.search import EventQuery
from webhook_inbox.client.tail import EventArrival, RunChange
from webhook_inbox.domain.errors import Permanent, Unavailable
from webhook_inbox.domain.model import EventStatus

__all__ = ["_alone", "cli", "inbox"]

FULFIL = "acme.fulfil"
ADA = "ada@example.com"
HOUR = timedelta(hours=1)


@pytest.fixture
def client(cli: Cli, inbox: Inbox) -> InboxClient:
    """A client that may change an inbox with a tenant and a personal field."""
    source = replace(ACME, tenant=("header", "x-tenant"), personal=("email",))
    cli.manifest = replace(MANIFEST, sources={**MANIFEST.sources, "acme": source})
    inbox.deploy(cli.manifest)
    return InboxClient(cli._connect(Selection()), write=True, clock=inbox.clock)


def deliver(inbox: Inbox, count: int = 3, *, apart: timedelta = timedelta(minutes=50)) -> None:
    for number in range(count):
        body = json.dumps({"email": ADA, "number": number}).encode()
        inbox.deliver(f"evt-{number}", body=body, headers={"x-tenant": "acct_7"})
        inbox.clock.advance(seconds=apart.total_seconds())
    inbox.work()


def audited(inbox: Inbox) -> list[str]:
    return [row["action"] for row in inbox.rows("audit#")]


def failing(error: Exception, *, prefix: str) -> Callable[..., Any]:
    def put(item: Any, **_: Any) -> None:
        assert item["pk"].startswith(prefix), item
        raise error

    return put


def test_a_list_is_read_while_it_is_iterated(client: InboxClient, inbox: Inbox) -> None:
    deliver(inbox)
    some = client.events.list(limit=2)
    assert [each.event.event_id for each in some] == ["evt-2", "evt-1"]
    assert (some.full, some.partial) == (True, False)
    every = client.events.list(EventQuery(status=EventStatus.DONE, tenant="acct_7"))
    assert [str(each.status) for each in every] == ["done"] * 3
    assert not every.full
    with pytest.raises(WrongArgument, match="no source acne"):
        list(client.events.list(EventQuery(source="acne")))


def test_a_list_beyond_the_budget_is_partial(
    client: InboxClient, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(inbox)
    monkeypatch.setattr(budget, "LATEST", -1.0)
    some = client.reading(timedelta(seconds=-1)).events.list()
    assert (list(some), some.partial) == ([], True)


def test_an_event_has_typed_runs_effects_and_history(client: InboxClient, inbox: Inbox) -> None:
    inbox.behaviours[FULFIL] = lambda event, ctx: ctx.effect("book", lambda _: {"id": 7})
    deliver(inbox, 1)
    found = client.events.get("evt-0")
    run = next(each for each in found.runs if each.handler == FULFIL)
    [effect] = run.effects
    assert (effect.name, effect.state, effect.result) == ("book", Standing.COMMITTED, {"id": 7})
    assert (found.provider, found.conflicts, found.event.body) == ("hmac", (), b"")
    assert [each.attempt.outcome for each in run.attempts] == ["done"]
    assert run.attempts[0].evidence is not None
    assert found.next_action == ("Nothing to do: every run is done.",)
    assert found.expires_at > inbox.now


def test_the_kinds_of_errors_of_a_lookup(client: InboxClient, inbox: Inbox) -> None:
    deliver(inbox, 1)
    inbox.deliver("evt-0", source="github", type_="issues.opened")
    with pytest.raises(Refused, match="exists in acme, github"):
        client.events.get("evt-0")
    for unknown in ("evt-9", "", "evt…9"):
        with pytest.raises(NotFound):
            client.events.get(unknown)
    with pytest.raises(WrongArgument):
        client.events.get("evt-9", source="acne")


def test_personal_fields_are_masked_unless_the_audit_has_a_reader(
    client: InboxClient, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(inbox, 1)
    assert ADA.encode() not in client.events.get("evt-0", with_body=True).event.body
    assert audited(inbox) == []
    reader = client.actor()
    with pytest.raises(Refused, match="only reads"):
        client.reading().events.get("evt-0", with_body=True, personal_to=reader)
    shown = client.events.get("evt-0", with_body=True, personal_to=reader)
    assert ADA.encode() in shown.event.body
    assert audited(inbox) == ["show-personal"]
    down = Unavailable("dynamodb", "PutItem", "down")
    monkeypatch.setattr(inbox.table, "put", failing(down, prefix="audit#"))
    with pytest.raises(Unavailable):
        client.events.get("evt-0", with_body=True, personal_to=reader)


def test_a_reading_client_erases_nothing(client: InboxClient, inbox: Inbox) -> None:
    deliver(inbox, 1)
    reader, by = client.reading(), client.actor()
    assert reader.events.plan_erasure("evt-0").runs == 2
    with pytest.raises(Refused, match="only reads"):
        reader.events.erase("evt-0", reason="asked", by=by)
    with pytest.raises(Refused, match="only reads"):
        reader.events.erase_tenant("acct_7", reason="asked", by=by)
    counts = reader.events.plan_tenant_erasure("acct_7").complete().erased
    assert (counts.events, counts.by_source, counts.erased) == (1, {"acme": 1}, 0)
    assert client.events.get("evt-0").event.erased_at is None
    assert audited(inbox) == []


def test_nothing_is_erased_where_the_audit_cannot_be_written(
    client: InboxClient, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(inbox, 1)
    by = client.actor()
    down = Unavailable("dynamodb", "PutItem", "down")
    monkeypatch.setattr(inbox.table, "put", failing(down, prefix="audit#"))
    with pytest.raises(Unavailable):
        client.events.erase("evt-0", reason="asked", by=by)
    with pytest.raises(Unavailable):
        client.events.erase_tenant("acct_7", reason="asked", by=by).complete()
    assert client.events.get("evt-0").event.erased_at is None


def tenant_erasure(client: InboxClient) -> TenantErasure:
    return client.events.erase_tenant("acct_7", reason="asked", by=client.actor())


def erased(client: InboxClient) -> list[bool]:
    return [client.events.get(f"evt-{number}").event.erased_at is not None for number in range(3)]


def test_a_stopped_erasure_of_a_tenant_is_continued_by_another(
    client: InboxClient, inbox: Inbox
) -> None:
    deliver(inbox, apart=timedelta(days=2))
    erasure = tenant_erasure(client)
    for day in erasure:
        assert day.of == erasure.days
        if erasure.erased.erased:
            erasure.stop()
    assert erased(client) == [True, False, False]
    [row] = inbox.rows("audit#")
    assert row["counts"] == {"erased": 1}
    inbox.clock.advance(seconds=1)
    counts = tenant_erasure(client).complete().erased
    assert (counts.events, counts.erased, counts.unchanged) == (3, 2, 1)
    assert erased(client) == [True, True, True]


def test_an_erasure_that_fails_says_what_is_done(
    client: InboxClient, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(inbox, 1)
    down = Unavailable("dynamodb", "UpdateItem", "down")

    def update(*_: Any, **__: Any) -> None:
        raise down

    monkeypatch.setattr(inbox.table, "update", update)
    with pytest.raises(Unavailable, match="0 erased so far"):
        tenant_erasure(client).complete()


def test_a_tenant_without_events_is_not_found(client: InboxClient) -> None:
    with pytest.raises(NotFound, match="no stored event has the tenant acct_9"):
        client.events.erase_tenant("acct_9", reason="asked", by=client.actor()).complete()


def line(event: ExportedEvent) -> str:
    return f"{event.state.event.event_id} {ADA.encode() in event.state.event.body}"


def test_a_stopped_export_is_continued_by_another(
    client: InboxClient, inbox: Inbox, tmp_path: Path
) -> None:
    since = inbox.now
    deliver(inbox, apart=HOUR)
    inbox.clock.advance(hours=1)

    def export() -> Any:
        return client.reading().events.export_hours(str(tmp_path), since=since, form=line)

    first = export()
    assert next(first) == ExportedFile("2026-01-01T00.jsonl.gz", 1)
    first.stop()
    assert list(first) == []
    files = list(export())
    assert [each.events for each in files] == [None, 1, 1]
    assert export().complete().counts["events"] == 0


def test_a_place_of_another_export_or_without_a_bucket_is_refused(
    client: InboxClient, inbox: Inbox, tmp_path: Path
) -> None:
    since = inbox.now
    deliver(inbox, apart=HOUR)
    client.events.export_hours(str(tmp_path), since=since, form=line).complete()
    with pytest.raises(Refused, match="choose another place"):
        client.events.export_hours(str(tmp_path), since=since, form=line, source="acme").complete()
    with pytest.raises(Refused, match="names no bucket"):
        client.events.export_hours("s3://", since=since, form=line)
    with pytest.raises(Refused, match="no whole hour"):
        client.events.export_hours(str(tmp_path), since=inbox.now, form=line)


def test_a_search_says_how_far_it_came(client: InboxClient, inbox: Inbox) -> None:
    since = inbox.now
    deliver(inbox)
    passed: list[int] = []
    search = client.events.search(
        "number", since=since, max_events=2, passing=lambda: passed.append(search.read)
    )
    assert [each.value for each in search] == [2, 1]
    assert (search.read, search.complete, passed) == (2, False, [1, 2])
    rest = client.events.search("email", since=since, until=search.reached)
    assert ADA not in [each.value for each in rest]
    assert (rest.read, rest.complete) == (2, True)
    with pytest.raises(WrongArgument, match="not a JMESPath"):
        client.events.search("a ==", since=since)


def test_a_tail_continues_behind_an_outage(
    client: InboxClient, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    tail = client.events.tail()
    inbox.deliver("evt-0")
    with monkeypatch.context() as outage:

        def down(*_: Any, **__: Any) -> None:
            raise Unavailable("dynamodb", "Query", "down")

        outage.setattr(inbox.table, "query_index", down)
        with pytest.raises(Unavailable):
            list(tail.poll())
    [arrival] = tail.poll()
    assert isinstance(arrival, EventArrival)
    assert (arrival.event_id, arrival.status) == ("evt-0", "accepted")
    inbox.fails(FULFIL, Permanent("no address"))
    inbox.work()
    changes = [each for each in tail.poll() if isinstance(each, RunChange)]
    assert ("dead_letter", "permanent: no address") in [
        (each.status, each.reason) for each in changes
    ]
    assert list(tail.poll()) == []


def test_ignored_types_of_an_unknown_source(client: InboxClient) -> None:
    assert list(client.events.ignored(source="acme")) == []
    with pytest.raises(WrongArgument):
        list(client.events.ignored(source="acne"))
