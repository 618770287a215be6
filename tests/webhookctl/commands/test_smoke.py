"""`smoke`: passes on an inbox that works, names what does not, and leaves nothing behind."""

from datetime import timedelta
from typing import Any

import pytest

from tests.unit.support.people import person
from tests.unit.support.world import SECRET
from tests.webhookctl.commands.stage import MANIFEST, PREFIX, Cli, Inbox, client, failed
from webhook_inbox.adapters.aws.secrets_manager import SecretsManagerStore
from webhook_inbox.adapters.memory import MemorySecrets
from webhook_inbox.client.health.smoke.traces import LONGEST, Traces, event_ids
from webhook_inbox.client.secret_documents import SecretDocuments
from webhook_inbox.domain.errors import Permanent
from webhook_inbox.domain.manifest import SMOKE, SMOKE_SOURCE
from webhook_inbox.domain.ports import Key
from webhook_inbox.domain.secret_document import SOURCES
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ledger import pauses
from webhook_inbox.reconciler.received import CURSORS

STEPS = ["open", "deliver", "duplicate", "forge", "fail", "redrive", "replay", "reconcile"]


@pytest.fixture
def documents(inbox: Inbox) -> SecretDocuments:
    """The documents of the inbox's secrets, which its ingest reads."""
    made = SecretDocuments(client("secretsmanager"), PREFIX)
    made.put(SOURCES, {"acme": SECRET})
    inbox.vault = SecretsManagerStore(made.client, made.id(SOURCES), keys={})  # type: ignore[assignment]
    inbox.deploy(MANIFEST)
    return made


@pytest.fixture
def working(
    inbox: Inbox, documents: SecretDocuments, served: str, monkeypatch: pytest.MonkeyPatch
) -> Inbox:
    """An inbox whose workers work while the command waits."""

    def sleep(seconds: float) -> None:
        inbox.clock.advance(seconds=seconds)
        inbox.work()

    monkeypatch.setattr(inbox.clock, "sleep", sleep)
    return inbox


@pytest.fixture
def idle(inbox: Inbox, documents: SecretDocuments, served: str) -> Inbox:
    """An inbox without workers."""
    return inbox


def left_behind(inbox: Inbox) -> list[Any]:
    return [row for row in inbox.table if not row["pk"].startswith(("audit#", "reconciler"))]


def letters(inbox: Inbox) -> list[str]:
    inbox.clock.advance(minutes=10)
    inbox.work()
    return inbox.dlqs["default"].bodies


def ended(cli: Cli) -> dict[str, Any]:
    """Returns the step that failed."""
    shown = cli("smoke", "--json")
    assert shown.code == 1
    *_, last, cleaned = shown.objects
    assert (last["result"], cleaned["step"], cleaned["result"]) == ("failed", "clean up", "ok")
    return dict(last)


def test_it_passes_and_leaves_nothing_behind(cli: Cli, working: Inbox) -> None:
    shown = cli("smoke")
    assert shown.code == 0, shown.out
    *lines, last = shown.out.splitlines()
    assert [line[:10].rstrip() for line in lines] == [*STEPS, "clean up"]
    assert all(line[10:].startswith("ok ") for line in lines)
    assert last.startswith("The smoke test of WebhookInbox-test passed after ")
    assert left_behind(working) == []
    assert letters(working) == []
    assert set(working.vault.fetch()) == {"acme"}
    (request,) = cli.replay.payloads
    assert request["source"] == SMOKE


@pytest.mark.parametrize(("local", "code"), [(False, 1), (True, 0)])
def test_a_step_on_a_laptop_may_take_longer(
    cli: Cli, idle: Inbox, monkeypatch: pytest.MonkeyPatch, *, local: bool, code: int
) -> None:
    """The workers of a busy machine start a minute late."""
    start = idle.now + timedelta(seconds=60)

    def sleep(seconds: float) -> None:
        idle.clock.advance(seconds=seconds)
        if idle.now > start:
            idle.work()

    monkeypatch.setattr(idle.clock, "sleep", sleep)
    cli.local = local
    assert cli("smoke").code == code


def test_its_steps_as_json_are_one_object_each(cli: Cli, working: Inbox) -> None:
    shown = cli("--json", "smoke", "--by", "me")
    assert [each["step"] for each in shown.objects] == [*STEPS, "clean up"]
    assert {each["result"] for each in shown.objects} == {"ok"}
    assert all(each.keys() == {"step", "result", "seconds", "detail"} for each in shown.objects)
    assert cli.replay.payloads[0]["requested_by"] == "me"


def test_dead_letters_of_other_runs_stay_where_they_are(cli: Cli, working: Inbox) -> None:
    working.fails("acme.fulfil", Permanent("no"))
    for number in range(12):
        working.deliver(f"evt-{number}")
    working.work()
    before = sorted(working.dlqs["default"].bodies)
    assert len(before) == 12
    rows = len(left_behind(working))
    assert cli("smoke").code == 0
    assert sorted(letters(working)) == before
    assert len(left_behind(working)) == rows
    assert {working.run(f"evt-{n}").attempt_count for n in range(12)} == {1}


def test_what_a_killed_smoke_test_left_is_removed(cli: Cli, working: Inbox) -> None:
    Traces(working.table, working.clock).begin("killed")
    row = {"pk": f"event#{SMOKE}#{event_ids('killed')[0]}", "sk": "run#smoke", "status": "done"}
    working.table.put(row)
    working.clock.advance(seconds=LONGEST.total_seconds() + 1)
    shown = cli("smoke")
    assert "removed what 1 killed smoke tests left" in shown.out
    assert left_behind(working) == []


def test_another_smoke_test_keeps_its_rows_and_the_secret(cli: Cli, working: Inbox) -> None:
    Traces(working.table, working.clock).begin("other")
    assert cli("smoke").code == 0
    assert [row["sk"] for row in left_behind(working)] == ["other"]
    assert set(working.vault.fetch()) == {"acme", SMOKE_SOURCE.secret}


# -- an inbox that does not work


def test_without_workers_it_says_so_in_time(cli: Cli, idle: Inbox) -> None:
    began = idle.now
    step = ended(cli)
    assert step["step"] == "deliver"
    assert step["detail"].startswith(
        "no worker has begun its run, and 1 messages wait in lane default"
    )
    assert (idle.now - began).total_seconds() < 120
    assert left_behind(idle) == []
    assert letters(idle) == []


def test_a_paused_handler_is_named(cli: Cli, working: Inbox) -> None:
    request = pauses.PauseRequest(SMOKE, by=person("me"), reason="a drill", now=working.now)
    pauses.pause(working.table, working.randomness, request)
    detail = ended(cli)["detail"]
    assert "(deferred: handler smoke is paused: a drill" in detail


def test_a_stack_whose_ingest_does_not_know_the_source(cli: Cli, working: Inbox) -> None:
    working.vault = MemorySecrets()
    working.deploy(MANIFEST)
    step = ended(cli)
    assert step["step"] == "open"
    assert "the API does not know the source: deploy the stack again" in step["detail"]


def test_a_replay_function_that_fails(cli: Cli, working: Inbox) -> None:
    cli.replay.answer = failed("no permission")
    step = ended(cli)
    assert step["step"] == "replay"
    assert "the replay function failed: no permission" in step["detail"]
    assert left_behind(working) == []
    assert letters(working) == []


def test_a_reconciler_that_stopped(cli: Cli, working: Inbox) -> None:
    stopped = to_ms(working.now) - 3_600_000
    working.table.put({"pk": CURSORS.pk, "sk": CURSORS.sk, "first": {"0": stopped}})
    assert "the reconciler is 60 minutes behind" in ended(cli)["detail"]


def test_an_interrupted_one_cleans_up(
    cli: Cli, working: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(working.clock, "sleep", interrupted)
    shown = cli("smoke")
    assert shown.code == 130
    assert "clean up  ok" in shown.out
    assert left_behind(working) == []
    assert working.table.get(Key(SMOKE, "any")) is None
    assert set(working.vault.fetch()) == {"acme"}


def test_one_right_after_an_interrupted_one_waits_until_ingest_has_its_secret(
    cli: Cli, working: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(working.clock, "sleep", interrupted)
        assert cli("smoke").code == 130
    working.clock.advance(seconds=3)
    shown = cli("smoke")
    assert shown.code == 0, shown.out


def test_an_api_that_does_not_answer_is_not_waited_for(cli: Cli, working: Inbox) -> None:
    cli.api_url, began = "http://127.0.0.1:1", working.now
    step = ended(cli)
    assert step["step"] == "open"
    assert step["detail"].startswith("no answer: ")
    assert (working.now - began).total_seconds() < 1
