"""Inboxes of a directory, with what its inbox.toml says, and of routers."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.testing.shop import shop
from webhook_inbox import Context, Event, Router, serial
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.testing import Fake, Inbox, KitError

FUNCTIONS = Path(__file__).parents[2] / "project"
ISSUE = "events/ingest/github/issues.opened__label.json"


MAIL = """
from webhook_inbox import Router

mail = Router("mail")


@mail.on("bounce")
def suppress(event, ctx):
    ctx.effect("suppress", lambda: event.json()["email"])
"""


@pytest.fixture
def inbox() -> Inbox:
    return Inbox(FUNCTIONS)


@pytest.fixture
def mail(tmp_path: Path) -> Path:
    """A directory of handlers whose provider sends batches."""
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "__init__.py").write_text('MODULES = ("mail",)\n')
    (tmp_path / "handlers" / "mail.py").write_text(MAIL)
    (tmp_path / "inbox.toml").write_text('[sources.mail]\nprovider = "sendgrid"\n')
    return tmp_path


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process that has imported no handlers; what it imports is forgotten again."""
    before = {name: module for name, module in sys.modules.items() if _is_handlers(name)}
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in before:
        del sys.modules[name]
    yield
    for name in [name for name in sys.modules if _is_handlers(name)]:
        del sys.modules[name]
    sys.modules.update(before)


def _is_handlers(name: str) -> bool:
    return name.partition(".")[0] == "handlers"


def test_a_directory_is_an_inbox(inbox: Inbox) -> None:
    run = inbox.run("github.announce", ISSUE)

    assert run.status == "done"
    assert run.effects["announce"].committed
    assert list(inbox.destinations) == ["sink", "model", "slack", "pagerduty"]


def test_sample_files_are_found_from_wherever_tests_run(
    inbox: Inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert inbox.run("github.count", ISSUE).status == "done"


@pytest.mark.parametrize("given", [b"not JSON", {"type": "invoice.paid"}])
def test_what_the_provider_would_not_send_is_refused(inbox: Inbox, given: object) -> None:
    with pytest.raises(KitError, match=r"accept the event \(rejected\): |stripe cannot send"):
        inbox.run("stripe.fulfil", given)  # type: ignore[arg-type]


def test_a_type_that_the_source_does_not_store_is_refused(inbox: Inbox) -> None:
    event = {"id": "evt_1", "type": "customer.created", "data": {"object": {}}}
    with pytest.raises(KitError, match=r"inbox.toml does not store 'customer.created'"):
        inbox.run("stripe.fulfil", event)


def test_another_stage_has_other_values() -> None:
    inbox = Inbox(FUNCTIONS, stage="prod")
    inbox.run("agent.hand_over", "events/ingest/slack/app_mention__channel.json")
    [asked] = inbox.destinations["model"].requests
    assert asked.headers["authorization"] == "Bearer testing-model-api"
    assert asked.headers["host"] == "model.example"


def test_a_secret_may_be_taken_away() -> None:
    inbox = Inbox(FUNCTIONS, stage="prod", secrets={"model-api": None})
    run = inbox.run("agent.hand_over", "events/ingest/slack/app_mention__channel.json")
    assert run.error.endswith("is not set: webhookctl secrets set model-api")


def test_a_fake_changes_only_what_it_says(inbox: Inbox) -> None:
    changed = Inbox(FUNCTIONS, destinations={"sink": Fake(idempotency={"header": "X-Once"})})
    changed.run("github.announce", ISSUE)
    [request] = changed.destinations["sink"].requests
    assert request.key == request.headers["x-once"] == "announce:github.announce:github:evt-1"
    assert request.headers["host"] == "sink.example"


def test_a_setting_back_to_the_usual_counts_as_one() -> None:
    inbox = Inbox(
        FUNCTIONS, stage="prod", destinations={"slack": Fake(idempotency={"header": "K"})}
    )
    inbox.run("slack.tell", {"id": "e", "type": "invoice.payment_failed", "data": {"object": {}}})
    assert inbox.destinations["slack"].requests[0].key == "tell:slack.tell:stripe:e"


def test_what_synth_refuses_is_refused(tmp_path: Path) -> None:
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "__init__.py").write_text("MODULES = ()\n")
    (tmp_path / "inbox.toml").write_text("[sources.x]\n")
    with pytest.raises(ConfigurationError, match=r"\[sources.x\]"):
        Inbox(tmp_path)


def test_two_directories_of_handlers_do_not_fit_into_a_process(mail: Path) -> None:
    Inbox(FUNCTIONS)
    with pytest.raises(KitError, match="test one directory per process"):
        Inbox(mail)


@pytest.mark.parametrize("given", [(), (shop, FUNCTIONS), (FUNCTIONS, FUNCTIONS)])
def test_an_inbox_is_of_a_directory_or_of_routers(given: tuple[Router | Path, ...]) -> None:
    with pytest.raises(KitError, match=r'as Inbox\("functions"\), or routers'):
        Inbox(*given)


def test_several_routers_make_one_inbox() -> None:
    other = Router("other")

    @other.on("x")
    def act(event: Event, ctx: Context) -> None:
        pass

    inbox = Inbox(shop, other, destinations={"crm": Fake(), "old": Fake()})

    assert inbox.run("other.act", {}).status == "done"
    assert inbox.run("shop.fulfil", {}).status == "done"


def test_a_batch_is_split_and_its_events_are_run(mail: Path, alone: None) -> None:
    two = [
        {"event": "bounce", "sg_event_id": "b-1", "email": "a@example.com"},
        {"event": "delivered", "sg_event_id": "d-1", "email": "b@example.com"},
    ]
    inbox = Inbox(mail)

    run = inbox.run("mail.suppress", two)

    assert (run.event_id, run.status) == ("b-1", "done")
    three = [{**two[0], "sg_event_id": name} for name in ("b-2", "b-3")]
    with pytest.raises(KitError, match="the batch has 2 such events"):
        inbox.run("mail.suppress", three)
    assert len(inbox.runs("mail.suppress")) == 3


def test_a_handler_that_only_synth_saw_is_reported(mail: Path, alone: None) -> None:
    """A module that registers by what the process is finds no handler in another one."""
    module = mail / "handlers" / "mail.py"
    text = module.read_text().replace('@mail.on("bounce")', "@register")
    choice = (
        "import sys\n\nregister = (lambda f: f) if 'pytest' in sys.modules else mail.on('bounce')"
    )
    module.write_text(text.replace('mail = Router("mail")', f'mail = Router("mail")\n{choice}'))
    bounce = [{"event": "bounce", "sg_event_id": "b-1", "email": "a@example.com"}]

    run = Inbox(mail).run("mail.suppress", bounce)

    assert run.error.endswith("no router has 'mail.suppress'")


def test_serial_handlers_run_in_their_own_lane() -> None:
    router, seen = Router("queue"), []

    @router.on("x", order=serial("account"), lane="accounts")
    def act(event: Event, ctx: Context) -> None:
        seen.append(event.json()["n"])

    inbox = Inbox(router)
    for number in range(3):
        run = inbox.run("queue.act", {"account": "a", "n": number})
        assert run.settle().status == "done"
    assert seen == [0, 1, 2]


def test_a_handler_without_a_destination_of_its_name_is_told_to_add_one() -> None:
    run = Inbox(shop).run("shop.fulfil", {})
    assert run.error == (
        "permanent: destination 'crm' is not in inbox.toml: add [destinations.crm]"
    )
