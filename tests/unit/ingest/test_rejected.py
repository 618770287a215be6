"""Rejected deliveries hold no secret, and a flood of forgeries hides no true one."""

import json
from base64 import b64encode
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.unit.providers import tokens
from tests.unit.providers.cases import NAMES, Case, example, recorded, signed, vectors_of
from tests.unit.providers.deliveries import NOW, provider_of
from tests.unit.support.people import person
from tests.unit.support.world import World, with_source
from webhook_inbox import providers
from webhook_inbox.domain.errors import NotPublished
from webhook_inbox.domain.manifest import Manifest, SourceSpec
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import UNAVAILABLE_FETCHER, Fetch, Fetcher, Item
from webhook_inbox.domain.provider import Sample, Verified
from webhook_inbox.domain.secrets import TOKEN_KEY
from webhook_inbox.domain.timestamps import to_ms, to_seconds
from webhook_inbox.ingest.ingest import Ingest
from webhook_inbox.ingest.receipt import IngestOutcome, Receipt
from webhook_inbox.ingest.rejected import RejectedFilter, find
from webhook_inbox.ingest.release import ReleaseVerdict, Reverification, ReverifiedDelivery
from webhook_inbox.ingest.verification import PublishedKeys, is_well_formed, verify
from webhook_inbox.ledger import payloads

TOKEN = "the-token-of-the-source"
WRONG = "an-older-token-of-the-source"
SECRET = "a-secret-of-the-provider"


class Site:
    """One source of a provider."""

    def __init__(self, world: World, name: str, secret: str = TOKEN, **settings: Any) -> None:
        self.world = world
        self.count = 0
        spec = SourceSpec("it", name, "it", settings=settings)
        self.manifest: Manifest = with_source(spec)
        self.provider = provider_of(name, settings)
        world.vault.rotate(TOKEN_KEY, "a-key-that-the-stack-made")
        if secret:
            world.vault.rotate("it", secret)
        self.ingest = Ingest(
            self.manifest,
            replace(world.ports, fetcher=signed("google-pubsub")),
            providers=providers.load,
        )

    def receive(self, delivery: Delivery) -> Receipt:
        """Receives a delivery; no two come in one millisecond."""
        self.count += 1
        moment = delivery.received_at + timedelta(milliseconds=self.count)
        return self.ingest.receive(replace(delivery, received_at=moment))

    @property
    def rows(self) -> list[Item]:
        return self.world.rows("rejected#it")

    def stored(self) -> str:
        """Returns all that is stored, bodies decoded."""
        rows = list(self.world.table)
        bodies = [payloads.unpack(r, self.world.blobs) for r in rows if "body_encoding" in r]
        return repr([rows, bodies])

    def verdicts(self, fetcher: Fetcher = UNAVAILABLE_FETCHER) -> list[ReverifiedDelivery]:
        """Re-verifies with the current secrets."""
        judge = Reverification(
            self.manifest, replace(self.world.ports, fetcher=fetcher), providers=providers.load
        )
        found = find(self.world.table, "it", RejectedFilter(), now=NOW)
        told: Any = {"by": person("me"), "reason": "the secret was wrong", "now": NOW}
        return [judge.release(one, **told) for one in list(found)]


# -- secrets in rows


def notified(*states: object, **more: object) -> Delivery:
    """Returns a request of Microsoft Graph."""
    value = [
        {"id": str(n), "changeType": "created", "clientState": s} for n, s in enumerate(states)
    ]
    body = json.dumps({"value": value, **more}).encode()
    return Delivery("it", "POST", "/webhooks/it", "", {}, body, NOW)


def test_the_client_state_of_an_accepted_request_is_stored_nowhere(world: World) -> None:
    site = Site(world, "microsoft-graph")
    assert site.receive(notified(TOKEN, TOKEN)).outcome is IngestOutcome.ACCEPTED
    assert TOKEN not in site.stored()
    (row,) = world.rows("event#it")
    value = json.loads(payloads.unpack(row, world.blobs))["value"]
    assert [item["clientState"] for item in value] == ["[secret]", "[secret]"]
    # A hash of it would confirm a guess.
    assert "signature_hash" not in row


def test_a_retry_after_a_rotation_of_the_client_state_is_the_same_event(world: World) -> None:
    site = Site(world, "microsoft-graph", secret=WRONG)
    site.receive(notified(WRONG))
    world.vault.rotate("it", TOKEN)
    world.clock.advance(minutes=2)
    assert site.receive(notified(TOKEN)).outcome is IngestOutcome.DUPLICATE


@pytest.mark.parametrize(
    "body",
    [
        '{"value":[{"id":"1","client\\u0053tate":"%s"}]}',
        '{"value":[{"id":"1","clientState":"first","clientState":"%s"}]}',
        '{"value":[{"id":"1","clientState":"%s","clientState":"%s"}]}',
        '{ "value" : [ { "clientState" :\n"%s" , "n": 1.10, "id":"1" } ] }',
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32-le"])
def test_no_spelling_of_the_body_keeps_the_client_state(
    body: str, encoding: str, world: World
) -> None:
    site = Site(world, "microsoft-graph")
    text = body.replace("%s", TOKEN)
    sent = replace(notified(), body=text.encode(encoding))
    assert site.receive(sent).outcome is IngestOutcome.ACCEPTED
    assert TOKEN not in site.stored()


def test_the_tokens_of_rich_notifications_are_stored_nowhere(world: World) -> None:
    tokens = ["eyJhbGciOi.of-the-first.tenant", "eyJhbGciOi.of-the-second.tenant"]
    site = Site(world, "microsoft-graph")
    site.receive(notified(TOKEN, validationTokens=tokens))
    site.receive(notified(WRONG, validationTokens=tokens))
    assert "tenant" not in site.stored()


@pytest.mark.parametrize("state", [WRONG, 'with "quotes" and \\ and é'])
def test_the_client_state_of_a_rejected_request_is_a_hash_until_it_is_right(
    state: str, world: World
) -> None:
    site = Site(world, "microsoft-graph")
    assert site.receive(notified(state, state)).outcome is IngestOutcome.REJECTED
    assert state not in site.stored()
    assert json.dumps(state)[1:-1] not in site.stored()
    assert [one.verdict for one in site.verdicts()] == [ReleaseVerdict.INVALID]
    assert "only a hash of its token was stored" in site.verdicts()[0].detail
    world.vault.rotate("it", state)
    assert [one.verdict for one in site.verdicts()] == [IngestOutcome.ACCEPTED]
    world.clock.advance(minutes=2)
    # The provider's own retry is the event that was released.
    assert site.receive(notified(state, state)).outcome is IngestOutcome.DUPLICATE
    assert json.dumps(state)[1:-1] not in site.stored()


@pytest.mark.parametrize("body", [b'{"value":[{"clientState":"%s"}', b'"clientState" : "%s'])
def test_a_body_that_was_cut_keeps_no_client_state(body: bytes, world: World) -> None:
    site = Site(world, "microsoft-graph")
    sent = replace(notified(), body=body.replace(b"%s", TOKEN.encode()))
    assert site.receive(sent).outcome is IngestOutcome.REJECTED
    assert TOKEN not in site.stored()


ODD_VALUES = [
    '{"a":"%s"}',
    '[["%s"],"%s"]',
    '["a]%s","%s"]',
    '["a","]%s"]',
    '["a",{"b":"%s"}]',
    '["a"x%s"]',
    "[1,%s]",
    "%s",
    '"' + "\\n" * 5000 + '%s"',
    '"%s b\\',
    '["%s',
    "[" * 2000 + '"%s"',
    "[" + '"",' * 300 + '"%s"]',
]


@pytest.mark.parametrize("value", ODD_VALUES)
@pytest.mark.parametrize("name", ["clientState", "validationTokens"])
def test_no_form_of_value_keeps_a_token(name: str, value: str, world: World) -> None:
    site = Site(world, "microsoft-graph", secret=WRONG)
    body = '{"value":[{}],"id":1,' + f'"{name}":{value.replace("%s", TOKEN)}' + "}"
    assert site.receive(replace(notified(), body=body.encode())).outcome is IngestOutcome.REJECTED
    assert TOKEN not in site.stored()
    assert '"id":1' in site.stored()


def test_a_client_state_that_is_null_is_shown(world: World) -> None:
    site = Site(world, "microsoft-graph")
    body = b'{"value":[{"clientState": null,"id":"1"}]}'
    site.receive(replace(notified(), body=body))
    assert body.decode() in site.stored()


def test_a_body_that_cannot_be_verified_is_not_searched_for_tokens(world: World) -> None:
    site = Site(world, "microsoft-graph")
    body = b'{"clientState":"%s","a":[%s]}' % (WRONG.encode(), b",".join([b"0"] * 160_000))
    assert site.receive(replace(notified(), body=body)).reason == "malformed"
    (row,) = site.rows
    assert payloads.unpack(row, world.blobs) == b""


@pytest.mark.parametrize("value", ODD_VALUES[:5] + ODD_VALUES[12:])
def test_an_accepted_request_keeps_no_token_of_any_form(value: str, world: World) -> None:
    site = Site(world, "microsoft-graph")
    given = f'{{"validationTokens":{value.replace("%s", "eyJ.the.jwt")},'
    body = given + notified(TOKEN).body.decode()[1:]
    assert site.receive(replace(notified(), body=body.encode())).outcome is IngestOutcome.ACCEPTED
    assert "eyJ.the.jwt" not in site.stored()
    assert TOKEN not in site.stored()
    (row,) = world.rows("event#it")
    assert json.loads(payloads.unpack(row, world.blobs))["value"][0]["id"] == "0"


def test_more_client_states_than_a_batch_has_are_hidden(world: World) -> None:
    site = Site(world, "microsoft-graph")
    assert site.receive(notified(*[WRONG] * 10_001)).outcome is IngestOutcome.REJECTED
    assert WRONG not in site.stored()


def connected(query: str = "", secret: str = SECRET) -> Delivery:
    """Returns a request of Jira to a Connect app."""
    sample = Sample("jira-1", "jira:issue_created", b'{"webhookEvent":"jira:issue_created"}')
    sent = provider_of("jira", {"proof": "connect"}).send(sample, secret, NOW)
    return Delivery("it", "POST", "/webhooks/it", query, sent.headers, sent.body, NOW)


def test_a_connect_apps_token_is_not_stored(world: World) -> None:
    site = Site(world, "jira", secret=SECRET, proof="connect")
    delivery = connected(secret="another-secret-of-the-provider")
    token = delivery.headers["authorization"].removeprefix("JWT ")
    assert site.receive(replace(delivery, query=f"jwt={token}")).outcome is IngestOutcome.REJECTED
    assert token not in site.stored()
    site.receive(connected())
    assert connected().headers["authorization"].removeprefix("JWT ") not in site.stored()


@pytest.mark.parametrize(
    "query",
    [
        f"tokn={WRONG}",
        f"Token={WRONG}",
        f"token%20={WRONG}",
        f"{WRONG}",
        f"{WRONG}=",
        f"a={WRONG}&token=x",
        f"token=x&token={WRONG}",
        f"token={WRONG};a=1",
        urlencode({"token": "x", "callback": f"https://a.example/?token={WRONG}"}),
        "&".join([f"token={WRONG}", *("a=1" for _ in range(1000))]),
        f"token={WRONG}&" + "a&" * 5000,
    ],
)
def test_a_token_anywhere_in_the_query_is_not_stored(query: str, world: World) -> None:
    site = Site(world, "docker-hub")
    sent = replace(signed("docker-hub").delivery, query=query)
    assert site.receive(sent).outcome is IngestOutcome.REJECTED
    (row,) = site.rows
    assert WRONG not in repr(row)


def test_a_misspelled_name_is_told_without_its_value(world: World) -> None:
    site = Site(world, "docker-hub")
    site.receive(replace(signed("docker-hub").delivery, query=f"tokn={WRONG}&a=1"))
    assert [pair.partition("=")[0] for pair in site.rows[0]["query"].split("&")] == ["tokn", "a"]


@pytest.mark.parametrize("name", ["user-agent", "traceparent", "content-type"])
def test_a_live_secret_in_another_place_is_redacted(name: str, world: World) -> None:
    site = Site(world, "github", secret=SECRET)
    sent = Delivery(
        "it",
        "POST",
        f"/webhooks/it/{SECRET}",
        f"secret={SECRET}",
        {name: f"of {SECRET.encode().hex()}", "x-hub-signature-256": "sha256=" + "0" * 64},
        b"{}",
        NOW,
    )
    assert site.receive(sent).outcome is IngestOutcome.REJECTED
    (row,) = site.rows
    assert SECRET not in repr(row)
    assert SECRET.encode().hex() not in repr(row)


# -- headers that no scheme reads


def declared(**headers: str) -> Delivery:
    """Returns a delivery that a provider signed as X-Acme-… declares, with more headers."""
    sample = Sample("evt-1", "paid", b'{"id":"evt-1"}')
    sent = provider_of("hmac", RIGHT_NAMES).send(sample, SECRET, NOW)
    return Delivery("it", "POST", "/webhooks/it", "", {**sent.headers, **headers}, sent.body, NOW)


RIGHT_NAMES: dict[str, Any] = {
    "signature": {"header": "X-Acme-Signature", "signs": "{timestamp}.{body}"},
    "timestamp": {"header": "X-Acme-Time"},
    "event_id": {"header": "X-Acme-Id"},
}
WRONG_NAMES = [
    ("signature", "X-Acme-Sig", "x-acme-signature", "missing-signature"),
    ("timestamp", "X-Acme-Timestamp", "x-acme-time", "malformed"),
    ("event_id", "X-Acme-Event-Id", "x-acme-id", "missing-event-id"),
]


@pytest.mark.parametrize(("table", "wrong", "right", "reason"), WRONG_NAMES)
def test_a_delivery_is_released_after_the_name_of_a_header_is_corrected(
    table: str, wrong: str, right: str, reason: str, world: World
) -> None:
    settings = {**RIGHT_NAMES, table: {**RIGHT_NAMES[table], "header": wrong}}
    site = Site(world, "hmac", secret=SECRET, **settings)
    receipt = site.receive(declared())
    assert (receipt.reason, wrong.lower() in receipt.detail) == (reason, True)
    assert f'did you mean "{right}"? received: ' in receipt.detail
    assert "x-acme-" in site.rows[0]["detail"]
    [still] = site.verdicts()
    assert (still.verdict, still.detail) == (ReleaseVerdict.INVALID, receipt.detail)
    site.manifest = with_source(SourceSpec("it", "hmac", "it", settings=RIGHT_NAMES))
    assert [one.verdict for one in site.verdicts()] == [IngestOutcome.ACCEPTED]


@pytest.mark.parametrize("name", ["x-acme-key", "authorization"])
def test_a_token_under_another_name_is_a_hash_until_the_name_is_corrected(
    name: str, world: World
) -> None:
    agents = json.dumps({"planner": TOKEN})
    named = {"event_id": {"json": "id"}}
    site = Site(world, "api-key", secret=agents, header="X-Acme-Kee", **named)
    headers = {name: TOKEN, "cookie": f"session={WRONG}", "x-acme-id": "evt-1"}
    sent = replace(declared(**headers), body=b'{"id":"evt-1"}')
    assert site.receive(sent).outcome is IngestOutcome.REJECTED
    assert TOKEN not in site.stored()
    assert WRONG not in site.stored()
    spec = SourceSpec("it", "api-key", "it", settings={"header": name, **named})
    site.manifest = with_source(spec)
    assert [one.verdict for one in site.verdicts()] == [IngestOutcome.ACCEPTED]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("authorization", WRONG),
        ("cookie", WRONG),
        ("x-gitlab-token", WRONG),
        ("x-api-key", WRONG),
        ("x-hook-secret", WRONG),
        ("x-acme", f"Bearer {WRONG}"),
        ("x-forwarded-for", WRONG),
    ],
)
def test_a_credential_of_a_source_without_tokens_is_named_and_not_stored(
    name: str, value: str, world: World
) -> None:
    site = Site(world, "hmac", secret=SECRET + "x", **RIGHT_NAMES)
    assert site.receive(declared(**{name: value})).outcome is IngestOutcome.REJECTED
    assert WRONG not in site.stored()
    assert name in site.rows[0]["header_names"]


def test_a_name_whose_value_was_not_stored_is_told(world: World) -> None:
    wrong = {**RIGHT_NAMES, "signature": {**RIGHT_NAMES["signature"], "header": "X-Acme-Sig"}}
    site = Site(world, "hmac", secret=SECRET, **wrong)
    site.receive(declared(**{"x-acme-token": "a"}))
    named = {**RIGHT_NAMES, "signature": {**RIGHT_NAMES["signature"], "header": "X-Acme-Token"}}
    site.manifest = with_source(SourceSpec("it", "hmac", "it", settings=named))
    told = "the x-acme-token header was received, and its value was not stored"
    assert [one.detail for one in site.verdicts()] == [told]


def test_the_stored_headers_have_a_bound(world: World) -> None:
    site = Site(world, "hmac", secret=SECRET + "x", **RIGHT_NAMES)
    many = {f"x-{number:03}": "v" * 100 for number in range(500)}
    site.receive(declared(**many, **{"x-long": "v" * 9000, "x-" + "n" * 100: "v"}))
    row = site.rows[0]
    assert 7 * 1024 < sum(len(k) + len(v) for k, v in row["unread_headers"].items()) <= 8 * 1024
    assert len(row["header_names"]) == 64
    assert all(len(name) <= 64 for name in row["header_names"])


# -- floods


def genuine(site: Site, number: int, secret: str) -> Delivery:
    """Returns a true delivery under another secret than the live one."""
    sample = Sample(f"evt-{number}", "push", b'{"n": %d}' % number)
    sent = site.provider.send(sample, secret, NOW)
    return Delivery("it", "POST", "/webhooks/it", sent.query, sent.headers, sent.body, NOW)


JUNK: list[dict[str, str | None]] = [
    {"x-hub-signature-256": None},
    {"x-hub-signature-256": "sha256=forged"},
    {"x-hub-signature-256": "sha256=" + "g" * 64 + "0"},
    {"x-hub-signature-256": "md5=" + "0" * 64},
]


@pytest.mark.parametrize("changed", JUNK)
def test_a_flood_of_junk_hides_no_true_delivery(
    changed: dict[str, str | None], world: World
) -> None:
    """As after a rotation: the true delivery is refused, and has to be found later."""
    site = Site(world, "github", secret=SECRET)
    for number in range(500):
        sent = genuine(site, number, "guessed-by-a-stranger")
        headers = {k: v for k, v in {**sent.headers, **changed}.items() if v is not None}
        assert site.receive(replace(sent, headers=headers)).outcome is IngestOutcome.REJECTED
    true = genuine(site, 1000, "the-secret-after-the-rotation")
    site.receive(true)
    world.vault.rotate("it", "the-secret-after-the-rotation")
    assert IngestOutcome.ACCEPTED in [one.verdict for one in site.verdicts()]


def test_stale_forgeries_are_junk(world: World) -> None:
    site = Site(world, "stripe", secret="whsec_of-the-provider")
    for number in range(500):
        old = Sample(f"evt-{number}", "a", b'{"id":"a","type":"a"}')
        sent = site.provider.send(old, "whsec_guessed", NOW - timedelta(hours=1))
        site.receive(Delivery("it", "POST", "/webhooks/it", "", sent.headers, sent.body, NOW))
    before = len(site.rows)
    body = b'{"id":"evt_1","type":"invoice.paid"}'
    sent = site.provider.send(Sample("evt_1", "invoice.paid", body), "whsec_next", NOW)
    site.receive(Delivery("it", "POST", "/webhooks/it", "", sent.headers, sent.body, NOW))
    assert len(site.rows) == before + 1


def test_well_formed_forgeries_have_a_budget_of_their_own(world: World) -> None:
    site = Site(world, "github", secret=SECRET)
    for number in range(500):
        site.receive(genuine(site, number, "guessed-by-a-stranger"))
    assert len(site.rows) == 60
    junk = replace(genuine(site, 1000, SECRET), headers={})
    site.receive(junk)
    assert len(site.rows) == 61


def test_a_flood_of_both_kinds_costs_no_call_once_both_shares_are_used(world: World) -> None:
    site = Site(world, "github", secret=SECRET)
    for number in range(100):
        site.receive(genuine(site, number, "guessed-by-a-stranger"))
        site.receive(replace(genuine(site, number, SECRET), headers={}))
    world.plan.operations()
    for number in range(100):
        site.receive(genuine(site, number, "guessed-by-a-stranger"))
        site.receive(replace(genuine(site, number, SECRET), headers={}))
    assert world.plan.operations() == []
    assert len(site.rows) == 120


def test_the_next_minute_has_its_own_shares(world: World) -> None:
    site = Site(world, "github", secret=SECRET)
    for number in range(100):
        site.receive(genuine(site, number, "guessed-by-a-stranger"))
    later = replace(genuine(site, 1, SECRET + "x"), received_at=NOW + timedelta(minutes=1))
    site.receive(later)
    assert len(site.rows) == 61


def test_two_containers_share_the_shares(world: World) -> None:
    sites = [Site(world, "github", secret=SECRET) for _ in range(2)]
    for number in range(100):
        for place, site in enumerate(sites):
            sent = genuine(site, 2 * number + place, "guessed-by-a-stranger")
            site.receive(sent)
    assert len(sites[0].rows) == 60


def a_token(kid: str, **changed: object) -> Delivery:
    """Returns a token of an agent's other key, as after a rotation that was forgotten here."""
    written = tokens.token(tokens.private("other"), head={"kid": kid}, **changed)
    return tokens.sent(written)


def test_well_formed_is_a_token_that_names_a_known_key_and_is_fresh(world: World) -> None:
    """The genuine token is kept, whatever an attacker sent before it."""
    jwk = tokens.jwk(tokens.private("planner"), kid="planner")
    secret = tokens.secret(keys=[jwk])
    site = Site(world, "jwt", secret=secret, **tokens.SETTINGS)
    for number in range(200):
        site.receive(a_token(f"unknown-{number}"))
        site.receive(a_token("planner", exp=tokens.SECONDS - 3600))
        site.receive(a_token("planner", aud="https://other.example"))
    assert len(site.rows) == 60
    site.receive(a_token("planner"))
    assert len(site.rows) == 61


def test_a_message_under_an_unknown_certificate_is_not_well_formed(world: World) -> None:
    case = signed("aws-sns")
    site = Site(world, "aws-sns", **example("aws-sns"))
    site.ingest = replace_fetcher(site, case)
    unknown = json.loads(case.delivery.body)
    for number in range(200):
        unknown["SigningCertURL"] = f"https://sns.eu-west-1.amazonaws.com/forged-{number}.pem"
        site.receive(replace(case.delivery, body=json.dumps(unknown).encode()))
    assert len(site.rows) == 60
    forged = {**json.loads(case.delivery.body), "Message": "forged"}
    site.receive(replace(case.delivery, body=json.dumps(forged).encode()))
    assert len(site.rows) == 60  # the certificate could not be fetched any more
    moment = NOW + timedelta(minutes=1)
    assert site.receive(replace(case.delivery, received_at=moment)).status == 200
    for number in range(200):
        unknown["SigningCertURL"] = f"https://sns.eu-west-1.amazonaws.com/forged-{number}.pem"
        body = json.dumps(unknown).encode()
        site.receive(replace(case.delivery, body=body, received_at=moment))
    kept = len(site.rows)
    body = json.dumps(forged).encode()
    site.receive(replace(case.delivery, body=body, received_at=moment))
    assert len(site.rows) == kept + 1


def test_a_true_delivery_whose_key_was_not_fetched_in_a_flood_is_found_later(
    world: World,
) -> None:
    case = signed("aws-sns")
    site = Site(world, "aws-sns", **example("aws-sns"))
    site.ingest = replace_fetcher(site, case)
    forged = json.loads(case.delivery.body)
    for number in range(30):
        forged["SigningCertURL"] = f"https://sns.eu-west-1.amazonaws.com/forged-{number}.pem"
        site.receive(replace(case.delivery, body=json.dumps(forged).encode()))
    receipt = site.receive(case.delivery)
    assert (receipt.reason, receipt.status) == ("key-unavailable", 503)
    verdicts = [one.verdict for one in site.verdicts(OneKey(case))]
    assert verdicts == [ReleaseVerdict.INVALID] * 30 + [IngestOutcome.ACCEPTED]


class OneKey:
    """Answers with the published key at its own address alone."""

    def __init__(self, case: Case) -> None:
        self.case = case

    def fetch(self, wanted: Fetch) -> bytes:
        if "forged" in wanted.url:
            raise NotPublished("answered 404")
        return self.case.published


def replace_fetcher(site: Site, case: Case) -> Ingest:
    """Returns the site's ingest with this case's internet."""
    return Ingest(
        site.manifest, replace(site.world.ports, fetcher=OneKey(case)), providers=providers.load
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_valid_delivery_of_every_provider_is_well_formed(name: str) -> None:
    """A delivery that fails only because our secret is wrong or not set is kept."""
    case = signed(name)
    keys = PublishedKeys(case)
    case.provider.precheck(case.delivery, ())
    if case.provider.fetches is not None:
        assert isinstance(verify(case.provider, case.delivery, case.secrets, keys), Verified)
    assert is_well_formed(case.provider, case.delivery, case.secrets, keys)


@pytest.mark.parametrize("name", NAMES)
def test_a_delivery_without_headers_and_body_of_no_provider_is_well_formed(name: str) -> None:
    case = signed(name)
    empty = replace(case.delivery, headers={}, body=b"", query="")
    assert not is_well_formed(case.provider, empty, case.secrets, PublishedKeys(case))


@pytest.mark.parametrize("vector", [v for name in NAMES for v in vectors_of(name)])
def test_every_valid_vector_is_well_formed(vector: dict[str, Any]) -> None:
    case = recorded(vector)
    if isinstance(case.verdict(), Verified):
        case.provider.precheck(case.delivery, ())


@pytest.mark.parametrize("name", ["aws-sns", "discord", "paypal", "sendgrid", "wise"])
@pytest.mark.parametrize("size", [6, 62, 2049])
def test_a_signature_that_no_key_makes_so_long_is_not_well_formed(name: str, size: int) -> None:
    case = signed(name)
    keys = PublishedKeys(case)
    right = verify(case.provider, case.delivery, case.secrets, keys).signature
    junk = bytes(size).hex() if name == "discord" else b64encode(bytes(size)).decode()
    headers = {k: v.replace(right, junk) for k, v in case.delivery.headers.items()}
    body = case.delivery.body.replace(right.encode(), junk.encode())
    sent = replace(case.delivery, headers=headers, body=body)
    assert sent != case.delivery
    assert not is_well_formed(case.provider, sent, case.secrets, keys)


@pytest.mark.parametrize("bits", [2048, 3072, 4096])
def test_a_signature_of_a_longer_key_is_well_formed(bits: int) -> None:
    case = signed("wise")
    headers = {**case.delivery.headers, "x-signature-sha256": b64encode(bytes(bits // 8)).decode()}
    case.provider.precheck(replace(case.delivery, headers=headers), ())


def stored(world: World, number: int) -> Item:
    at = to_ms(world.now + timedelta(minutes=number))
    row = {"pk": "rejected#it", "sk": f"{at:013d}#{number:016x}", "reason": "stale"}
    world.table.put({**row, "expires_at": to_seconds(world.now) + 86400})
    return row


def test_a_delivery_is_found_by_its_id_without_a_search(world: World) -> None:
    rows = [stored(world, number) for number in range(5)]
    wanted = RejectedFilter(ids=(rows[3]["sk"].replace("#", "-"), "no-such-id"))
    world.table.query = None  # type: ignore[assignment, method-assign]
    [found] = find(world.table, "it", wanted, now=world.now)
    assert found.row["sk"] == rows[3]["sk"]


def test_a_search_from_the_newest_on_ends_behind_its_time(world: World) -> None:
    rows = [stored(world, number) for number in range(5)]
    read = list[str]()
    query = world.table.query
    world.table.query = lambda *a, **k: (read.append(r["sk"]) or r for r in query(*a, **k))  # type: ignore[assignment, func-returns-value, method-assign]
    wanted = RejectedFilter(since=world.now + timedelta(minutes=3))
    found = find(world.table, "it", wanted, now=world.now, newest_first=True)
    assert [each.row["sk"] for each in found] == [rows[4]["sk"], rows[3]["sk"]]
    assert read == [row["sk"] for row in (rows[4], rows[3], rows[2])]
