"""`--json` keeps its form: names and order of keys, types, exit status, and the known values.

Each test calls commands on an inbox of its own. json_forms.json has what they print. After an
intended change, write it again and review the difference:

    UPDATE_JSON_FORMS=1 pytest tests/webhookctl/commands/test_json_form.py
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, NoCredentialsError

from tests.unit.handlers.completions.job_stage import Labour
from tests.unit.support.approving import FINANCE, ApprovingWorld
from tests.unit.support.batches import Batches, mail
from tests.unit.support.holding import committed, effect, hold, shared_effect
from tests.unit.support.world import ACME, GITHUB, SECRET, World, handler
from tests.webhookctl.commands import test_alarms as alarms
from tests.webhookctl.commands import test_doctor as doctor
from tests.webhookctl.commands import test_preflight as preflight
from tests.webhookctl.commands.json_forms import Forms, accepting, stored
from tests.webhookctl.commands.live import Waits
from tests.webhookctl.commands.provider_apis import TOKEN, GitHub, Stripe, answering
from tests.webhookctl.commands.stage import (
    MANIFEST,
    Cli,
    Inbox,
    client,
    documents,
    failed,
    serving,
)
from tests.webhookctl.commands.test_conformance import VECTORS
from tests.webhookctl.commands.test_enrol import ASANA
from tests.webhookctl.commands.test_rejected import RIGHT
from tests.webhookctl.commands.test_secrets import CRM as SIGNED_CRM
from tests.webhookctl.commands.test_verify import Request
from webhook_inbox.adapters.aws.secrets_manager import SecretsManagerStore
from webhook_inbox.destinations.circuit import CallOutcome
from webhook_inbox.destinations.gate import Gate
from webhook_inbox.domain.errors import Deferred, Held, Permanent, Transient, Unavailable
from webhook_inbox.domain.manifest import BreakerSpec, DestinationSpec
from webhook_inbox.domain.ports import Change
from webhook_inbox.domain.secret_document import SOURCES, TOOLS
from webhook_inbox.ledger.schema import event_key, key_of_run

WHY = ("--reason", "looked at it", "--by", "kim")
DEAD = ("replay", "--status", "dead_letter")
CUT = b'{"action":'
PERSONAL = b'{"id": "evt-1", "email": "ada@example.com", "amount": 42}'
WORKER = "the-processor/8f5b7a52-0c1d-4c1e-9d5f-6a1c2b3d4e5f"
# Why a command that accepts --json prints no form here.
EXEMPT = {
    "console": "serves until a signal ends it, and prints no object",
    "mcp": "serves until its input ends; its tools have tests of their own",
}
CRM = DestinationSpec("crm", "https://crm.example", rate=2.0, breaker=BreakerSpec(failures=3))
PLAIN = DestinationSpec("plain", "https://plain.example", breaker=None)
TENANTS = replace(
    MANIFEST, sources={**MANIFEST.sources, "acme": replace(ACME, tenant=("header", "x-tenant"))}
)


@pytest.fixture
def forms(cli: Cli, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Forms]:
    """The command line, compared with the calls that are stored for this test."""
    made = Forms(cli, request.node.name, tmp_path)
    yield made
    made.end()


@pytest.fixture
def capture(
    forms: Forms, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Any:
    """Lets the command line operate another inbox."""

    def use(world: World) -> None:
        forms.cli = Cli(world, capsys, monkeypatch)
        forms.cli.manifest = world.manifest

    return use


def use_manifest(forms: Forms, inbox: World, manifest: Any) -> None:
    inbox.deploy(manifest)
    forms.cli.manifest = manifest


def with_logs(forms: Forms, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives the workers' function a log group."""
    connect, groups = forms.cli._connect, {"the-processor": "processor-logs"}
    monkeypatch.setattr(
        forms.cli, "_connect", lambda chosen: replace(connect(chosen), log_groups=groups)
    )


def dead(inbox: Inbox, count: int = 3) -> None:
    inbox.fails("acme.notify", Permanent("422: no such order"))
    for number in range(count):
        inbox.deliver(f"evt-{number}", type_="refunded")
        inbox.work()
        inbox.clock.advance(minutes=1)
    inbox.behaviours.pop("acme.notify")


# -- inbox


def test_events_of_each_status(forms: Forms, inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    forms("inbox", "list")
    use_manifest(forms, inbox, TENANTS)
    with_logs(forms, monkeypatch)
    inbox.deliver("done", type_="refunded", headers={"x-tenant": "acct_7"})
    inbox.work_once(by=WORKER)
    inbox.dead("dead")
    inbox.script("acme.notify", Transient("the CRM answered 503"), Transient("and again"))
    inbox.deliver("failed", type_="refunded")
    inbox.work()
    inbox.pass_minutes(1)
    inbox.script("acme.notify", Deferred(inbox.now + timedelta(hours=1)))
    inbox.deliver("deferred", type_="refunded")
    inbox.work()
    hold(inbox, "held", type_="refunded")
    inbox.deliver("first", source="github", body=b'{"action": "opened"}')
    inbox.deliver("second", source="github", body=b'{"action": "opened"}')
    inbox.deliver("cut", source="github", body=CUT)
    inbox.work()
    dropping = replace(GITHUB, identical_body="drop")
    use_manifest(forms, inbox, replace(TENANTS, sources={**TENANTS.sources, "github": dropping}))
    inbox.deliver("dropped", source="github", body=b'{"action": "opened"}')
    inbox.deliver("unwanted", type_="unheard-of")
    inbox.deliver("leased", type_="refunded")
    inbox.begin()
    inbox.deliver("erased", type_="refunded")
    inbox.work()
    forms("erase", "erased", "--yes", *WHY)
    inbox.deliver("skipped", type_="refunded")
    inbox.fails("acme.notify", Permanent("422"))
    inbox.work()
    forms("skip", "skipped", *WHY)
    inbox.deliver("accepted", type_="refunded", body=b"\xff\x00")
    forms("inbox", "list")
    for event_id in inbox.statuses():
        forms("inbox", "inspect", event_id, "--body")
    forms("inbox", "list", "--status", "dead_letter", "--handler", "acme.fulfil", "--limit", "1")


def test_an_events_effects_and_replays(forms: Forms, inbox: Inbox) -> None:
    run = inbox.dead()
    effect(inbox, run, "committed", **committed({"id": "re_1"}))
    effect(inbox, run, "doubtful")
    effect(inbox, run, "failed", status="failed", error="the bank answered 503")
    effect(inbox, run, "by-hand", **committed(None), found_by="person", word={"by": "ann"})
    shared_effect(inbox, run)
    inbox.table.update(key_of_run(run), Change(set={"ordering_key": "cus_1", "blocking": True}))
    forms("inbox", "inspect", "evt-1")
    forms("replay", "evt-1", "--handler", "acme.fulfil", "--yes", *WHY)
    inbox.work()
    forms("inbox", "inspect", "evt-1", "--verbose")
    forms("replay", "evt-1", "--handler", "github.announce")
    added = {**MANIFEST.handlers, "acme.added": handler("acme.added", "paid")}
    use_manifest(forms, inbox, replace(MANIFEST, handlers=added))
    forms("replay", "evt-1", "--handler", "acme.added", "--yes", *WHY)
    inbox.table.update(event_key("acme", "evt-1"), Change(set={"agent": "planner"}))
    forms("inbox", "inspect", "evt-1")


def test_a_batch_and_its_items(forms: Forms, capture: Any) -> None:
    batches = Batches()
    capture(batches)
    forms.cli.urls = {"mail": "https://inbox.example/webhooks/mail"}
    batch = batches.sent(mail("a"), mail("b", "open"))
    batches.run_until_quiet()
    forms("inbox", "list")
    forms("inbox", "inspect", batch)
    batch = batches.sent(mail("a", reason="other"), mail("b"))
    batches.run_until_quiet()
    forms("inbox", "inspect", batch)


def test_what_is_read_of_many_events(forms: Forms, inbox: Inbox, tmp_path: Path) -> None:
    forms("inbox", "errors")
    forms("inbox", "search", "amount")
    forms("inbox", "ignored")
    dead(inbox)
    inbox.fails("acme.notify", KeyError("id"))
    inbox.deliver("key-error", type_="refunded", body=b'{"customer": {"id": "c-1"}}')
    inbox.work()
    sources = {**MANIFEST.sources, "acme": replace(ACME, types=("paid", "refunded"))}
    use_manifest(forms, inbox, replace(MANIFEST, sources=sources))
    inbox.deliver("voided", type_="voided")
    inbox.clock.advance(hours=2)
    forms("inbox", "errors", "--since", "1d")
    forms("inbox", "search", "customer.id", "--since", "1d", "--show-value")
    forms("inbox", "search", "customer", "--since", "1d", "--max-events", "1")
    forms("inbox", "search", "customer[")
    forms("inbox", "ignored")
    forms("inbox", "export", "--to", str(tmp_path / "out"), "--since", "3h")
    forms("inbox", "export", "--to", str(tmp_path / "out"), "--since", "3h")


@pytest.mark.usefixtures("checkout")
def test_an_exported_event(forms: Forms, inbox: Inbox, tmp_path: Path) -> None:
    inbox.fails("acme.notify", Permanent("422"))
    inbox.deliver(body=PERSONAL)
    inbox.deliver("binary", body=b"\xff\x00")
    inbox.work()
    forms("inbox", "export", "evt-1")
    forms("inbox", "export", "evt-1", "--output", str(tmp_path / "test_it.py"))
    forms("inbox", "export", "evt-1", "--handler", "acme.fulfil")
    forms("inbox", "export", "binary")
    for form in ("curl", "json"):
        forms("inbox", "export", "evt-1", "--as", form)
        forms("inbox", "export", "evt-1", "--as", form, "--show-personal")
        forms("inbox", "export", "binary", "--as", form, "--output", str(tmp_path / form))
        forms("inbox", "export", "binary", "--as", form, "--output", str(tmp_path / form))
    forms("inbox", "export")


def test_a_tail(forms: Forms, inbox: Inbox) -> None:
    inbox.fails("acme.notify", Permanent("422"))
    steps = [lambda: inbox.deliver(type_="refunded"), inbox.work, lambda: None, lambda: None]
    forms.cli.clock = Waits(inbox, steps)
    forms("inbox", "tail")


def test_copies_for_this_machine(
    forms: Forms, inbox: Inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    answers = [500, 200]
    with serving(lambda *_: (answers.pop(0) if answers else 200, "")) as address:
        forms.cli.clock = Waits(inbox, [inbox.deliver, lambda: None, lambda: None])
        forms("listen", "--forward", address)


# -- replay and decisions


def test_a_replay(forms: Forms, inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    forms(*DEAD)
    dead(inbox)
    inbox.deliver("fine", type_="refunded")
    inbox.work()
    monkeypatch.setattr(inbox.clock, "sleep", lambda _: inbox.work())
    selection = forms(*DEAD).data["selection"]
    forms("replay", "--selection", selection)
    forms("replay", "--selection", selection, "--first", "1", "--yes", *WHY)
    inbox.fails("acme.notify", Permanent("422: still no such order"))
    forms("replay", "--selection", selection, "--first", "1", "--yes", *WHY)
    forms("replay", "--selection", selection, "--yes", *WHY)
    forms("replay", "--selection", selection, "--yes", *WHY)
    inbox.work()
    forms(*DEAD, "--limit", "1", "--error-contains", "order", "--where", "amount")
    forms("replay", "fine", "evt-0", "--yes", *WHY)
    forms("replay", "fine", "--handler", "acme.notify", "--force", "--yes", *WHY)
    forms("replay", "fine", "--handler", "acme.notify", "--new-keys", *WHY)
    forms("replay", "absent")
    forms("replay", "--yes")
    forms("replay", "--selection", "0123456789ab", "--yes")
    forms("audit")
    forms("inbox", "inspect", "evt-0")
    forms.cli.replay.answer = failed("it ran out of memory")
    forms(*DEAD)


def test_a_skip(forms: Forms, inbox: Inbox) -> None:
    run = inbox.dead()
    inbox.table.update(key_of_run(run), Change(set={"ordering_key": "cus_1", "blocking": True}))
    forms("skip", "evt-1")
    forms("skip", "evt-1", "--handler", "acme.notify", *WHY)
    forms("skip", "evt-1", *WHY)
    forms("skip", "evt-1", *WHY)
    forms("skip", "absent", *WHY)


def test_holds(forms: Forms, inbox: Inbox) -> None:
    forms("hold", "list")
    hold(inbox, type_="refunded")
    inbox.clock.advance(minutes=1)
    run = hold(inbox, "doubtful", type_="refunded").run
    effect(inbox, run)
    hold(inbox, "bare", type_="refunded", shows="", fingerprint="")
    inbox.deliver("first", source="github", body=b'{"action": "opened"}')
    for number in range(4):
        inbox.deliver(f"copy-{number}", source="github", body=b'{"action": "opened"}')
    inbox.work()
    forms("hold", "list")
    forms("hold", "list", "--limit", "1", "--since", "1h")
    forms("hold", "approve", "evt-1", "--hold", "another", *WHY)
    forms("hold", "approve", "evt-1", *WHY)
    forms("hold", "approve", "evt-1", *WHY)
    forms("hold", "approve", "doubtful", "--happened", "--result", "{id: 1}", *WHY)
    forms("hold", "approve", "doubtful", "--happened", "--result", '{"id": "re_1"}', *WHY)
    forms("hold", "deny", "bare", *WHY)
    forms("hold", "deny", "--subject", "identical-body", *WHY)
    forms("hold", "deny", "--subject", "identical-body", "--limit", "1", "--yes", *WHY)
    forms("hold", "approve", "--subject", "identical-body", "--yes", *WHY)
    forms("hold", "approve", "absent", *WHY)
    forms("hold", "deny", "evt-1")
    inbox.work()
    forms("inbox", "inspect", "evt-1")
    forms("inbox", "inspect", "doubtful")


def test_holds_that_people_decide(forms: Forms, capture: Any) -> None:
    people = {**FINANCE.people, "moto": "chat:/moto"}
    world = ApprovingWorld()
    capture(world)
    use_manifest(forms, world, replace(world.manifest, approvers={"finance": FINANCE}))
    world.chat.down = {"/bob"}
    world.asked()
    world.clock.advance(seconds=1)
    forms("hold", "list")
    forms("hold", "approve", "evt-1", *WHY[:2])
    use_manifest(
        forms,
        world,
        replace(world.manifest, approvers={"finance": replace(FINANCE, people=people)}),
    )
    world.says("ann")
    world.clock.advance(seconds=1)
    forms("hold", "list")
    forms("inbox", "inspect", "evt-1")
    forms("hold", "approve", "evt-1", *WHY[:2])
    forms("inbox", "inspect", "evt-1")


def test_a_completion(forms: Forms, inbox: Inbox) -> None:
    inbox.behaviours["acme.notify"] = lambda *_: None
    labour = Labour(inbox)
    labour.begin()
    named = ("evt-1", "--handler", "acme.fulfil", "--effect", "render")
    forms("inbox", "inspect", "evt-1")
    forms("complete", *named)
    forms("complete", "--token", "not-a-token", "--result", "1")
    forms("complete", *named, "--error", "out of paper", "--retry", "--by", "kim")
    inbox.work()
    forms("inbox", "inspect", "evt-1")
    inbox.clock.advance(minutes=10)
    inbox.work()
    forms("complete", *named, "--result", '{"pages": 7}')
    forms("complete", *named, "--result", '{"pages": 7}')
    inbox.work()
    forms("inbox", "inspect", "evt-1")


# -- rejected deliveries


@pytest.mark.usefixtures("checkout")
def test_rejected_deliveries(forms: Forms, inbox: Inbox) -> None:
    forms("rejected", "list")
    forms("rejected", "release")
    inbox.deliver("evt-1", secret=RIGHT, headers={"user-agent": "acme/1"}, body=PERSONAL)
    inbox.deliver("evt-2", secret=RIGHT, source="github", body=b"\xff\x00")
    stale = inbox.delivery("evt-3")
    inbox.clock.advance(minutes=20)
    inbox.ingest.receive(replace(stale, received_at=inbox.now))
    forms("rejected", "list")
    ids = [each["id"] for each in forms("rejected", "list", "--limit", "2").objects]
    for id_ in ids:
        forms("rejected", "show", id_)
        forms("rejected", "show", id_, "--body")
    forms("rejected", "show", "0-1")
    forms("rejected", "release")
    documents().set(SOURCES, "acme", RIGHT)
    forms("rejected", "release")
    forms("rejected", "release", "--yes", *WHY)
    forms("rejected", "release", "--yes", *WHY)
    forms("rejected", "release", "0-1", "--yes", *WHY)
    forms("rejected", "list", "--source", "acme", "--rejected-for", "invalid-signature")
    forms("inbox", "inspect", "evt-1")


def test_dead_letter_queues(forms: Forms, inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    forms("dlq", "list")
    url = str(client("sqs").create_queue(QueueName="dead")["QueueUrl"])
    monkeypatch.setattr("tests.webhookctl.commands.stage.DEAD_URL", url)
    forms("dlq", "list")
    dead(inbox)
    client("sqs").send_message(QueueUrl=url, MessageBody="1")
    forms("dlq", "list")


# -- control


def test_paused_handlers(forms: Forms, inbox: Inbox) -> None:
    forms("handlers", "list")
    forms("handlers", "pause", "acme.notify", *WHY)
    inbox.deliver(type_="refunded")
    inbox.work()
    forms("handlers", "pause", "acme.notify", *WHY)
    forms("handlers", "list")
    forms("inbox", "inspect", "evt-1")
    forms("handlers", "resume", "acme.notify")
    forms("handlers", "list")
    forms("inbox", "inspect", "evt-1")
    forms("handlers", "resume", "acme.notify", "--reason", "it is over")
    forms("handlers", "pause", "acme.notifi", *WHY)
    forms("handlers", "pause", "acme.notify")


def test_paused_tenants(forms: Forms, inbox: Inbox) -> None:
    use_manifest(forms, inbox, TENANTS)
    forms("tenants", "list")
    forms("tenants", "pause", "acct_7", *WHY)
    inbox.deliver(type_="refunded", headers={"x-tenant": "acct_7"})
    inbox.work()
    forms("tenants", "pause", "acct_7", *WHY)
    forms("tenants", "list")
    forms("inbox", "list", "--tenant", "acct_7")
    forms("tenants", "resume", "acct_7")
    forms("tenants", "resume", "acct_7")
    forms("audit")


def test_destinations(forms: Forms, inbox: Inbox) -> None:
    forms("destinations", "list")
    calling = replace(
        MANIFEST,
        handlers={"acme.fulfil": handler("acme.fulfil", "paid", destinations=("crm",))},
        destinations={"crm": CRM, "plain": PLAIN},
    )
    use_manifest(forms, inbox, calling)
    forms("destinations", "list")
    gate = Gate(inbox.ports)
    for _ in range(3):
        gate.report(CRM, CallOutcome.failed())
    inbox.deliver()
    inbox.work_once()
    forms("destinations", "list")
    forms("inbox", "inspect", "evt-1")
    forms("destinations", "close", "crm")
    forms("destinations", "open", "crm", *WHY)
    forms("destinations", "open", "crm", *WHY)
    forms("destinations", "list")
    forms("destinations", "close", "crm")
    forms("destinations", "close", "crm")
    forms("destinations", "close", "crn")


# -- secrets


def test_secrets(forms: Forms, inbox: Inbox) -> None:
    secrets = ("acme", "crm-sign", "crm-token", "github", "openai", "stripe")
    forms.cli.manifest = replace(MANIFEST, destinations={"crm": SIGNED_CRM}, secrets=secrets)
    forms("secrets", "list")
    forms("secrets", "status")
    forms("secrets", "set", "acme", stdin="the-first-value")
    forms("secrets", "set", "acme", stdin="the-second-value")
    forms("secrets", "set", "acme", stdin="the-second-value")
    forms("secrets", "set", "acme", "--replace", stdin="the-third-value")
    forms("secrets", "set", "acne", stdin="a-value")
    forms("secrets", "set", "acne", "--create", stdin="a-value")
    forms("secrets", "set", "github", stdin="")
    forms("secrets", "set", "github", stdin="the-first-value")
    forms("secrets", "rotate", "github", stdin="the-second-value")
    forms("secrets", "rotate", "github", stdin="the-second-value")
    forms("secrets", "rotate", "github", "--overlap", "2h", stdin="the-third-value")
    forms("secrets", "rotate", "no-such", stdin="a-value")
    forms("secrets", "list")
    inbox.deliver("evt-1", source="github")
    forms("secrets", "status")
    forms("secrets", "revoke", "github", "--previous")
    forms("secrets", "revoke", "github", "--previous", "--yes", *WHY)
    forms("secrets", "revoke", "github", "--previous", "--yes", *WHY)
    forms("secrets", "enrol", "acme")
    forms("audit")


def test_secrets_before_the_first_deployment(forms: Forms, checkout: Path) -> None:
    forms.cli.deployed = False
    forms("secrets", "set", "acme", stdin="a-value")
    forms("secrets", "list")
    forms("inbox", "list")


def test_an_enrolment(forms: Forms, checkout: Path) -> None:
    toml = checkout / "inbox.toml"
    toml.write_text(toml.read_text() + ASANA)
    forms.cli.urls["asana"] = "https://inbox.example/webhooks/asana"
    forms("secrets", "enrol", "asana", "--for", "1h")


# -- erasure


def test_an_erasure(forms: Forms, inbox: Inbox) -> None:
    use_manifest(forms, inbox, TENANTS)
    for number, tenant in enumerate(("acct_7", "acct_7", "acct_8")):
        inbox.deliver(f"evt-{number}", body=b"%d" % number, headers={"x-tenant": tenant})
        inbox.clock.advance(minutes=5)
    inbox.work()
    inbox.fails("acme.fulfil", Held("look at it"))
    inbox.deliver("evt-3", headers={"x-tenant": "acct_7"})
    inbox.work()
    forms("erase", "evt-0", *WHY)
    forms("erase", "evt-0", "--yes", *WHY)
    forms("erase", "evt-0", "--yes", *WHY)
    forms("erase", "evt-3", "--yes", *WHY)
    forms("erase", "--tenant", "acct_7", *WHY)
    forms("erase", "--tenant", "acct_7", "--yes", *WHY)
    forms("erase", "--tenant", "acct_9", "--yes", *WHY)
    forms("erase", "absent", "--yes", *WHY)
    forms("erase", "evt-1")
    forms("inbox", "inspect", "evt-0", "--body")
    forms("audit", "--event", "evt-0")
    forms("audit", "--since", "1h", "--limit", "1")


# -- the stack


def test_alarms(forms: Forms, monkeypatch: pytest.MonkeyPatch) -> None:
    forms.manual = False  # since when is moto's time
    topics, of_aws = alarms.Topics(), forms.cli._client
    monkeypatch.setattr(
        forms.cli, "_client", lambda name: topics if name == "sns" else of_aws(name)
    )
    forms("alarms", "list")
    alarms.put(alarms.BURST, "page", "arn:page")
    alarms.put(alarms.ERRORS, "notify", "arn:notify")
    alarms.put(alarms.SLOW, "notify")
    alarms.state(alarms.ERRORS, "ALARM")
    topics.pending = {"team@a.example"}
    forms("alarms", "list")
    forms("alarms", "test")
    alarms.state(alarms.ERRORS, "OK")
    forms("alarms", "test", "--yes")


def test_a_doctor(forms: Forms, inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    use_manifest(forms, inbox, doctor.CALLING)
    account = doctor.Account(forms.cli._client)
    monkeypatch.setattr(forms.cli, "_client", account)
    forms("doctor")
    for name in ("acme", "github", "stripe"):
        documents().set(SOURCES, name, f"the-{name}-secret")
    doctor.passed(inbox, age=timedelta(seconds=20))
    forms("doctor")
    dead(inbox, 1)
    account.answers["describe_stacks"]["Stacks"] = [{"StackStatus": "UPDATE_ROLLBACK_FAILED"}]
    account.answers["describe_rule"] = {"State": "DISABLED"}
    forms("doctor")


@pytest.mark.parametrize("working", [True, False])
def test_a_smoke_test(
    forms: Forms, inbox: Inbox, served: str, monkeypatch: pytest.MonkeyPatch, *, working: bool
) -> None:
    secrets = documents()
    secrets.put(SOURCES, {"acme": SECRET})
    store = SecretsManagerStore(secrets.client, secrets.id(SOURCES), keys={})
    monkeypatch.setattr(inbox, "vault", store)
    inbox.deploy(MANIFEST)

    def sleep(seconds: float) -> None:
        inbox.clock.advance(seconds=seconds)
        if working:
            inbox.work()

    monkeypatch.setattr(inbox.clock, "sleep", sleep)
    forms("smoke")


@pytest.mark.usefixtures("served")
def test_missing_events_of_sources(forms: Forms, inbox: Inbox, served: str) -> None:
    hub, pay = GitHub(inbox, served), Stripe(inbox, served)
    reconcile = ("sources", "reconcile", "github", "--hook", "octo/app/7")
    forms(*reconcile)
    for name in ("github-api", "stripe-api"):
        documents().set(TOOLS, name, TOKEN)
    with answering(hub) as address:
        forms(*reconcile, "--api", address)
        hub.deliver("g-1", lost=True)
        hub.deliver("g-2", "push")
        inbox.clock.advance(minutes=10)
        forms(*reconcile, "--api", address, "--since", "2h")
        forms(*reconcile, "--api", address, "--yes", *WHY)
    with answering(pay) as address:
        pay.happen("evt_1", lost=True)
        inbox.clock.advance(minutes=10)
        forms("sources", "reconcile", "stripe", "--hook", "we_1", "--api", address, "--yes")
    forms("sources", "reconcile", "acme", "--hook", "1")
    forms("sources", "reconcile", "no-such", "--hook", "1")


@pytest.mark.usefixtures("checkout", "served")
def test_sent_deliveries(forms: Forms, inbox: Inbox) -> None:
    documents().set(SOURCES, "acme", SECRET)
    Path("paid__order.json").write_text('{"amount": 42}')
    forms("send", "paid__order.json", "--source", "acme", "--id", "evt-1")
    forms("send", "paid__order.json", "--source", "acme", "--id", "evt-1")
    forms("send", "paid__order.json", "--source", "acme", "--id", "evt-2", "--secret", "wrong")
    forms("send", "absent.json", "--source", "acme")


# -- without an inbox


def test_a_check(forms: Forms, checkout: Path) -> None:
    forms("check", "--stage", "prod")
    forms("check", "--strict")
    (checkout / "inbox.toml").write_text("[sources.acme]\nprovider = 1\n")
    forms("check")


def test_a_preflight(forms: Forms, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = checkout.parent
    (top / "app.py").write_text(preflight.APP)
    (top / "template.json").write_text(json.dumps(preflight.template()))
    account = preflight.Account()

    def call(*request: Any) -> Any:
        return account.answer(*request)

    monkeypatch.setattr("botocore.client.BaseClient._make_api_call", call)
    monkeypatch.setattr("webhook_inbox.adapters.aws.account.Account.clients", staticmethod(client))
    monkeypatch.setattr("webhookctl.local.deployment.plan.run_app", preflight.at_once)
    forms("preflight", "--stack", preflight.STACK)
    account.answers["GetParameter"] = "ParameterNotFound"
    account.answers["GetAccountSettings"] = "AccessDeniedException"
    account.answers["GetSecretValue"] = preflight.document_of("github")
    forms("preflight", "--stack", preflight.STACK)


def test_a_cost(forms: Forms, tmp_path: Path) -> None:
    forms("cost", "--events-per-month", "5000000", "--handlers", "2", "--effects", "1")
    forms("cost", "--body", "7QB")


def test_a_verification(forms: Forms, inbox: Inbox, checkout: Path, tmp_path: Path) -> None:
    request = Request(tmp_path, inbox.now)
    forms("verify", *request.options)
    request.body.write_bytes(b"{}")
    forms("verify", *request.options)
    request.secret.write_text("another")
    forms("verify", *request.options)
    forms("verify", *request.files, "--source", "no-such", "--secret-file", str(request.secret))


def test_a_conformance(forms: Forms) -> None:
    vectors = json.loads((VECTORS / "github.json").read_text())
    Path("vectors.json").write_text(json.dumps(vectors))
    forms("conformance", "vectors.json")
    vectors[1]["secret_base64"] = "b3RoZXI="
    Path("vectors.json").write_text(json.dumps(vectors))
    forms("conformance", "vectors.json")


def test_a_project_and_its_runbook(forms: Forms) -> None:
    forms("init", "demo")
    forms("runbook")
    forms("runbook", "dead-letter-burst")
    forms("runbook", "no-such")


# -- errors


def test_errors(forms: Forms, inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox.deliver()
    inbox.deliver(source="github")
    forms("inbox", "inspect", "evt-1")
    forms("inbox", "inspect", "absent")
    forms("inbox", "inspect", "")
    forms("inbox", "list", "--source", "acne")
    forms("inbox", "list", "--since", "yesterday")
    forms("inbox", "list", "--status", "lost")
    forms("inbox", "list", "--no-such-option")
    forms("audit", "--since", "1h", "--until", "2h")
    forms.cli.manifest = None
    forms("handlers", "list")
    denied = {"Error": {"Code": "AccessDeniedException", "Message": "not for you"}}
    throttled = {"Error": {"Code": "ThrottlingException", "Message": "too fast"}}
    for error in (
        ClientError(denied, "Query"),
        ClientError(throttled, "Query"),
        NoCredentialsError(),
        Unavailable("DynamoDB", "Query", "reset"),
        Permanent("422"),
        RuntimeError("a fault"),
    ):

        def refuse(*_: Any, error: Exception = error, **__: Any) -> Any:
            raise error

        monkeypatch.setattr(inbox.table, "query", refuse)
        forms("inbox", "inspect", "evt-1")


# -- completeness; last, since an update stores the forms before


def test_each_command_with_json_has_a_stored_form() -> None:
    called = {call["command"] for calls in stored().values() for call in calls}
    assert called == set(accepting()) - EXEMPT.keys()


def test_each_stored_form_has_its_test() -> None:
    tests = {name.partition("[")[0] for name in stored()}
    assert tests <= globals().keys()
