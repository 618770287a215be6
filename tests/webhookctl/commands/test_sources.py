"""`sources reconcile`: what a provider sent and the ledger does not have, and how it comes in."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.webhookctl.commands.provider_apis import (
    TOKEN,
    GitHub,
    ProviderApi,
    Said,
    Stripe,
    answering,
    stamp,
)
from tests.webhookctl.commands.stage import MANIFEST, Cli, Inbox, Result, documents
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.model import EventStatus, StoredEvent
from webhook_inbox.domain.secret_document import TOOLS

HOOK = "octo/app/7"


@pytest.fixture
def inbox(inbox: Inbox) -> Inbox:
    """An inbox with the tokens of two providers' APIs."""
    for name in ("github-api", "stripe-api"):
        documents().set(TOOLS, name, TOKEN)
    return inbox


@pytest.fixture
def hub(inbox: Inbox, served: str) -> GitHub:
    """GitHub, whose deliveries the inbox gets unless they are lost."""
    return GitHub(inbox, served)


@pytest.fixture
def pay(inbox: Inbox, served: str) -> Stripe:
    """Stripe, whose deliveries the inbox gets unless they are lost."""
    return Stripe(inbox, served)


def run(cli: Cli, api: ProviderApi, *arguments: str, hook: str = "") -> Result:
    """Calls `sources reconcile`, ten minutes after what happened last."""
    api.inbox.clock.advance(minutes=10)
    named = hook or (HOOK if isinstance(api, GitHub) else "we_1")
    with answering(api) as address:
        given = ("--hook", named, "--api", address, *arguments)
        return cli("sources", "reconcile", api.source, *given)


def missing(cli: Cli, api: ProviderApi, *arguments: str) -> list[str]:
    result = run(cli, api, "--json", *arguments)
    assert result.code == 0, result.err
    return [entry["event_id"] for entry in result.data["missing"]]


def stored(inbox: Inbox, source: str, event_id: str) -> StoredEvent:
    overview = inbox.ledger.overview(source, event_id, now=inbox.now, with_body=True)
    assert overview is not None
    return overview.event


def test_what_github_could_not_deliver_is_listed_oldest_first(cli: Cli, hub: GitHub) -> None:
    for guid, lost in (("g-1", True), ("g-2", False), ("g-3", True)):
        hub.deliver(guid, lost=lost)
        hub.inbox.clock.advance(minutes=1)

    shown = run(cli, hub)

    assert shown.code == 0, shown.err
    lines = [line.split() for line in shown.out.splitlines()]
    assert lines[0] == ["AT", "EVENT_ID", "TYPE", "ANSWERED"]
    assert [line[1:] for line in lines[1:]] == [
        ["g-1", "issues.opened", "503"],
        ["g-3", "issues.opened", "503"],
    ]
    assert "2 of 3 events in the log missing. Add --yes" in shown.err


def test_nothing_is_asked_for_again_unless_it_is_said(cli: Cli, hub: GitHub) -> None:
    hub.deliver("g-1", lost=True)

    assert missing(cli, hub) == ["g-1"]
    assert hub.times("POST") == 0


def test_fetch_brings_it_in_by_the_way_of_every_delivery(cli: Cli, hub: GitHub) -> None:
    hub.deliver("g-1", lost=True)
    hub.deliver("g-2", "push", lost=True)

    shown = run(cli, hub, "--yes", "--json")

    assert shown.code == 0, shown.err
    assert [entry["redelivery"] for entry in shown.data["missing"]] == ["asked", "asked"]
    event = stored(hub.inbox, "github", "g-1")
    assert event.body == hub.sent["g-1"][1]
    assert event.runs == ("github.announce",)
    hub.inbox.work()
    assert hub.inbox.overview("g-1", "github").status is EventStatus.DONE
    assert missing(cli, hub) == []


def test_fetching_what_came_meanwhile_is_a_duplicate(cli: Cli, hub: GitHub) -> None:
    hub.deliver("g-1", lost=True)
    run(cli, hub, "--yes")
    hub.inbox.work()

    hub.deliver("g-1")
    hub.inbox.work()

    assert hub.log[0]["status_code"] == 200
    assert hub.inbox.handled == [("github.announce", "g-1", 1)]


def test_a_log_of_many_pages_is_read_as_far_as_the_window_reaches(cli: Cli, hub: GitHub) -> None:
    hub.page = 2
    for number in range(12):
        hub.deliver(f"g-{number}", lost=True)
        hub.inbox.clock.advance(hours=1)

    assert missing(cli, hub, "--since", "5h") == ["g-8", "g-9", "g-10", "g-11"]
    # The third page is the first that is too old from end to end.
    assert [asked.query.get("cursor") for asked in hub.asked] == [None, "v1_2", "v1_4"]
    assert {asked.headers["host"].partition(":")[0] for asked in hub.asked} == {"127.0.0.1"}


def test_what_is_younger_than_until_may_be_on_its_way(cli: Cli, hub: GitHub) -> None:
    hub.deliver("g-1", lost=True)
    hub.inbox.clock.advance(minutes=10)
    hub.deliver("g-2", lost=True)

    assert missing(cli, hub, "--until", "15m") == ["g-1"]


def test_a_delivery_that_was_tried_again_is_one_event_with_its_last_answer(
    cli: Cli, hub: GitHub
) -> None:
    hub.deliver("g-1", lost=True)
    hub.log[0] |= {"status_code": 500}
    hub.deliver("g-1", lost=True)

    [entry] = run(cli, hub, "--json", "--yes").data["missing"]

    assert entry["answered"] == 503
    [asked] = [asked for asked in hub.asked if asked.method == "POST"]
    assert asked.path == f"/repos/octo/app/hooks/7/deliveries/{12345679}/attempts"


def test_an_organizations_webhook_has_a_log_of_its_own(cli: Cli, inbox: Inbox, served: str) -> None:
    hub = GitHub(inbox, served, "/orgs/octo/hooks/7")
    hub.deliver("g-1", lost=True)

    shown = run(cli, hub, "--json", "--yes", hook="octo/7")

    assert [entry["redelivery"] for entry in shown.data["missing"]] == ["asked"]
    assert inbox.overview("g-1", "github").event.type == "issues.opened"


def test_types_that_the_source_does_not_store_are_not_missing(cli: Cli, hub: GitHub) -> None:
    stored = SourceSpec("github", "github", "github", types=("issues.*", "push"))
    cli.manifest = replace(MANIFEST, sources={**MANIFEST.sources, "github": stored})
    for guid, type_ in (("g-1", "ping"), ("g-2", "star.created"), ("g-3", "issues.closed")):
        hub.deliver(guid, type_, lost=True)

    data = run(cli, hub, "--json").data

    assert [entry["event_id"] for entry in data["missing"]] == ["g-3"]
    assert (data["looked_at"], data["unwanted"]) == (3, 2)


def test_json_is_one_object_that_tells_the_window(cli: Cli, hub: GitHub) -> None:
    hub.deliver("g-1", lost=True)

    assert run(cli, hub, "--json", "--since", "2h").data == {
        "source": "github",
        "since": "2025-12-31T22:10:00.000Z",
        "until": "2026-01-01T00:05:00.000Z",
        "looked_at": 1,
        "unwanted": 0,
        "missing": [
            {
                "event_id": "g-1",
                "type": "issues.opened",
                "at": "2026-01-01T00:00:00.000Z",
                "answered": 503,
                "redelivery": None,
            }
        ],
    }


def test_a_look_further_back_than_the_log_goes_says_so(cli: Cli, hub: GitHub) -> None:
    assert "covers only 3 days" in run(cli, hub, "--since", "4d").err
    assert "covers only" not in run(cli, hub, "--since", "3d").err


def test_stripes_events_are_those_that_the_endpoint_wants(cli: Cli, pay: Stripe) -> None:
    pay.enabled = ["invoice.paid", "charge.refunded"]
    pay.happen("evt_1", lost=True)
    pay.happen("evt_2", "customer.created", lost=True)
    pay.happen("evt_3")
    pay.happen("evt_4", "charge.refunded", lost=True)

    assert missing(cli, pay) == ["evt_1", "evt_4"]
    assert pay.times("POST") == 0


def test_stripe_sends_again_what_is_missing_and_what_comes_is_signed(cli: Cli, pay: Stripe) -> None:
    pay.happen("evt_1", lost=True)

    [entry] = run(cli, pay, "--yes", "--json").data["missing"]

    assert entry == {
        "event_id": "evt_1",
        "type": "invoice.paid",
        "at": "2026-01-01T00:00:00.000Z",
        "answered": None,
        "redelivery": "asked",
    }
    event = stored(pay.inbox, "stripe", "evt_1")
    # The request that the endpoint receives, not the entry of the list.
    assert b"api_version" in event.body
    assert event.signature_hash
    assert missing(cli, pay) == []


def test_stripes_list_is_read_page_by_page(cli: Cli, pay: Stripe) -> None:
    pay.page = 2
    for number in range(5):
        pay.happen(f"evt_{number}", lost=True)
        pay.inbox.clock.advance(seconds=1)

    assert missing(cli, pay) == [f"evt_{number}" for number in range(5)]
    lists = [asked.query for asked in pay.asked if asked.path == "/v1/events"]
    assert [query.get("starting_after") for query in lists] == [None, "evt_3", "evt_1"]


def test_stripes_window_is_asked_for_and_not_read_past(cli: Cli, pay: Stripe) -> None:
    pay.happen("evt_1", lost=True)
    pay.inbox.clock.advance(hours=3)
    pay.happen("evt_2", lost=True)

    assert missing(cli, pay, "--since", "1h") == ["evt_2"]


def test_requests_that_change_something_are_a_second_apart(cli: Cli, hub: GitHub) -> None:
    for number in range(4):
        hub.deliver(f"g-{number}", lost=True)
    before = hub.inbox.now + timedelta(minutes=10)

    run(cli, hub, "--yes")

    assert hub.inbox.now - before >= timedelta(seconds=3)


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"retry-after": "7"}, {}, 7),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "in 40"}, {}, 40),
        ({}, {"message": "You have exceeded a secondary rate limit."}, 60),
    ],
)
@pytest.mark.parametrize("status", [403, 429])
def test_a_limit_is_waited_out(
    cli: Cli, hub: GitHub, status: int, headers: dict[str, str], body: Any, seconds: int
) -> None:
    start = hub.inbox.now + timedelta(minutes=10)
    reset = {"x-ratelimit-reset": stamp(start + timedelta(seconds=seconds))}
    headers |= reset if "x-ratelimit-reset" in headers else {}
    hub.instead = [Said(status, body, headers)]

    assert missing(cli, hub) == []
    assert hub.times("GET") == 2
    assert hub.inbox.now - start == timedelta(seconds=seconds)


def test_the_last_request_that_is_left_is_used_and_then_it_is_waited(cli: Cli, hub: GitHub) -> None:
    hub.page = 1
    hub.deliver("g-1", lost=True)
    start = hub.inbox.now + timedelta(minutes=10)
    last = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": stamp(start + timedelta(seconds=9))}
    hub.instead = [Said(200, hub.log, last)]

    assert run(cli, hub, "--yes").code == 0
    assert hub.times("POST") == 1
    assert hub.inbox.now - start >= timedelta(seconds=9)


def test_a_limit_that_is_long_to_wait_for_ends_it_and_tells_when(cli: Cli, hub: GitHub) -> None:
    hub.instead = [Said(429, {}, {"retry-after": "1800"})]

    shown = run(cli, hub)

    assert shown.code == 1
    assert "github limits requests until 00:40:00 UTC: run the command again then" in shown.err
    assert hub.times("GET") == 1


def test_a_limit_in_the_middle_leaves_the_rest_for_the_next_time(cli: Cli, hub: GitHub) -> None:
    for number in range(3):
        hub.deliver(f"g-{number}", lost=True)
    # The list, the first one, and then no more.
    hub.instead = [None, None, Said(429, {}, {"retry-after": "1800"})]

    shown = run(cli, hub, "--yes", "--json")

    assert shown.code == 1
    assert [entry["redelivery"] for entry in shown.data["missing"]] == ["asked", *["not asked"] * 2]
    assert missing(cli, hub, "--yes") == ["g-1", "g-2"]
    assert missing(cli, hub) == []


def test_one_that_is_refused_does_not_keep_the_others(cli: Cli, hub: GitHub) -> None:
    hub.deliver("g-1", lost=True)
    hub.deliver("g-2", lost=True)
    hub.instead = [None, Said(422, {"message": "Delivery is too old"})]

    shown = run(cli, hub, "--yes")

    assert shown.code == 1
    assert "refused, 422: Delivery is too old" in shown.out
    assert missing(cli, hub) == ["g-1"]


def test_a_failure_that_passes_is_not_noticed(cli: Cli, hub: GitHub) -> None:
    hub.deliver("g-1", lost=True)
    hub.instead = [Said(502), Said(500)]

    assert missing(cli, hub) == ["g-1"]
    assert hub.times("GET") == 3


def test_a_failure_that_stays_ends_it(cli: Cli, hub: GitHub) -> None:
    hub.instead = [Said(502)] * 9

    shown = run(cli, hub)

    assert shown.code == 1
    assert "failed 5 times: status 502; try again in a moment" in shown.err
    assert hub.times("GET") == 5


def test_an_api_that_does_not_answer_ends_it(cli: Cli, hub: GitHub) -> None:
    with answering(hub) as address:
        pass

    shown = cli("sources", "reconcile", "github", "--hook", HOOK, "--api", address)

    assert shown.code == 1
    assert "no response" in shown.err
    assert shown.err.count("\n") == 1


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (Said(401, {"message": f"Bad credentials {TOKEN}"}), "rejects the token"),
        (Said(403, {"message": "Resource not accessible"}), "403: Resource not accessible: check"),
        (Said(404, {"message": "Not Found"}), "404: Not Found: check that --hook names"),
        (Said(404, b"<html>"), "404: no message"),
        (Said(404, {"error": {"message": "No such webhook"}}), "404: No such webhook"),
        (Said(404, {"error": "odd"}), "404: no message"),
        (Said(200, b"<html>"), "not JSON"),
        (Said(200, b"[" * 100_000), "not JSON"),
        (Said(200, {"message": "odd"}), "not a list of deliveries"),
        (Said(200, [{"id": 1}]), "not in GitHub's documented format"),
        (Said(200, ["odd"]), "not in GitHub's documented format"),
    ],
)
def test_an_answer_that_cannot_be_used_is_one_line(
    cli: Cli, hub: GitHub, said: Said, words: str
) -> None:
    hub.instead = [said]

    shown = run(cli, hub)

    assert (shown.code, shown.out) == (1, "")
    assert words in shown.err
    assert shown.err.count("\n") == 1
    assert TOKEN not in shown.err


@pytest.mark.parametrize(
    ("endpoint", "events", "words"),
    [
        ({"id": "we_1"}, None, "not a webhook endpoint"),
        ({"enabled_events": ["*"]}, {"data": 1}, "not in Stripe's documented format"),
        (
            {"enabled_events": ["*"]},
            {"data": [{"id": "evt_1"}], "has_more": False},
            "documented format",
        ),
        ({"enabled_events": ["*"]}, [], "not in Stripe's documented format"),
    ],
)
def test_an_answer_of_stripes_that_cannot_be_used_is_one_line(
    cli: Cli, pay: Stripe, endpoint: Any, events: Any, words: str
) -> None:
    pay.instead = [Said(200, endpoint), Said(200, events)]

    shown = run(cli, pay)

    assert shown.code == 1
    assert words in shown.err


def test_a_redirect_is_not_followed_since_the_token_would_go_along(cli: Cli, hub: GitHub) -> None:
    thief = GitHub(hub.inbox, "http://127.0.0.1:1")
    with answering(thief) as elsewhere:
        hub.instead = [Said(301, {}, {"location": f"{elsewhere}/repos/octo/app/hooks/7"})]
        shown = run(cli, hub)

    assert shown.code == 1
    assert "301: moved" in shown.err
    assert thief.asked == []


@pytest.mark.parametrize("address", ["http://api.example", "ftp://api.example", "api.example", ""])
def test_a_token_is_sent_over_https_alone(cli: Cli, inbox: Inbox, address: str) -> None:
    shown = cli("sources", "reconcile", "github", "--hook", HOOK, "--api", address or "https://")

    assert shown.code == 1
    assert "not a safe address for a token" in shown.err


def test_a_token_that_is_not_set_names_the_command_that_sets_it(cli: Cli, hub: GitHub) -> None:
    documents().remove(TOOLS, "github-api")
    shown = run(cli, hub)
    assert shown.code == 1
    assert "secrets set github-api --create`" in shown.err
    assert hub.asked == []

    made = cli("secrets", "set", "github-api", "--create", stdin=TOKEN)

    assert made.code == 0, made.err
    assert missing(cli, hub) == []


@pytest.mark.parametrize("value", ["two words", "line\nbreak", "tökén"])
def test_a_secret_that_is_no_token_is_not_sent(cli: Cli, hub: GitHub, value: str) -> None:
    documents().set(TOOLS, "github-api", value)

    shown = run(cli, hub)

    assert shown.code == 1
    assert "the secret github-api is not a token" in shown.err
    assert value not in shown.err
    assert hub.asked == []


def test_another_secret_can_hold_the_token(cli: Cli, hub: GitHub) -> None:
    documents().set(TOOLS, "github-api", "old")

    assert missing(cli, hub, "--token", "stripe-api") == []


@pytest.mark.parametrize(
    ("source", "hook", "words"),
    [
        ("acme", HOOK, "hmac has no delivery log to query; supported: github, stripe"),
        ("nobody", HOOK, "no source nobody; known sources: acme, github, stripe"),
        ("github", "octo/app", "--hook octo/app is no webhook of github: use OWNER/REPO/ID"),
        ("github", "octo/../7", "is no webhook of github"),
        ("github", "octo/app/7/deliveries", "is no webhook of github"),
        ("stripe", "evt_1", "--hook evt_1 is no webhook of stripe: use the endpoint's id"),
        ("stripe", "we_1/../x", "is no webhook of stripe"),
    ],
)
def test_a_source_or_webhook_that_cannot_be_asked_is_named(
    cli: Cli, inbox: Inbox, source: str, hook: str, words: str
) -> None:
    shown = cli("sources", "reconcile", source, "--hook", hook)

    assert shown.code == (2 if words.startswith("no source") else 1)
    assert words in shown.err


def test_a_webhooks_form_is_looked_at_before_the_token(cli: Cli, inbox: Inbox) -> None:
    shown = cli("sources", "reconcile", "github", "--hook", "foo", "--token", "of-nobody")

    assert shown.code == 1
    assert "--hook foo is no webhook of github" in shown.err
    assert "token" not in shown.err


def test_a_window_that_ends_before_it_begins_is_a_wrong_call(cli: Cli, hub: GitHub) -> None:
    shown = run(cli, hub, "--since", "5m", "--until", "1h")

    assert shown.code == 2
    assert "--since 5m is not before --until 1h" in shown.err
