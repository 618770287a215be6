"""`send`: what a provider would have sent, and what the inbox made of it."""

import json
from pathlib import Path

import pytest

from tests.unit.support.world import SECRET
from tests.webhookctl.commands.stage import Cli, Inbox, documents, serving
from webhook_inbox.domain.secret_document import SOURCES
from webhookctl.local.dev_secrets import FILE, SIGNING

pytestmark = pytest.mark.usefixtures("checkout", "served")


@pytest.fixture(autouse=True)
def _secrets(inbox: Inbox) -> None:
    for name in ("acme", "github", "stripe", "hashed"):
        documents().set(SOURCES, name, SECRET)


def sample(name: str, **content: object) -> str:
    Path(name).write_text(json.dumps(content))
    return name


@pytest.fixture
def order() -> str:
    return sample("paid__order.json", amount=42)


@pytest.fixture
def invoice() -> str:
    data = {"object": {"id": "in_1"}}
    return sample("invoice.paid__thin.json", id="evt_1abc", type="invoice.paid", data=data)


@pytest.fixture
def issue() -> str:
    return sample("issues.opened__label.json", action="opened")


def test_a_file_is_signed_and_accepted(cli: Cli, inbox: Inbox, order: str) -> None:
    [sent] = cli("send", order, "--source", "acme", "--json").objects
    assert sent == {
        "file": "paid__order.json",
        "source": "acme",
        "event_id": sent["event_id"],
        "type": "paid",
        "http_status": 202,
        "answer": {"status": "accepted", "event_id": sent["event_id"]},
    }
    assert inbox.body(sent["event_id"]) == Path(order).read_bytes()
    assert inbox.overview(sent["event_id"]).event.type == "paid"


def test_people_get_a_table_and_a_summary(cli: Cli, order: str) -> None:
    shown = cli("send", order, "--source", "acme")
    heading, line, summary = shown.out.splitlines()
    assert heading.split() == ["FILE", "EVENT_ID", "HTTP", "ANSWER"]
    assert line.startswith("paid__order.json  ")
    assert summary == "1 delivery: 1 accepted."
    assert "\x1b" not in shown.out


def test_a_file_sent_again_is_a_new_event(cli: Cli, order: str) -> None:
    first = cli("send", order, "--source", "acme", "--json").data
    second = cli("send", order, "--source", "acme", "--json").data
    assert first["event_id"] != second["event_id"]
    assert second["answer"]["status"] == "accepted"


def test_one_delivery_sent_many_times_is_one_event(
    cli: Cli, inbox: Inbox, order: str, issue: str
) -> None:
    shown = cli("send", order, "--source", "acme", "--times", "20")
    *_, summary = shown.out.splitlines()
    assert sorted(summary.strip(".").partition(": ")[2].split(", ")) == [
        "1 accepted",
        "19 duplicate",
    ]
    assert shown.err == ""
    shown = cli("send", issue, "--source", "github", "--times", "5", "--json")
    assert len({sent["event_id"] for sent in shown.objects}) == 1
    assert len(cli("inbox", "list", "--json").objects) == 2


def test_several_files_are_several_events(cli: Cli, order: str) -> None:
    other = sample("refunded__order.json", amount=1)
    shown = cli("send", order, other, "--source", "acme", "--times", "2", "--json").objects
    assert [sent["type"] for sent in shown] == ["paid", "paid", "refunded", "refunded"]
    assert len({sent["event_id"] for sent in shown}) == 2


def test_type_and_id_may_be_given(cli: Cli, inbox: Inbox, order: str) -> None:
    cli("send", order, "--source", "acme", "--type", "refunded", "--id", "mine")
    assert inbox.overview("mine").event.type == "refunded"


def test_githubs_type_is_its_header_and_the_action(cli: Cli, issue: str) -> None:
    assert cli("send", issue, "--source", "github", "--json").data["type"] == "issues.opened"


# -- ids in bodies, guarded content


def test_an_id_in_the_body_is_the_events_id(cli: Cli, invoice: str) -> None:
    assert cli("send", invoice, "--source", "stripe", "--json").data["event_id"] == "evt_1abc"


def test_a_body_with_its_id_sent_again_is_a_duplicate_and_that_is_explained(
    cli: Cli, invoice: str
) -> None:
    cli("send", invoice, "--source", "stripe")
    shown = cli("send", invoice, "--source", "stripe")
    assert shown.code == 0
    assert "1 duplicate" in shown.out
    assert shown.err == (
        "The body contains the id of a known event: use --new-id for a new event.\n"
    )


def test_a_new_id_takes_the_place_of_the_one_in_the_body(
    cli: Cli, inbox: Inbox, invoice: str
) -> None:
    sent = cli("send", invoice, "--source", "stripe", "--new-id", "--json").data
    assert sent["event_id"].startswith("evt_")
    assert sent["event_id"] != "evt_1abc"
    assert sent["answer"]["status"] == "accepted"
    body = json.loads(inbox.body(sent["event_id"], "stripe"))
    assert body == {**json.loads(Path(invoice).read_bytes()), "id": sent["event_id"]}


def test_a_given_id_takes_the_place_of_the_one_in_the_body(cli: Cli, invoice: str) -> None:
    sent = cli("send", invoice, "--source", "stripe", "--id", "evt_mine", "--json").data
    assert sent["event_id"] == "evt_mine"


def test_an_id_that_stands_in_the_body_twice_is_not_replaced(cli: Cli) -> None:
    twice = sample("invoice.paid.json", id="evt_1", type="invoice.paid", again="evt_1")
    shown = cli("send", twice, "--source", "stripe", "--new-id")
    assert shown.code == 1
    assert "does not stand in it as one JSON value" in shown.err


def test_content_under_another_id_is_not_run_and_that_is_explained(cli: Cli, issue: str) -> None:
    cli("send", issue, "--source", "github")
    shown = cli("send", issue, "--source", "github")
    assert "1 held" in shown.out
    assert "use --new-id for a new event" in shown.err


def test_a_new_event_of_guarded_content_says_the_same(cli: Cli, inbox: Inbox, issue: str) -> None:
    cli("send", issue, "--source", "github")
    sent = cli("send", issue, "--source", "github", "--new-id", "--json").data
    assert sent["answer"]["status"] == "accepted"
    body = inbox.body(sent["event_id"], "github")
    assert json.loads(body) == json.loads(Path(issue).read_bytes())


def test_a_known_id_with_other_content_is_a_conflict(cli: Cli, order: str) -> None:
    other = sample("paid__other.json", amount=43)
    cli("send", order, "--source", "acme", "--id", "mine")
    shown = cli("send", other, "--source", "acme", "--id", "mine")
    assert shown.code == 1
    assert "1 conflict" in shown.out
    assert "This id was received before with different content" in shown.err


# -- secrets


def test_a_secret_may_come_from_the_command_a_variable_or_standard_input(
    cli: Cli, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents().remove(SOURCES, "acme")
    monkeypatch.setenv("ACME_SECRET", SECRET)
    shown = cli("send", order, "--source", "acme", "--secret", SECRET)
    assert shown.code == 0
    assert "--secret is visible to other users of this machine" in shown.err
    assert cli("send", order, "--source", "acme", "--secret-env", "ACME_SECRET").code == 0
    assert cli("send", order, "--source", "acme", "--secret", "-", stdin=f"{SECRET}\n").code == 0


def test_on_this_machine_what_signs_may_be_kept_apart_from_the_secret(
    cli: Cli, order: str, checkout: Path
) -> None:
    kept = checkout.parent / ".local" / FILE
    kept.parent.mkdir()
    kept.write_text(
        json.dumps({"acme": "public", f"acme{SIGNING}": "what-signs-and-is-not-stored"})
    )
    assert cli("send", order, "--source", "acme").code == 0
    cli.local = True
    assert "401" in cli("send", order, "--source", "acme").out


def test_a_wrong_secret_is_refused_and_an_error(cli: Cli, order: str) -> None:
    shown = cli("send", order, "--source", "acme", "--secret", "another-secret-altogether")
    assert shown.code == 1
    assert "401" in shown.out
    assert "1 rejected" in shown.out


def test_a_secret_that_is_not_set_says_how_to_set_it(cli: Cli, order: str) -> None:
    documents().remove(SOURCES, "acme")
    shown = cli("send", order, "--source", "acme")
    assert shown.err == (
        "webhookctl: the secret acme is not set: run `webhookctl secrets set acme`\n"
    )


def test_a_variable_that_is_not_set_is_an_error(cli: Cli, order: str) -> None:
    shown = cli("send", order, "--source", "acme", "--secret-env", "NO_SUCH")
    assert "the variable NO_SUCH is not set" in shown.err


@pytest.mark.parametrize("form", [[], ["--json"], ["--debug"]])
def test_no_secret_and_no_signature_is_ever_printed(cli: Cli, order: str, form: list[str]) -> None:
    for given in (["--secret", SECRET], ["--secret", "-"], []):
        shown = cli("send", order, "--source", "acme", *given, *form, stdin=SECRET)
        assert SECRET not in shown.out + shown.err
        assert "signature" not in shown.out.lower()


# -- what can go wrong


def test_an_unknown_source_names_those_there_are(cli: Cli, order: str) -> None:
    shown = cli("send", order, "--source", "acne")
    assert shown.code == 2
    assert "no source acne in inbox.toml; known sources: acme, github, stripe, hashed" in shown.err


def test_a_source_that_this_machine_has_not_loaded_yet_asks_to_wait(cli: Cli) -> None:
    cli.local = True
    shown = cli("send", sample("any.json"), "--source", "hashed")
    assert shown.code == 1
    assert (
        "hashed is not loaded yet: wait until `webhookctl dev` prints `new source: …/hashed`"
        in (shown.err)
    )


def test_a_source_that_is_not_deployed_yet_asks_for_a_deployment(cli: Cli) -> None:
    shown = cli("send", sample("any.json"), "--source", "hashed", "--secret", SECRET)
    assert shown.code == 1
    assert "no source hashed is deployed; known sources: acme, github, stripe; deploy" in shown.err


def test_a_missing_file_is_one_line(cli: Cli) -> None:
    shown = cli("send", "nothing.json", "--source", "acme")
    assert (shown.code, shown.err) == (1, "webhookctl: nothing.json: No such file or directory\n")


def test_a_body_without_the_providers_id_is_refused_here(cli: Cli) -> None:
    shown = cli("send", sample("invoice.json", type="invoice.paid"), "--source", "stripe")
    assert shown.code == 1
    assert "invoice.json is no event of stripe" in shown.err


@pytest.mark.parametrize("more", [["--new-id"], ["second.json"]])
def test_an_id_names_one_new_event(cli: Cli, order: str, more: list[str]) -> None:
    shown = cli("send", order, *more, "--source", "acme", "--id", "mine")
    assert shown.code == 2


def test_a_closed_port_is_an_error_for_each_delivery(cli: Cli, order: str) -> None:
    shown = cli(
        *("send", order, "--source", "acme", "--url", "http://127.0.0.1:1/webhooks/acme"),
        *("--times", "2"),
    )
    assert shown.code == 1
    assert shown.out.count("no answer: [Errno 111] Connection refused") == 2
    assert "2 deliveries: 2 without an answer." in shown.out


@pytest.mark.parametrize("url", ["127.0.0.1:8787", "ftp://127.0.0.1/", "file:///etc/passwd"])
def test_an_address_that_is_none_is_an_error(cli: Cli, order: str, url: str) -> None:
    shown = cli("send", order, "--source", "acme", "--url", url)
    assert shown.code == 1
    assert f"{url} is no address: begin it with https:// or http://" in shown.err


def test_with_address_and_secret_no_target_is_needed(
    cli: Cli, inbox: Inbox, order: str, served: str
) -> None:
    url = f"{served}/webhooks/acme"
    shown = cli("send", order, "--source", "acme", "--url", url, "--secret", SECRET)
    assert shown.code == 0
    assert cli.selected == []


def test_an_answer_that_is_no_json_is_shown_as_it_is(cli: Cli, order: str) -> None:
    with serving(lambda *_: (502, "Bad Gateway\x1b[2J")) as address:
        shown = cli("send", order, "--source", "acme", "--url", address)
        assert shown.code == 1
        assert "Bad Gateway\\x1b[2J" in shown.out
        assert "1 delivery: 1 HTTP 502." in shown.out


def test_outside_of_a_checkout_it_says_where_to_go(
    cli: Cli, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    shown = cli("send", order, "--source", "acme")
    assert shown.code == 1
    assert "no functions/inbox.toml here or above" in shown.err
