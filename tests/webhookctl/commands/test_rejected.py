"""`rejected`: what failed verification is looked at, judged again, and let in once."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.docs.runbook import sections, words_of
from tests.unit.support.world import SECRET
from tests.webhookctl.commands.stage import MANIFEST, PREFIX, Cli, Inbox, Result, client, documents
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.secret_document import SOURCES
from webhook_inbox.domain.secrets import TOKEN_KEY
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ingest.receipt import IngestOutcome, Receipt

RIGHT = "the-secret-that-the-provider-has"
TOKEN = "a-long-random-token-of-the-bot"
BOT = '\n[sources.bot]\nprovider = "telegram"\n'
UPDATE = b'{"update_id": 7, "message": {"date": 1795248000}}'

pytestmark = pytest.mark.usefixtures("checkout")


def set_secret(name: str, value: str) -> None:
    """Sets a secret as `secrets set` does, today and for the command line."""
    if name == TOKEN_KEY:
        client("secretsmanager").create_secret(Name=PREFIX + name, SecretString=value)
    else:
        documents().set(SOURCES, name, value)


def reject(inbox: Inbox, event_id: str = "evt-1", **parts: Any) -> Receipt:
    """Delivers what the provider signed with another secret than the inbox has."""
    receipt = inbox.deliver(event_id, secret=RIGHT, **parts)
    assert receipt.outcome is IngestOutcome.REJECTED
    return receipt


def ids(cli: Cli, *options: str) -> list[str]:
    """Returns the ids that are listed, newest first."""
    return [each["id"] for each in cli("rejected", "list", "--json", *options).objects]


# -- list


def test_what_failed_verification_is_listed_with_what_to_do(cli: Cli, inbox: Inbox) -> None:
    reject(inbox)
    shown = cli("rejected", "list")
    assert shown.code == 0
    head, row = (line.split() for line in shown.out.splitlines())
    assert head == ["RECEIVED", "SOURCE", "ID", "REASON", "BYTES", "STATE"]
    assert [row[1], *row[3:]] == ["acme", "invalid-signature", "45", "kept"]
    assert "`webhookctl rejected release`" in shown.err


def test_the_newest_come_first_and_no_more_than_asked_for(cli: Cli, inbox: Inbox) -> None:
    for n in range(3):
        reject(inbox, f"evt-{n}", body=b'{"n": %d}' % n)
    listed = ids(cli)
    assert listed == sorted(listed, reverse=True)
    assert ids(cli, "--limit", "2") == listed[:2]


def test_a_list_reads_no_further_than_its_limit(cli: Cli, inbox: Inbox) -> None:
    """All deliveries of a source were read, oldest first, whatever the limit."""
    for n in range(20):
        reject(inbox, f"evt-{n}", body=b'{"n": %d}' % n)
    read: list[str] = []
    query = inbox.table.query

    def counted(pk: str, **parts: Any) -> Any:
        for row in query(pk, **parts):
            read.append(row["sk"])
            yield row

    inbox.table.query = counted  # type: ignore[method-assign]
    assert len(ids(cli, "--limit", "3", "--source", "acme")) == 3
    assert len(read) <= 4


def flood(inbox: Inbox, count: int) -> None:
    for n in range(count):
        inbox.deliver(f"evt-{n}", secret=RIGHT, body=b'{"n": %d}' % n)


def test_a_minute_whose_cap_excluded_deliveries_is_named(cli: Cli, inbox: Inbox) -> None:
    flood(inbox, 59)
    assert "limit" not in cli("rejected", "list", "--source", "acme", "--limit", "100").err
    flood(inbox, 3)
    shown = cli("rejected", "list", "--source", "acme", "--limit", "100")
    assert len(shown.out.splitlines()) == 61
    told = (
        "acme reached the limit of 60 stored deliveries in the minute 2026-01-01T00:00Z:"
        " further ones may have been rejected without being stored.\n"
    )
    assert told in shown.err
    assert told in cli("rejected", "list", "--json").err


def test_a_cap_outside_the_listed_period_is_not_named(cli: Cli, inbox: Inbox) -> None:
    flood(inbox, 60)
    inbox.clock.advance(minutes=5)
    reject(inbox, "later")
    assert "limit of" not in cli("rejected", "list", "--limit", "1").err
    assert "limit of" not in cli("rejected", "list", "--since", "2m").err
    assert "T00:00Z: further" in cli("rejected", "list", "--since", "10m").err
    assert "limit of" not in cli("rejected", "list", "--source", "github", "--since", "10m").err


def test_many_full_minutes_are_counted(cli: Cli, inbox: Inbox) -> None:
    for _ in range(5):
        flood(inbox, 60)
        inbox.clock.advance(minutes=1)
    told = cli("rejected", "list", "--since", "10m").err
    assert "2026-01-01T00:04Z, 2026-01-01T00:03Z, 2026-01-01T00:02Z and 2 earlier minutes" in told


def test_they_are_chosen_by_source_reason_and_time(cli: Cli, inbox: Inbox) -> None:
    reject(inbox)
    inbox.clock.advance(minutes=10)
    inbox.deliver(headers={"x-acme-timestamp": "yesterday"})
    inbox.deliver("g", source="github", secret=RIGHT)
    assert len(ids(cli)) == 3
    assert len(ids(cli, "--source", "github")) == 1
    assert len(ids(cli, "--rejected-for", "malformed")) == 1
    assert len(ids(cli, "--rejected-for", "malformed", "--rejected-for", "invalid-signature")) == 3
    assert len(ids(cli, "--since", "5m")) == 2
    assert len(ids(cli, "--until", "5m")) == 1


def test_after_a_week_they_are_gone(cli: Cli, inbox: Inbox) -> None:
    reject(inbox)
    inbox.clock.advance(minutes=7 * 24 * 60)
    shown = cli("rejected", "list")
    assert (shown.code, shown.out, shown.err) == (0, "", "No rejected deliveries found.\n")


def test_an_unknown_source_is_named(cli: Cli) -> None:
    shown = cli("rejected", "list", "--source", "acne")
    assert shown.code == 2
    assert "no source acne; known sources: acme" in shown.err


# -- show


def test_one_is_shown_without_what_proves_who_sent_it(cli: Cli, inbox: Inbox) -> None:
    reject(inbox)
    (id_,) = ids(cli)
    shown = cli("rejected", "show", id_)
    assert shown.code == 0
    assert "no live secret verifies this signature" in shown.out
    signature = inbox.rows("rejected#acme")[0]["headers"]["x-acme-signature"]
    assert signature not in shown.out
    lines = [" ".join(line.split()) for line in shown.out.splitlines()]
    assert "x-acme-signature (stored, not shown)" in lines
    assert "x-acme-type paid" in lines


@pytest.mark.parametrize("form", [[], ["--json"], ["--body"]])
def test_no_form_shows_a_signature(cli: Cli, inbox: Inbox, form: list[str]) -> None:
    reject(inbox)
    signature = inbox.rows("rejected#acme")[0]["headers"]["x-acme-signature"]
    (id_,) = ids(cli)
    for command in (["list"], ["show", id_, *form], ["release"], ["release", "--yes"]):
        shown = cli("rejected", *command, *(form if form == ["--json"] else []))
        assert signature not in shown.out + shown.err


def test_without_a_manifest_no_header_of_the_provider_is_shown(cli: Cli, inbox: Inbox) -> None:
    reject(inbox)
    cli.manifest = None
    shown = cli("rejected", "show", *ids(cli), "--json").data
    assert shown["headers"]["x-acme-id"] == "(stored, not shown)"
    assert shown["headers"]["content-type"] == "application/json"


def test_the_body_is_printed_where_it_is_asked_for(cli: Cli, inbox: Inbox) -> None:
    reject(inbox, body=b'{"amount": 4242}')
    (id_,) = ids(cli)
    assert "4242" not in cli("rejected", "show", id_).out
    assert cli("rejected", "show", id_, "--body").out.endswith('{"amount": 4242}\n')
    assert cli("rejected", "show", id_, "--body", "--json").data["body"] == '{"amount": 4242}'


@pytest.mark.parametrize("command", ["show", "release"])
def test_an_id_that_is_not_there_is_one_line(cli: Cli, command: str) -> None:
    set_secret("acme", SECRET)
    shown = cli("rejected", command, "0-1")
    assert (shown.code, shown.out) == (1, "")
    assert "no rejected delivery 0-1: search with `webhookctl rejected list`" in shown.err


# -- release, the dry run


def test_what_still_fails_says_why_and_exits_with_1(cli: Cli, inbox: Inbox) -> None:
    set_secret("acme", SECRET)
    reject(inbox)
    shown = cli("rejected", "release")
    assert shown.code == 1
    assert "invalid-signature: no live secret verifies this signature" in shown.out
    assert "1 delivery: 1 invalid." in shown.out
    assert "not signed with its current secrets" in shown.err


def test_a_day_later_it_is_judged_as_of_when_it_came(cli: Cli, inbox: Inbox) -> None:
    reject(inbox)
    inbox.clock.advance(minutes=24 * 60)
    set_secret("acme", RIGHT)
    shown = cli("rejected", "release")
    assert shown.code == 0
    assert "1 delivery: 1 valid." in shown.out
    assert shown.err == "Add --yes to accept the valid ones.\n"


def test_what_was_stale_when_it_came_stays_so(cli: Cli, inbox: Inbox) -> None:
    old = inbox.delivery()
    inbox.clock.advance(minutes=10)
    receipt = inbox.ingest.receive(replace(old, received_at=inbox.now))
    assert receipt.reason == "stale"
    set_secret("acme", SECRET)
    assert cli("rejected", "release", "--json").data["reason"] == "stale"


def test_reverifying_writes_nothing(cli: Cli, inbox: Inbox) -> None:
    reject(inbox)
    set_secret("acme", RIGHT)
    before = inbox.rows("rejected#")
    cli("rejected", "release")
    assert inbox.rows("rejected#") == before
    assert inbox.rows("event#") == []
    assert inbox.messages() == []


def test_without_a_secret_it_is_said_which_is_missing(cli: Cli, inbox: Inbox) -> None:
    reject(inbox)
    shown = cli("rejected", "release", "--json")
    assert (shown.code, shown.data["reason"]) == (1, "no-secret")


def test_a_source_that_left_the_configuration_is_named(
    cli: Cli, inbox: Inbox, checkout: Path
) -> None:
    reject(inbox)
    text = (checkout / "inbox.toml").read_text()
    (checkout / "inbox.toml").write_text(text.replace("[sources.acme]", "[sources.other]"))
    shown = cli("rejected", "release")
    assert shown.code == 1
    assert "inbox.toml has no source acme" in shown.err


# -- release


def test_what_is_valid_now_goes_the_normal_path(cli: Cli, inbox: Inbox) -> None:
    reject(inbox)
    set_secret("acme", RIGHT)
    inbox.clock.advance(minutes=60)
    shown = cli("rejected", "release", "--yes")
    assert shown.code == 0
    assert "1 delivery: 1 accepted." in shown.out
    inbox.work()
    assert inbox.statuses() == {"evt-1": "done"}
    assert inbox.overview().event.received_at == inbox.now
    assert ("acme.fulfil", "evt-1", 1) in inbox.handled


def test_a_release_is_one_action_and_is_in_the_history_of_each_event(
    cli: Cli, inbox: Inbox
) -> None:
    for event_id in ("evt-1", "evt-2"):
        reject(inbox, event_id)
    set_secret("acme", RIGHT)
    why = ("--reason", "the secret was wrong", "--by", "ada")
    assert (
        cli("rejected", "release", "--rejected-for", "invalid-signature", *why, "--yes").code == 0
    )
    [row] = cli("audit", "--json").objects
    assert (row["action"], row["counts"]) == ("release", {"accepted": 2})
    assert (row["reason"], row["on_behalf_of"]) == ("the secret was wrong", "ada")
    assert row["request"] == {"rejected_for": "invalid-signature"}
    for event_id in ("evt-1", "evt-2"):
        [entry] = cli("inbox", "inspect", event_id, "--json").data["history"]
        assert (entry["action"], entry["reason"]) == ("release", "the secret was wrong")
        assert (entry["counts"], entry["on_behalf_of"]) == ({"accepted": 1}, "ada")


def test_its_runs_are_those_of_the_checkout(cli: Cli, inbox: Inbox) -> None:
    reject(inbox)
    set_secret("acme", RIGHT)
    assert cli("rejected", "release", "--yes", "--json").data["handlers"] == ["acme.fulfil"]


def test_released_twice_it_is_one_event_run_once(cli: Cli, inbox: Inbox) -> None:
    reject(inbox)
    set_secret("acme", RIGHT)
    cli("rejected", "release", "--yes")
    again = cli("rejected", "release", "--yes", "--json")
    assert (again.code, again.data["result"]) == (0, "released")
    assert len(inbox.messages()) == 1
    (kept,) = cli("rejected", "list", "--json").objects
    assert kept["released_as"] == "accepted"
    assert kept["released_by"].startswith("arn:aws:")
    assert "released" in cli("rejected", "list").out


@pytest.mark.parametrize("command", ["release --yes", "release"])
def test_one_that_was_released_before_is_named_by_its_event(
    cli: Cli, inbox: Inbox, command: str
) -> None:
    reject(inbox)
    set_secret("acme", RIGHT)
    named = cli("rejected", "release", "--yes", "--json").data["event_id"]

    shown = cli("rejected", *command.split())

    assert named
    assert cli("rejected", *command.split(), "--json").data["event_id"] == named
    (row,) = [line.split() for line in shown.out.splitlines() if "released" in line.split()]
    assert row[row.index("released") + 1] == named


def test_several_deliveries_of_one_event_are_one_event(cli: Cli, inbox: Inbox) -> None:
    reject(inbox)
    inbox.clock.advance(minutes=10)
    reject(inbox)
    set_secret("acme", RIGHT)
    results = cli("rejected", "release", "--yes", "--json")
    assert [each["result"] for each in results.objects] == ["accepted", "duplicate"]
    assert results.code == 0
    inbox.work()
    assert inbox.handled == [("acme.fulfil", "evt-1", 1)]


def test_what_the_provider_sent_again_meanwhile_is_a_duplicate(cli: Cli, inbox: Inbox) -> None:
    reject(inbox)
    set_secret("acme", RIGHT)
    inbox.vault.rotate("acme", RIGHT)
    inbox.clock.advance(minutes=20)
    assert inbox.deliver(secret=RIGHT).outcome is IngestOutcome.ACCEPTED
    inbox.work()
    assert cli("rejected", "release", "--yes", "--json").data["result"] == "duplicate"
    assert inbox.messages() == []


def test_the_runbook_accepts_what_a_second_sender_signed_with_the_old_value(
    cli: Cli, inbox: Inbox
) -> None:
    set_secret("acme", RIGHT)
    cli("secrets", "rotate", "acme", "--overlap", "1h", stdin=SECRET)
    inbox.clock.advance(hours=2)
    reject(inbox)
    given = iter(sections()["two-senders-on-one-secret"].commands)

    def give(stdin: str = "") -> Result:
        return cli(*words_of(next(given), SOURCE="acme"), stdin=stdin)

    assert "PREVIOUS_UNTIL" in give().out
    assert "invalid-signature" in give().out
    assert give(RIGHT).code == 0
    assert "1 valid" in give().out
    assert "1 accepted" in give().out
    assert give(SECRET).code == 0
    assert give().code == 0
    assert "one value" in give().out
    give()
    assert list(given) == []
    assert documents().read(SOURCES)["acme"] == (SECRET,)


@pytest.mark.parametrize("fault", list(Fault))
def test_interrupted_before_its_runs_are_sent_it_is_repeated(
    cli: Cli, inbox: Inbox, fault: Fault
) -> None:
    reject(inbox)
    set_secret("acme", RIGHT)
    inbox.plan.fail("SendMessageBatch", fault)
    broken = cli("rejected", "release", "--yes")
    assert broken.code == 1
    assert "the same command continues with the rest" in broken.err
    inbox.plan.heal()
    inbox.clock.advance(seconds=1)
    assert cli("rejected", "release", "--yes").code == 0
    inbox.work()
    assert inbox.handled == [("acme.fulfil", "evt-1", 1)]
    assert cli("rejected", "list", "--json").data["released_as"] == "duplicate"


def test_another_content_under_a_known_id_is_a_conflict(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver(body=b"other content")
    reject(inbox)
    set_secret("acme", RIGHT)
    shown = cli("rejected", "release", "--yes")
    assert shown.code == 1
    assert "1 conflict" in shown.out
    assert "`webhookctl inbox inspect evt-1`" in shown.err
    assert cli("rejected", "list", "--json").data["released_at"] is None


def test_the_invalid_stay_out_while_the_valid_go_in(cli: Cli, inbox: Inbox) -> None:
    reject(inbox)
    inbox.deliver("forged", secret="of-somebody")
    set_secret("acme", RIGHT)
    shown = cli("rejected", "release", "--yes")
    assert shown.code == 0
    assert "1 accepted, 1 invalid" in shown.out
    assert inbox.statuses().keys() == {"evt-1"}


def test_where_nothing_is_valid_it_exits_with_1(cli: Cli, inbox: Inbox) -> None:
    reject(inbox)
    set_secret("acme", "still-the-wrong-one")
    assert cli("rejected", "release", "--yes").code == 1
    assert inbox.rows("event#") == []


def test_only_the_named_one_is_released(cli: Cli, inbox: Inbox) -> None:
    reject(inbox, "one", body=b'{"n": 1}')
    reject(inbox, "two", body=b'{"n": 2}')
    set_secret("acme", RIGHT)
    assert cli("rejected", "release", "--yes", ids(cli)[0]).code == 0
    assert inbox.statuses().keys() == {"two"}


def test_a_type_that_is_not_stored_is_no_failure(cli: Cli, inbox: Inbox, checkout: Path) -> None:
    text = (checkout / "inbox.toml").read_text()
    (checkout / "inbox.toml").write_text(
        text.replace("[sources.acme]", '[sources.acme]\ntypes = ["refunded"]')
    )
    orders = checkout / "handlers" / "orders.py"
    orders.write_text(orders.read_text().replace('"paid"', '"refunded"'))
    reject(inbox)
    set_secret("acme", RIGHT)
    result = cli("rejected", "release", "--yes", "--json")
    assert (result.code, result.data["result"]) == (0, "ignored")
    assert inbox.rows("event#") == []


def test_a_large_body_is_read_where_it_lies(cli: Cli, inbox: Inbox) -> None:
    body = b"".join(inbox.randomness.token().encode() for _ in range(1000))
    reject(inbox, body=body)
    assert "body_ref" in inbox.rows("rejected#acme")[0]
    set_secret("acme", RIGHT)
    assert cli("rejected", "release", "--yes").code == 0
    assert inbox.body() == body


def test_a_body_that_is_gone_is_said_to_be(cli: Cli, inbox: Inbox) -> None:
    reject(inbox, body=b"".join(inbox.randomness.token().encode() for _ in range(1000)))
    inbox.blobs.delete(inbox.rows("rejected#acme")[0]["body_ref"])
    set_secret("acme", RIGHT)
    shown = cli("rejected", "release", "--json")
    assert (shown.code, shown.data["result"]) == (1, "lost")


def test_a_lane_that_is_not_deployed_releases_nothing(
    cli: Cli, inbox: Inbox, checkout: Path
) -> None:
    handlers = checkout / "handlers" / "orders.py"
    handlers.write_text(handlers.read_text().replace('"paid", ', '"paid", lane="slow", '))
    reject(inbox)
    set_secret("acme", RIGHT)
    shown = cli("rejected", "release", "--yes")
    assert shown.code == 1
    assert "has no lane slow: deploy first" in shown.err
    assert inbox.rows("event#") == []


# -- bearer tokens


@pytest.fixture
def bot(inbox: Inbox, cli: Cli, checkout: Path) -> Inbox:
    """An inbox whose bot's token is not the one that is sent."""
    spec = SourceSpec("bot", "telegram", "bot")
    inbox.vault.rotate("bot", "the-wrong-token")
    inbox.vault.rotate(TOKEN_KEY, "a-key-that-the-stack-made")
    inbox.deploy(replace(MANIFEST, sources={**MANIFEST.sources, "bot": spec}))
    cli.urls["bot"] = "https://inbox.example/webhooks/bot"
    set_secret(TOKEN_KEY, "a-key-that-the-stack-made")
    text = (checkout / "inbox.toml").read_text()
    (checkout / "inbox.toml").write_text(text + BOT)
    return inbox


def update(inbox: Inbox) -> Receipt:
    headers = {
        "content-type": "application/json",
        "x-telegram-bot-api-secret-token": TOKEN,
    }
    path = "/webhooks/bot"
    return inbox.ingest.receive(Delivery("bot", "POST", path, "", headers, UPDATE, inbox.now))


def test_a_token_is_never_stored_and_can_be_judged_all_the_same(cli: Cli, bot: Inbox) -> None:
    assert update(bot).outcome is IngestOutcome.REJECTED
    assert TOKEN not in repr(bot.rows(""))
    set_secret("bot", TOKEN)
    assert cli("rejected", "release", "--yes").code == 0
    assert bot.overview("7", "bot").event.type
    assert TOKEN not in repr(bot.rows(""))


def test_another_token_than_that_of_today_stays_out(cli: Cli, bot: Inbox) -> None:
    update(bot)
    set_secret("bot", "still-another")
    shown = cli("rejected", "release", "--json")
    assert shown.data["reason"] == "invalid-signature"
    assert "only a hash of its token was stored" in shown.data["detail"]


def test_a_token_that_came_without_a_key_to_hash_it_with_is_not_kept(cli: Cli, bot: Inbox) -> None:
    bot.vault.remove(TOKEN_KEY)
    bot.clock.advance(minutes=2)
    update(bot)
    assert TOKEN not in repr(bot.rows(""))
    set_secret("bot", TOKEN)
    shown = cli("rejected", "release", "--json")
    assert "its token was not stored" in shown.data["detail"]


def test_when_it_came_is_part_of_its_name(cli: Cli, inbox: Inbox) -> None:
    moment = to_ms(inbox.now)
    reject(inbox)
    assert ids(cli)[0].startswith(f"{moment:013d}-")
