"""`auth = "jwt"`: make a valid token, then break one part of it."""

import hashlib
import hmac
import json
from base64 import b64decode, b64encode, urlsafe_b64encode
from dataclasses import replace
from typing import Any

import jwt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.providers import tokens
from tests.unit.providers.deliveries import NOW, later, name_of, verdict, with_header
from tests.unit.providers.tokens import (
    AUDIENCE,
    BODY,
    ISSUER,
    SECONDS,
    SHARED,
    jwk,
    pem,
    private,
    private_pem,
    provider,
    secret,
    sent,
    token,
)
from webhook_inbox.domain.errors import ConfigurationError, Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import UNAVAILABLE_FETCHER, Fetch
from webhook_inbox.domain.provider import Sample, Verified
from webhook_inbox.ingest.verification import PublishedKeys, verify

PLANNER, BUYER = private("planner"), private("buyer")
AGENTS = secret(planner=pem(PLANNER), buyer=pem(BUYER))
PROVIDER = provider()
VALID = sent(token(PLANNER))
JWKS = "https://agents.example/jwks.json"


def agent_of(delivery: Delivery, held: str = AGENTS, **changed: object) -> str | Reason:
    found = verdict(provider(**changed), delivery, (held,))
    return found.agent if isinstance(found, Verified) else found


def why(delivery: Delivery, held: str = AGENTS, **changed: object) -> str:
    with pytest.raises(Rejected) as raised:
        provider(**changed).verify(delivery, (held,))
    return str(raised.value)


# -- whose token it is


def test_the_agent_whose_key_made_the_token_is_told() -> None:
    assert agent_of(sent(token(PLANNER))) == "planner"
    assert agent_of(sent(token(BUYER))) == "buyer"


def test_what_a_token_claims_to_be_counts_for_nothing_where_keys_are_agents_own() -> None:
    assert agent_of(sent(token(PLANNER, sub="buyer"))) == "planner"
    assert agent_of(sent(token(PLANNER, sub=None))) == "planner"


def test_a_token_that_names_an_agent_has_to_be_made_with_its_key() -> None:
    assert agent_of(sent(token(PLANNER, head={"kid": "planner"}))) == "planner"
    assert agent_of(sent(token(PLANNER, head={"kid": "buyer"}))) is Reason.INVALID_SIGNATURE


def test_the_name_that_a_library_gives_a_key_is_no_hindrance() -> None:
    assert agent_of(sent(token(PLANNER, head={"kid": "thumbprint"}))) == "planner"


def test_of_the_previous_secret_agents_are_told_apart_too() -> None:
    old = secret(planner=pem(BUYER))
    found = PROVIDER.verify(sent(token(BUYER)), (secret(planner=pem(PLANNER)), old))

    assert (found.secret, found.agent) == (1, "planner")


@pytest.mark.parametrize("kind", ["ES256", "ES384", "ES512", "EdDSA"])
def test_keys_of_every_kind_verify(kind: str) -> None:
    key = private("planner", kind)
    made = sent(token(key, alg=kind))

    assert agent_of(made, secret(planner=pem(key)), algorithms=[kind]) == "planner"
    assert agent_of(made, AGENTS, algorithms=[kind]) is Reason.INVALID_SIGNATURE


@pytest.mark.parametrize("alg", ["RS384", "RS512", "PS256", "PS384", "PS512"])
def test_an_rsa_key_is_good_for_the_algorithms_that_count_alone(alg: str) -> None:
    made = sent(token(PLANNER, alg=alg))

    assert agent_of(made, algorithms=["RS256"]) is Reason.MALFORMED
    assert agent_of(made, algorithms=["RS256", alg]) == "planner"


@pytest.mark.parametrize("alg", ["HS256", "HS384", "HS512"])
def test_a_shared_key_is_in_base64_and_has_to_be_asked_for(alg: str) -> None:
    made = sent(token(b64decode(SHARED), alg=alg))

    assert agent_of(made, secret(planner=SHARED), algorithms=[alg]) == "planner"
    assert agent_of(made, secret(planner=SHARED)) is Reason.MALFORMED


def test_agents_with_public_and_with_shared_keys_may_be_in_one_secret() -> None:
    held, both = secret(planner=pem(PLANNER), buyer=SHARED), ["RS256", "HS256"]

    assert agent_of(sent(token(PLANNER)), held, algorithms=both) == "planner"
    shared = sent(token(b64decode(SHARED), alg="HS256"))
    assert agent_of(shared, held, algorithms=both) == "buyer"


def test_a_jwk_set_in_the_secret_names_the_agent_by_kid() -> None:
    held = json.dumps({"keys": [jwk(PLANNER, kid="planner"), jwk(BUYER, kid="buyer", use="sig")]})

    assert agent_of(sent(token(BUYER, head={"kid": "buyer"})), held) == "buyer"
    assert agent_of(sent(token(BUYER)), held) == "buyer"
    assert agent_of(sent(token(BUYER, head={"kid": "x"})), held) is Reason.INVALID_SIGNATURE


def test_a_key_without_a_name_is_rejected_among_agents_own() -> None:
    """A holder of it could claim to be any of them."""
    held = json.dumps({"keys": [jwk(PLANNER, kid="planner"), jwk(BUYER)]})

    assert agent_of(sent(token(PLANNER)), held) == "planner"
    assert agent_of(sent(token(BUYER, sub="planner")), held) is Reason.INVALID_SIGNATURE


@pytest.mark.parametrize("held", [pem(PLANNER), json.dumps(jwk(PLANNER))], ids=["pem", "jwk"])
def test_of_an_issuers_key_the_claim_tells_the_agent(held: str) -> None:
    assert agent_of(VALID, held) == "planner"
    assert agent_of(sent(token(PLANNER, sub=None, azp="a")), held, agent_claim="azp") == "a"
    assert "has no azp" in why(VALID, held, agent_claim="azp")


@pytest.mark.parametrize("name", ["", " ", "a\n", " a", "x" * 129, 7, ["planner"], True, "\ud800"])
def test_an_agents_name_that_cannot_be_kept_is_malformed(name: object) -> None:
    assert agent_of(sent(token(PLANNER, sub=name)), pem(PLANNER)) is Reason.MALFORMED


# -- the issuer's published keys


def fetched(delivery: Delivery, published: object, **changed: object) -> str | Reason:
    found = verdict(provider(jwks=JWKS, **changed), delivery, (json.dumps(published),))
    return found.agent if isinstance(found, Verified) else found


def test_an_issuers_published_key_is_looked_up_by_kid_and_the_agent_is_a_claim() -> None:
    published = {"keys": [jwk(BUYER, kid="k1"), jwk(PLANNER, kid="k2", alg="RS256")]}

    assert fetched(sent(token(PLANNER, head={"kid": "k2"})), published) == "planner"
    assert fetched(sent(token(PLANNER, head={"kid": "k1"})), published) is Reason.INVALID_SIGNATURE
    assert fetched(sent(token(PLANNER, head={"kid": "k3"})), published) is Reason.INVALID_SIGNATURE
    assert fetched(sent(token(PLANNER)), published) == "planner"


@pytest.mark.parametrize("more", [{"use": "enc"}, {"alg": "PS256"}, {"kty": "oct"}])
def test_a_published_key_that_is_for_something_else_is_of_no_use(more: dict[str, Any]) -> None:
    published = {"keys": [jwk(PLANNER, kid="k", **more)]}
    made = sent(token(PLANNER, head={"kid": "k"}))

    assert fetched(made, published) is Reason.INVALID_SIGNATURE


def test_keys_are_fetched_from_where_inbox_toml_says_whatever_a_token_says() -> None:
    source = provider(jwks=JWKS)
    elsewhere = sent(
        token(PLANNER, head={"jku": "https://evil.example", "kid": "https://e.example"})
    )

    assert source.fetches is not None
    assert source.fetches(elsewhere, ()) == Fetch(JWKS)
    assert not source.needs_secret


@pytest.mark.parametrize("written", ["", "x", "a.b.c", token(PLANNER, alg="RS512")])
def test_nothing_is_fetched_for_what_no_key_could_have_made(written: str) -> None:
    keys = PublishedKeys(UNAVAILABLE_FETCHER)

    with pytest.raises(Rejected, match=r"malformed|missing-signature"):
        verify(provider(jwks=JWKS), sent(written), (), keys)


@pytest.mark.parametrize(
    "claimed", [{"iss": "https://other.example"}, {"aud": "other"}, {"exp": 1}, {"exp": None}]
)
def test_a_token_that_claims_something_else_asks_for_no_key(claimed: dict[str, Any]) -> None:
    with pytest.raises(Rejected) as raised:
        verify(
            provider(jwks=JWKS),
            sent(token(PLANNER, **claimed)),
            (),
            PublishedKeys(UNAVAILABLE_FETCHER),
        )

    assert raised.value.reason is not Reason.KEY_UNAVAILABLE


@pytest.mark.parametrize("published", [None, [], {}, {"keys": 7}, {"keys": [7, {}, None]}, "x"])
def test_what_is_published_may_be_anything(published: object) -> None:
    """It holds no key, which ingest answers as a key that cannot be fetched."""
    assert fetched(VALID, published) is Reason.NO_SECRET


# -- what a token has to claim


@pytest.mark.parametrize(
    ("changed", "reason", "words"),
    [
        ({"iss": f"{ISSUER}/"}, Reason.INVALID_SIGNATURE, "iss does not match"),
        ({"iss": None}, Reason.MALFORMED, "has no iss"),
        ({"aud": "https://other.example"}, Reason.INVALID_SIGNATURE, "aud does not match"),
        ({"aud": []}, Reason.INVALID_SIGNATURE, "aud does not match"),
        ({"aud": [7, AUDIENCE.upper()]}, Reason.INVALID_SIGNATURE, "aud does not match"),
        ({"aud": None}, Reason.MALFORMED, "has no aud"),
        ({"exp": None}, Reason.MALFORMED, "has no exp"),
        ({"exp": SECONDS - 60}, Reason.STALE, "has expired"),
        ({"exp": True}, Reason.MALFORMED, "exp is not a time"),
        ({"exp": -1}, Reason.MALFORMED, "exp is not a time"),
        ({"exp": 10**13}, Reason.MALFORMED, "exp is not a time"),
        ({"exp": float("nan")}, Reason.MALFORMED, "exp is not a time"),
        ({"nbf": SECONDS + 61}, Reason.FUTURE, "is not valid yet"),
        ({"nbf": [SECONDS]}, Reason.MALFORMED, "nbf is not a time"),
        ({"iat": SECONDS + 61}, Reason.FUTURE, "is not valid yet"),
        ({"iat": {}}, Reason.MALFORMED, "iat is not a time"),
    ],
)
def test_a_wrong_claim_is_refused_for_what_it_is(
    changed: dict[str, Any], reason: Reason, words: str
) -> None:
    refused = why(signed_by_hand(changed))

    assert refused.startswith(str(reason))
    assert words in refused


def signed_by_hand(changed: dict[str, Any]) -> Delivery:
    """Signs claims that the library would not, like a time that is a list."""
    payload = json.dumps(tokens.claims(**changed)).encode()
    made = jwt.PyJWS().encode(payload, PLANNER, algorithm="RS256")
    return sent(made)


def test_a_claim_that_is_null_is_none() -> None:
    payload = json.dumps({**tokens.claims(), "exp": None}).encode()

    assert "has no exp" in why(sent(jwt.PyJWS().encode(payload, PLANNER, "RS256")))


def test_of_several_audiences_and_issuers_one_has_to_fit() -> None:
    both = {"audience": ["here", AUDIENCE], "issuer": ["https://first.example", ISSUER]}

    assert agent_of(sent(token(PLANNER, aud=["elsewhere", "here"])), **both) == "planner"
    assert agent_of(sent(token(PLANNER, iss="https://first.example")), **both) == "planner"
    assert agent_of(sent(token(PLANNER, aud="there")), **both) is Reason.INVALID_SIGNATURE
    # Two issuers in one claim are no issuer.
    listed = signed_by_hand({"iss": ["https://first.example"]})
    assert agent_of(listed, **both) is Reason.INVALID_SIGNATURE


@pytest.mark.parametrize(("tolerance", "seconds"), [("1m", 60), ("5s", 5), ("10m", 600)])
def test_clocks_may_differ_as_far_as_it_is_said(tolerance: str, seconds: int) -> None:
    for claim, late in (("exp", -seconds), ("nbf", seconds), ("iat", seconds)):
        # An `exp` is over at its very second, a token begins with it.
        inside = 1 if claim == "exp" else 0
        on_time = sent(token(PLANNER, **{claim: SECONDS + late + inside}))
        too_far = sent(token(PLANNER, **{claim: SECONDS + late + inside + (late > 0) - (late < 0)}))
        assert agent_of(on_time, tolerance=tolerance) == "planner", claim
        assert agent_of(too_far, tolerance=tolerance) in {Reason.STALE, Reason.FUTURE}, claim


def test_a_token_ages_by_its_iat_where_that_is_asked_for() -> None:
    assert agent_of(later(VALID, 250), max_age="5m") == "planner"
    assert "too old" in why(later(VALID, 250), max_age="4m")
    assert "has no iat" in why(sent(token(PLANNER, iat=None)), max_age="4m")
    assert provider(max_age="4m").window is not None


# -- never another algorithm than the key's


def test_an_unsigned_token_is_none() -> None:
    for alg in ("none", "None", "NONE"):
        head = urlsafe_b64encode(json.dumps({"alg": alg}).encode()).decode().rstrip("=")
        rest = token(PLANNER).split(".")
        for signature in ("", rest[2]):
            assert agent_of(sent(f"{head}.{rest[1]}.{signature}")) is Reason.MALFORMED


def test_a_public_key_is_never_taken_for_a_shared_one() -> None:
    text = pem(PLANNER)
    der = b64decode("".join(text.splitlines()[1:-1]))
    both = ["RS256", "HS256"]
    for key in (text.encode(), text.strip().encode(), der, b64encode(der)):
        forged = sent(by_hand(key))
        assert agent_of(forged) is Reason.MALFORMED
        assert agent_of(forged, algorithms=both) is Reason.INVALID_SIGNATURE
        as_jwk = secret(planner=jwk(PLANNER))
        assert agent_of(forged, as_jwk, algorithms=both) is Reason.INVALID_SIGNATURE


def test_a_public_key_without_its_pem_lines_is_no_key_at_all() -> None:
    der = b64decode("".join(pem(PLANNER).splitlines()[1:-1]))
    held = secret(planner=b64encode(der).decode())

    assert agent_of(sent(by_hand(der)), held, algorithms=["HS256"]) is Reason.NO_SECRET


def by_hand(key: bytes) -> str:
    """Signs with HS256 what libraries refuse to sign with."""
    head, payload = (
        urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in ({"alg": "HS256", "typ": "JWT"}, tokens.claims())
    )
    mac = hmac.digest(key, f"{head}.{payload}".encode(), "sha256")
    return f"{head}.{payload}.{urlsafe_b64encode(mac).decode().rstrip('=')}"


@pytest.mark.parametrize("crit", [["exp"], ["b64"], [], "x"])
def test_a_token_that_asks_for_an_extension_is_refused(crit: object) -> None:
    made = jwt.PyJWS()
    payload = json.dumps(tokens.claims()).encode()
    asking = made.encode(payload, PLANNER, "RS256", headers={"crit": crit, "x": 1})

    assert agent_of(sent(asking)) is Reason.MALFORMED


def test_a_short_rsa_key_is_of_no_use() -> None:
    weak = private("planner", "weak")
    with pytest.warns(jwt.InsecureKeyLengthWarning):
        made = sent(token(weak))

    assert agent_of(made, secret(planner=pem(weak))) is Reason.INVALID_SIGNATURE


@pytest.mark.parametrize(
    "held",
    ["", "{", "{}", "[]", "null", '{"planner": ""}', '{"planner": 7}', '{"": "x"}', "short",
     '{"keys": []}', '{"keys": [{"kid": "a"}]}', private_pem(PLANNER), "\ud800",
     '{"planner": "c2hvcnQ="}', "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"],
)  # fmt: skip
def test_a_secret_without_a_key_that_verifies_is_no_secret(held: str) -> None:
    assert agent_of(VALID, held, algorithms=["RS256", "HS256"]) is Reason.NO_SECRET
    assert PROVIDER.verify(VALID, (held, AGENTS)).secret == 1


def test_a_broken_key_of_one_agent_keeps_no_other_out() -> None:
    held = secret(planner=pem(PLANNER), buyer="-----BEGIN PUBLIC KEY-----", broken={"kty": "RSA"})

    assert agent_of(VALID, held) == "planner"
    assert agent_of(sent(token(BUYER)), held) is Reason.INVALID_SIGNATURE


# -- where the token stands


def test_a_bearers_token_is_taken_in_any_capitals() -> None:
    for scheme in ("bearer", "BEARER"):
        assert (
            agent_of(with_header(VALID, "authorization", f"{scheme} {token(PLANNER)}")) == "planner"
        )


@pytest.mark.parametrize("value", ["Basic {}", "{}", "Bearer  {}", "Bearer {} ", "Bearer {},x"])
def test_what_is_no_bearers_token_is_malformed(value: str) -> None:
    spoilt = with_header(VALID, "authorization", value.format(token(PLANNER)))

    assert agent_of(spoilt) is Reason.MALFORMED


@pytest.mark.parametrize("value", [None, ""])
def test_without_a_token_a_signature_is_missing(value: str | None) -> None:
    assert agent_of(with_header(VALID, "authorization", value)) is Reason.MISSING_SIGNATURE


def test_another_header_holds_the_bare_token_unless_a_prefix_is_named() -> None:
    bare = with_header(sent("x", X_Agent_Token=token(PLANNER)), "authorization", None)
    named = with_header(bare, "x-agent-token", f"Token {token(PLANNER)}")

    assert agent_of(bare, header="X-Agent-Token") == "planner"
    assert agent_of(named, header="X-Agent-Token", prefix="Token ") == "planner"
    assert agent_of(bare, header="X-Agent-Token", prefix="Token ") is Reason.MALFORMED
    assert provider(header="X-Agent-Token").token_headers == {"x-agent-token"}


# -- the body


def test_a_token_says_nothing_of_the_body_unless_a_claim_does() -> None:
    assert agent_of(replace(VALID, body=b"another")) == "planner"


@pytest.mark.parametrize(
    "write",
    [bytes.hex, lambda raw: urlsafe_b64encode(raw).decode().rstrip("=")],
    ids=["hex", "base64url"],
)
def test_a_claim_with_the_bodys_hash_binds_it(write: Any) -> None:
    bound = sent(token(PLANNER, bh=write(hashlib.sha256(BODY).digest())))

    assert agent_of(bound, body_claim="bh") == "planner"
    for body in (BODY + b" ", b"", BODY.replace(b"1", b"2")):
        changed = replace(bound, body=body)
        assert agent_of(changed, body_claim="bh") is Reason.INVALID_SIGNATURE
    assert agent_of(VALID, body_claim="bh") is Reason.MALFORMED


@pytest.mark.parametrize("value", ["", "0", [], 7, hashlib.sha256(BODY).hexdigest().upper()])
def test_a_hash_in_another_spelling_is_refused(value: object) -> None:
    bound = sent(token(PLANNER, bh=value))

    assert agent_of(bound, body_claim="bh") is Reason.INVALID_SIGNATURE


def test_when_it_was_signed_is_told_of_a_token_that_is_of_one_body() -> None:
    bound = sent(token(PLANNER, bh=hashlib.sha256(BODY).hexdigest()))

    assert provider(body_claim="bh").verify(bound, (AGENTS,)).signed_at == NOW
    assert PROVIDER.verify(VALID, (AGENTS,)).signed_at is None


# -- naming, and what is guarded


def test_id_and_type_may_be_claimed() -> None:
    source = provider(event_id={"claim": "jti"}, event_type={"claim": "typ"})
    named = name_of(source, sent(token(PLANNER, jti="j-1", typ="task.done")))

    assert not isinstance(named, Reason)
    assert (named.event_id, named.type) == ("j-1", "task.done")
    assert name_of(source, VALID) is Reason.MISSING_EVENT_ID


@pytest.mark.parametrize(
    ("event_id", "guarded"),
    [
        ({"header": "X-Event-Id"}, True),
        ({"query": "id"}, True),
        ({"json": "task.id"}, False),
        ({"form": "id"}, False),
        ({"body": "sha256"}, False),
        ({"claim": "jti"}, False),
    ],
)
def test_a_body_is_guarded_where_its_id_could_be_any(
    event_id: dict[str, str], guarded: bool
) -> None:
    assert (provider(event_id=event_id).guard is not None) == guarded
    assert (provider(event_id=event_id, body_claim="bh").guard is not None) == guarded


def test_it_is_the_body_that_is_known_again_where_a_token_covers_none() -> None:
    again = sent(token(PLANNER, jti="another"))
    assert PROVIDER.guard is not None

    guards = {PROVIDER.guard(PROVIDER.verify(each, (AGENTS,)), ()) for each in (VALID, again)}

    assert guards == {BODY}


def test_the_token_is_kept_nowhere() -> None:
    assert PROVIDER.token_headers == PROVIDER.signature_headers == {"authorization"}
    assert PROVIDER.kept_headers == {"x-event-id"}
    for table in ("event_id", "event_type"):
        with pytest.raises(ConfigurationError, match=rf"{table}\.header: authorization holds"):
            provider(**{table: {"header": "Authorization"}})


# -- what is signed is verified


@pytest.mark.parametrize("alg", ["RS256", "PS384", "ES256", "ES512", "EdDSA"])
def test_a_pair_signs_and_verifies(alg: str) -> None:
    source = provider(algorithms=[alg], body_claim="bh", event_id={"claim": "jti"})
    assert source.pair is not None
    signs, verifies = source.pair()
    made = sent("x")
    headers = source.sign(Sample("evt-9", "task.completed", BODY), signs, NOW)

    found = source.verify(replace(made, headers=headers), (verifies,))

    assert found.agent == "sample"
    assert source.identify(replace(made, headers=headers)).event_id == "evt-9"
    assert "PRIVATE" not in verifies


def test_a_sample_of_an_issuer_claims_its_agent_whatever_the_claim() -> None:
    source = provider(jwks=JWKS, agent_claim="client_id")
    assert source.pair is not None
    signs, published = source.pair()
    headers = source.sign(Sample("evt-9", "task.completed", BODY), signs, NOW)

    assert source.verify(replace(VALID, headers=headers), (published,)).agent == "sample"
    assert headers["x-event-id"] == "evt-9"


@pytest.mark.parametrize("held", [SHARED, secret(planner=SHARED), json.dumps({"kty": "oct"})])
def test_a_shared_key_signs_as_it_verifies(held: str) -> None:
    source = provider(algorithms=["HS256"])
    assert source.pair is None
    if "oct" in held:
        with pytest.raises(ConfigurationError, match="holds no key that signs HS256"):
            source.sign(Sample("e", "t", BODY), held, NOW)
        return
    headers = source.sign(Sample("e", "t", BODY), held, NOW)
    expected = "planner" if "planner" in held else "sample"
    assert source.verify(replace(VALID, headers=headers), (held,)).agent == expected


def test_with_public_keys_nothing_is_signed_and_the_remedy_is_told() -> None:
    with pytest.raises(ConfigurationError, match="give an agent's private key") as raised:
        PROVIDER.sign(Sample("e", "t", BODY), AGENTS, NOW)
    assert "BEGIN" not in str(raised.value)
    with pytest.raises(ConfigurationError, match="the secret is empty; give"):
        PROVIDER.sign(Sample("e", "t", BODY), "", NOW)


# -- settings that do not go together


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"algorithms": ["none"]}, 'algorithms: "none" is not known; choose from RS256'),
        ({"algorithms": ["HS256"], "jwks": JWKS}, "algorithms: the key of HS256 is shared"),
        ({"algorithms": "RS256"}, "algorithms: must be a list"),
        ({"audience": []}, "audience: must be text"),
        ({"audience": [7]}, "audience: must hold texts only"),
        ({"issuer": ""}, "issuer: must be text"),
        ({"tolerance": "soon"}, '"soon" is not a duration'),
    ],
)
def test_settings_that_cannot_be_used_are_refused(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        provider(**changed)
    assert words in str(raised.value)


# -- whatever comes in

ANY_TEXT = st.text(st.characters(codec=None), max_size=60)
PARTS = st.one_of(
    ANY_TEXT,
    st.binary(max_size=40).map(lambda raw: urlsafe_b64encode(raw).decode().rstrip("=")),
    st.sampled_from(token(PLANNER).split(".")),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(ANY_TEXT, inner, max_size=2),
        max_leaves=4,
    ).map(lambda value: urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")),
)


@given(written=st.lists(PARTS, max_size=5).map(".".join))
@settings(max_examples=300)
def test_any_token_is_verified_or_refused(written: str) -> None:
    found = verdict(PROVIDER, sent(written), (AGENTS,))

    assert isinstance(found, Reason) or written == token(PLANNER)


HEADS = st.dictionaries(
    st.sampled_from(["alg", "kid", "typ", "crit", "b64", "jwk", "jku", "x5c", "zip", "cty"]),
    st.none() | st.booleans() | st.integers() | ANY_TEXT | st.lists(ANY_TEXT, max_size=2)
    | st.sampled_from(["RS256", "HS256", "none", "planner"])
    | st.dictionaries(ANY_TEXT, ANY_TEXT, max_size=2),
    max_size=5,
)  # fmt: skip


@given(head=HEADS)
@settings(max_examples=300)
def test_any_head_before_a_right_signature_is_refused(head: dict[str, Any]) -> None:
    _, payload, signature = token(PLANNER).split(".")
    spoilt = urlsafe_b64encode(json.dumps(head).encode()).decode().rstrip("=")

    found = verdict(
        provider(algorithms=["RS256", "HS256"]), sent(f"{spoilt}.{payload}.{signature}"), (AGENTS,)
    )

    assert isinstance(found, Reason)


CLAIMS = st.dictionaries(
    st.sampled_from(["iss", "aud", "exp", "nbf", "iat", "sub", "bh"]),
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT
    | st.lists(st.none() | ANY_TEXT, max_size=2)
    | st.dictionaries(ANY_TEXT, ANY_TEXT, max_size=2),
    max_size=4,
)  # fmt: skip


@given(changed=CLAIMS)
@settings(max_examples=200)
def test_a_rightly_signed_token_may_claim_anything(changed: dict[str, Any]) -> None:
    payload = json.dumps({**tokens.claims(), **changed}).encode()
    made = sent(jwt.PyJWS().encode(payload, b64decode(SHARED), algorithm="HS256"))
    source = provider(algorithms=["HS256"], event_id={"claim": "sub"})

    found = verdict(source, made, (SHARED,))

    assert isinstance(found, Reason | Verified)
    if isinstance(found, Verified):
        assert found.agent.encode()
        assert 0 < len(found.agent) <= 128
    name_of(source, made)


@given(held=ANY_TEXT | st.recursive(
    ANY_TEXT | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["keys", "kty", "kid", "k", "n", "e", "crv", "x", "planner"]),
                      inner | st.sampled_from(["RSA", "EC", "oct", "OKP", "P-256", "AQAB"]),
                      max_size=5),
    max_leaves=8,
).map(json.dumps))  # fmt: skip
@settings(max_examples=300)
def test_any_text_may_stand_where_a_secret_should(held: str) -> None:
    found = PROVIDER.verify(VALID, (held, AGENTS))

    assert (found.secret, found.agent) == (1, "planner")
