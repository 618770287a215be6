"""`auth = "api-key"` and `auth = "basic"`: send a valid credential, then break one part of it."""

import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.providers.deliveries import (
    NOW,
    delivery,
    name_of,
    provider_of,
    verdict,
    with_header,
)
from webhook_inbox.domain.errors import ConfigurationError, Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Sample, Verified

BODY = b'{"type":"budget.exceeded","id":"b-1"}'
NAMED: Mapping[str, Any] = {"event_id": {"header": "X-Event-Id"}, "event_type": {"json": "type"}}
AGENTS = {
    "api-key": json.dumps({"planner": "planner-key", "buyer": "buyer-key"}),
    "basic": json.dumps({"planner": "p:planner-key", "buyer": "b:buyer-key"}),
}
ONE = {"api-key": "nobodys-key", "basic": "nobody:nobodys:key"}
HEADERS = {"api-key": "x-api-key", "basic": "authorization"}
both = pytest.mark.parametrize("auth", ["api-key", "basic"])


def written(auth: str, credential: str) -> str:
    """Returns a credential as its caller sends it."""
    if auth == "api-key":
        return credential
    return f"Basic {b64encode(credential.encode(errors='surrogatepass')).decode()}"


def sent(auth: str, credential: str) -> Delivery:
    return delivery({HEADERS[auth]: written(auth, credential), "X-Event-Id": "evt-1"}, BODY)


def credentials(auth: str) -> list[tuple[str, str]]:
    return list(json.loads(AGENTS[auth]).items())


def agent_of(
    auth: str, given: Delivery, *secrets: str, **settings: object
) -> tuple[int, str] | Reason:
    provider = provider_of(auth, {**NAMED, **settings})
    found = verdict(provider, given, secrets or (AGENTS[auth],))
    return (found.secret, found.agent) if isinstance(found, Verified) else found


@both
def test_each_agent_is_known_by_its_own_credential(auth: str) -> None:
    for agent, credential in credentials(auth):
        assert agent_of(auth, sent(auth, credential)) == (0, agent)


@both
def test_a_secret_that_is_one_credential_names_no_agent(auth: str) -> None:
    assert agent_of(auth, sent(auth, ONE[auth]), ONE[auth]) == (0, "")


@both
def test_the_previous_secret_still_counts_and_is_told_apart(auth: str) -> None:
    given = sent(auth, ONE[auth])

    assert agent_of(auth, given, AGENTS[auth], ONE[auth]) == (1, "")
    assert agent_of(auth, given, ONE[auth], AGENTS[auth]) == (0, "")


@both
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:-1],
        lambda text: text + "0",
        lambda text: text + " ",
        lambda text: text.upper(),
        lambda text: text.partition("-")[0],
        lambda text: f"{text},{text}",
        lambda text: text + "\u00e9",
        lambda text: text + "\ud800",
        lambda _: "planner",
        lambda _: "x" * 10_000,
        lambda _: '{"planner": "planner-key", "buyer": "buyer-key"}',
    ],
)
def test_any_other_credential_is_refused(auth: str, change: Any) -> None:
    for _, credential in credentials(auth):
        assert agent_of(auth, sent(auth, change(credential))) is Reason.INVALID_SIGNATURE


@both
@pytest.mark.parametrize("value", [None, ""])
def test_without_a_credential_a_signature_is_missing(auth: str, value: str | None) -> None:
    given = with_header(sent(auth, ONE[auth]), HEADERS[auth], value)

    assert agent_of(auth, given) is Reason.MISSING_SIGNATURE


@both
@pytest.mark.parametrize(
    "held",
    ["", "{", "{}", '{"a": ""}', '{"a": 7}', '{"": "x:y"}', '{"a\\n": "x:y"}', '{"a": ["x"]}'],
)
def test_a_secret_that_holds_no_credential_is_none(auth: str, held: str) -> None:
    assert agent_of(auth, sent(auth, "x:y"), held) is Reason.NO_SECRET
    assert agent_of(auth, sent(auth, ONE[auth]), held, ONE[auth]) == (1, "")


def test_a_password_needs_a_user() -> None:
    assert agent_of("basic", sent("basic", "alone"), "alone") is Reason.NO_SECRET
    held = '{"planner": "alone", "buyer": "b:1"}'
    assert agent_of("basic", sent("basic", "alone"), held) is Reason.INVALID_SIGNATURE
    assert agent_of("basic", sent("basic", "b:1"), held) == (0, "buyer")


def test_a_password_that_is_no_text_is_none() -> None:
    """Written as UTF-8 it would be a question mark, which could be guessed."""
    assert agent_of("basic", sent("basic", "p:?"), '{"planner": "p:\\ud800"}') is Reason.NO_SECRET


def test_a_scheme_is_taken_in_any_capitals_and_no_other_scheme_is() -> None:
    given = sent("basic", ONE["basic"])
    encoded = given.headers["authorization"].removeprefix("Basic ")

    for scheme, expected in (("basic", (0, "")), ("BASIC", (0, "")), ("Bearer", Reason.MALFORMED)):
        changed = with_header(given, "authorization", f"{scheme} {encoded}")
        assert agent_of("basic", changed, ONE["basic"]) == expected
    bare = with_header(given, "authorization", encoded)
    assert agent_of("basic", bare, ONE["basic"]) is Reason.MALFORMED


def test_a_key_may_stand_in_another_header_behind_a_prefix() -> None:
    given = with_header(sent("api-key", ""), "authorization", "bearer planner-key")

    own = {"header": "Authorization", "prefix": "Bearer "}
    assert agent_of("api-key", given, **own) == (0, "planner")
    assert agent_of("api-key", given) is Reason.MISSING_SIGNATURE
    assert agent_of("api-key", given, header="Authorization") is Reason.INVALID_SIGNATURE


# -- naming, and what is guarded and kept


@both
@pytest.mark.parametrize(
    ("event_id", "named", "guarded"),
    [
        ({"header": "X-Event-Id"}, "evt-1", True),
        ({"json": "id"}, "b-1", False),
        ({"json": ["id", "type"]}, "b-1|budget.exceeded", False),
        ({"query": "id"}, Reason.MISSING_EVENT_ID, True),
        ({"form": "id"}, Reason.MISSING_EVENT_ID, False),
    ],
)
def test_an_event_is_named_as_declared_and_guarded_where_its_id_could_be_any(
    auth: str, event_id: dict[str, Any], named: object, guarded: bool
) -> None:
    provider = provider_of(auth, {**NAMED, "event_id": event_id})
    found = name_of(provider, sent(auth, ONE[auth]))

    assert (found if isinstance(found, Reason) else found.event_id) == named
    assert (provider.guard is not None) == guarded


@both
def test_a_body_without_a_name_is_named_by_its_content(auth: str) -> None:
    provider = provider_of(
        auth, {"event_id": {"body": "sha256"}, "event_type": {"value": "backup"}}
    )
    found = provider.identify(sent(auth, ONE[auth]))

    assert found.event_id.startswith("sha256:")
    assert found.type == "backup"


@both
def test_a_credential_is_never_kept_as_an_id_or_a_type(auth: str) -> None:
    provider = provider_of(auth, NAMED)
    assert provider.token_headers == provider.signature_headers == {HEADERS[auth]}
    assert provider.kept_headers == {"x-event-id"}
    for table in ("event_id", "event_type"):
        header = {"header": ["X-Event-Id", HEADERS[auth].upper()]}
        with pytest.raises(ConfigurationError, match=rf"{table}\.header: {HEADERS[auth]} holds"):
            provider_of(auth, {**NAMED, table: header})


@both
def test_without_an_id_there_is_no_source(auth: str) -> None:
    with pytest.raises(ConfigurationError, match="event_id: missing; say where it is"):
        provider_of(auth, {})


@both
def test_a_refusal_shows_no_credential(auth: str) -> None:
    for credential, held in (("of-mine:1", AGENTS[auth]), (ONE[auth], "{")):
        with pytest.raises(Rejected) as raised:
            provider_of(auth, NAMED).verify(sent(auth, credential), (held,))
        assert "key" not in str(raised.value).replace("API key", "").replace("KEY", "")
        assert "of-mine" not in str(raised.value)


# -- what is signed is verified


@both
def test_a_sample_is_the_first_agents(auth: str) -> None:
    provider = provider_of(auth, NAMED)
    headers = provider.sign(Sample("evt-9", "budget.exceeded", BODY), AGENTS[auth], NOW)

    given = delivery(headers, BODY)
    assert provider.verify(given, (AGENTS[auth],)).agent == "planner"
    assert provider.identify(given).event_id == "evt-9"


@both
@pytest.mark.parametrize("held", ["", "{}", '{"planner": ""}'])
def test_what_is_no_credential_signs_nothing_and_the_remedy_is_told(auth: str, held: str) -> None:
    with pytest.raises(ConfigurationError, match=r"the secret is not .*as JSON; set it so"):
        provider_of(auth, NAMED).sign(Sample("e", "t", BODY), held, NOW)


@both
def test_every_agents_token_can_be_known_by_its_hash(auth: str) -> None:
    provider = provider_of(auth, NAMED)
    assert provider.tokens is not None

    expected = [written(auth, credential) for _, credential in credentials(auth)]
    assert list(provider.tokens(AGENTS[auth])) == expected
    assert list(provider.tokens("{")) == []


# -- whatever comes in

TEXT = st.text(st.characters(codec=None), max_size=60)


@given(auth=st.sampled_from(["api-key", "basic"]), value=TEXT)
@settings(max_examples=200)
def test_any_header_is_verified_or_refused(auth: str, value: str) -> None:
    given = with_header(sent(auth, ONE[auth]), HEADERS[auth], value)

    found = agent_of(auth, given)

    right = [written(auth, credential) for _, credential in credentials(auth)]
    assert isinstance(found, Reason) or value in right


@given(
    auth=st.sampled_from(["api-key", "basic"]),
    held=TEXT | st.dictionaries(TEXT, TEXT | st.integers() | st.none(), max_size=3).map(json.dumps),
)
@settings(max_examples=200)
def test_any_text_may_stand_where_a_secret_should(auth: str, held: str) -> None:
    assert agent_of(auth, sent(auth, ONE[auth]), held, ONE[auth]) in {(1, ""), (0, "")}
    assert agent_of(auth, sent(auth, "of-nobody:x"), AGENTS[auth], held) in (
        *(Reason.INVALID_SIGNATURE, Reason.NO_SECRET),
        *([(1, "")] if held == "of-nobody:x" else []),
    )


@given(names=st.dictionaries(st.text(min_size=1, max_size=10), st.just("user:same"), max_size=3))
@settings(max_examples=100)
def test_the_agent_that_is_told_is_one_of_the_secrets(names: dict[str, str]) -> None:
    found = agent_of("basic", sent("basic", "user:same"), json.dumps(names))

    assert found is Reason.NO_SECRET or found[1] in names
