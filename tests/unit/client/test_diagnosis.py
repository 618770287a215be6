"""Each usual mishap, done to a valid delivery of several providers, is named as the cause."""

import json
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.providers.cases import PUBLISHED, example, pair_of, signed
from tests.unit.providers.deliveries import ACME, NOW, SECRET, delivery
from tests.unit.providers.deliveries import signed as made
from webhook_inbox import providers
from webhook_inbox.client.diagnosis.diagnose import Diagnosis, VerificationStep, diagnose
from webhook_inbox.client.diagnosis.hypothesis import Trial
from webhook_inbox.domain.errors import NotPublished, Reason
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import Fetch
from webhook_inbox.domain.provider import Sample

# Different schemes: header over body, timed, versions, base64, signed form, Ed25519, ECDSA.
SCHEMES = ["github", "stripe", "slack", "shopify", "standard-webhooks", "discord", "sendgrid"]
BODY = b'{"id":"evt_1","type":"a.b","event_id":"evt_1","at":"caf\xc3\xa9","url":"a/b","n":[1,2]}'


def trial(provider: str, body: bytes | None = None) -> Trial:
    """Returns a valid delivery, as its provider signs this body."""
    case = signed(provider)
    sent = case.delivery if body is None else case.signed_again(body)
    spec = SourceSpec("it", provider, "it", settings=example(provider))
    return Trial(spec, sent, case.secrets)


def codes(found: Diagnosis) -> list[str]:
    assert all(cause.proven for cause in found.causes), found.causes
    return [cause.code for cause in found.causes]


def with_body(valid: Trial, body: bytes) -> Trial:
    return replace(valid, delivery=replace(valid.delivery, body=body))


def later(valid: Trial, shift: timedelta) -> Trial:
    moved = replace(valid.delivery, received_at=valid.delivery.received_at + shift)
    return replace(valid, delivery=moved)


@pytest.mark.parametrize("provider", PUBLISHED)
def test_a_valid_delivery_of_every_provider_fails_nowhere(provider: str) -> None:
    case = signed(provider)
    spec = SourceSpec("it", provider, "it", settings=example(provider))
    found = diagnose(Trial(spec, case.delivery, case.secrets), fetcher=case)
    assert (found.failed, found.causes) == (None, ())


@pytest.mark.parametrize("provider", SCHEMES)
@pytest.mark.parametrize(
    ("mishap", "code"),
    [
        (lambda body: body + b"\n", "body-newline"),
        (lambda body: b"\xef\xbb\xbf" + body, "body-bom"),
        (b64encode, "body-encoded"),
        (lambda body: body.decode("latin-1").encode(), "body-encoded"),
        (lambda body: json.dumps(json.loads(body)).encode(), "body-reserialized"),
        (lambda body: json.dumps(json.loads(body), indent=2).encode(), "body-reserialized"),
        (lambda body: json.dumps(json.loads(body), indent="\t").encode(), "body-reserialized"),
    ],
    ids=["newline", "bom", "base64", "charset", "python", "indented", "tabs"],
)
def test_what_was_done_to_the_body_is_named(
    provider: str, mishap: Callable[[bytes], bytes], code: str
) -> None:
    broken = with_body(trial(provider, BODY), mishap(BODY))
    found = diagnose(broken)
    assert (found.failed, codes(found)) == (VerificationStep.SIGNATURE, [code])


@pytest.mark.parametrize(
    "original",
    [
        json.dumps({"a": "b/c"}).replace("/", "\\/").encode(),
        b'{"a":"\\u003cb\\u003e"}',
        b'{"a":"\\u00e9"}',
        b'{"a":1,"b":{"c":2}}\n',
    ],
    ids=["php", "go", "ascii", "line"],
)
def test_the_spellings_of_other_languages_are_tried(original: bytes) -> None:
    valid = trial("github", original)
    broken = with_body(valid, json.dumps(json.loads(original), ensure_ascii=False).encode())
    assert codes(diagnose(broken)) == ["body-reserialized"]


@pytest.mark.parametrize("provider", ["github", "stripe", "slack", "shopify"])
@pytest.mark.parametrize(
    ("mishap", "code"),
    [
        (lambda secret: secret + "\n", "secret-white-space"),
        (lambda secret: f'"{secret}"', "secret-quoted"),
        (lambda secret: f"SIGNING_SECRET={secret}", "secret-quoted"),
        (lambda secret: json.dumps({"secret": secret}), "secret-quoted"),
        (lambda secret: b64encode(secret.encode()).decode(), "secret-encoding"),
        (lambda secret: secret.encode().hex(), "secret-encoding"),
    ],
    ids=["line", "quotes", "variable", "json", "base64", "hex"],
)
def test_what_was_done_to_the_secret_is_named(
    provider: str, mishap: Callable[[str], str], code: str
) -> None:
    valid = trial(provider)
    found = diagnose(replace(valid, secrets=(mishap(valid.secrets[0]),)))
    assert codes(found) == [code]
    assert valid.secrets[0] not in repr(found)


def test_a_key_of_standard_webhooks_in_hex_is_named() -> None:
    valid = trial("standard-webhooks")
    assert diagnose(replace(valid, secrets=("whsec_%",))).failed is VerificationStep.SECRET
    key = b"not a secret, only a test".hex()
    assert codes(diagnose(replace(valid, secrets=(key,)))) == ["secret-encoding"]


@pytest.mark.parametrize("provider", ["stripe", "slack", "standard-webhooks", "discord", "github"])
def test_a_secret_that_was_given_to_try_is_named_and_not_shown(provider: str) -> None:
    private, public = pair_of(provider)
    valid = trial(provider)
    wrong = "00" * 32
    found = diagnose(replace(valid, secrets=(wrong,)), others=[("live.txt", public)])
    assert codes(found) == ["other-secret"]
    assert "live.txt" in found.causes[0].words
    assert public not in repr(found)
    assert private not in repr(found)


@pytest.mark.parametrize("provider", ["stripe", "slack", "standard-webhooks", "zoom", "netlify"])
@pytest.mark.parametrize("minutes", [17, -17])
def test_by_how_much_the_time_is_off_is_told(provider: str, minutes: int) -> None:
    found = diagnose(later(trial(provider), timedelta(minutes=minutes)))
    if provider == "netlify" and minutes > 0 and found.failed is None:
        pytest.skip("its token is valid for longer")
    assert found.failed is VerificationStep.TIME
    assert codes(found) == ["clock-skew"]
    side = "before" if minutes > 0 else "after"
    assert f"signed 17 min {side} it was received" in found.causes[0].words


def test_a_clock_in_another_time_zone_is_recognised() -> None:
    found = diagnose(later(trial("stripe"), timedelta(hours=2, seconds=3)))
    assert "2 h is the error of a clock in another time zone" in found.causes[0].words


def test_an_old_delivery_of_a_changed_body_has_both_causes() -> None:
    broken = with_body(trial("slack", BODY), BODY + b"\n")
    found = diagnose(later(broken, timedelta(days=2)))
    assert codes(found) == ["body-newline", "clock-skew"]


def test_two_mishaps_at_once_are_both_named() -> None:
    valid = trial("github", BODY)
    broken = with_body(replace(valid, secrets=(valid.secrets[0] + " ",)), BODY + b"\n")
    assert codes(diagnose(broken)) == ["secret-white-space", "body-newline"]


def with_headers(valid: Trial, change: Callable[[str, str], tuple[str, str]]) -> Trial:
    headers = dict(change(name, value) for name, value in valid.delivery.headers.items())
    return replace(valid, delivery=replace(valid.delivery, headers=headers))


@pytest.mark.parametrize("provider", ["github", "slack", "standard-webhooks"])
def test_renamed_headers_are_named(provider: str) -> None:
    broken = with_headers(trial(provider), lambda n, v: (f"HTTP_{n.upper().replace('-', '_')}", v))
    found = diagnose(broken)
    assert (found.failed, codes(found)) == (VerificationStep.HEADER, ["header-renamed"])


def test_a_prefix_that_was_cut_off_is_named() -> None:
    broken = with_headers(trial("github"), lambda n, v: (n, v.removeprefix("sha256=")))
    found = diagnose(broken)
    assert (found.failed, codes(found)) == (VerificationStep.FORM, ["header-changed"])
    assert "`sha256=`" in found.causes[0].words


def without(valid: Trial, *names: str) -> Trial:
    headers = {k: v for k, v in valid.delivery.headers.items() if k not in names}
    return replace(valid, delivery=replace(valid.delivery, headers=headers))


def test_a_header_that_is_missing_is_named() -> None:
    found = diagnose(without(trial("github"), "x-hub-signature-256"))
    assert (found.failed, found.reason) == (VerificationStep.HEADER, Reason.MISSING_SIGNATURE)
    assert found.causes[0].code == "header-missing"
    assert "x-hub-signature-256" in found.causes[0].words


@pytest.mark.parametrize("names", [("signature",), ("timestamp",), ("signature", "timestamp")])
def test_a_header_that_has_another_name_in_the_configuration_is_named(
    names: tuple[str, ...],
) -> None:
    right = {name: ACME[name]["header"].lower() for name in names}
    wrong = {name: {**ACME[name], "header": f"X-Other-{name}"} for name in names}
    spec = SourceSpec("it", "hmac", "it", settings={**ACME, **wrong})
    found = diagnose(Trial(spec, made("hmac"), (SECRET,)))
    assert codes(found) == ["header-name"]
    for name, header in right.items():
        assert f"no x-other-{name} was received: its value is in {header}" in found.causes[0].words
        assert f"{header} in place of x-other-{name}" in found.causes[0].remedy


def test_the_headers_of_another_provider_are_recognised() -> None:
    found = diagnose(replace(trial("shopify"), spec=SourceSpec("it", "slack", "it")))
    assert "headers of another provider: shopify" in found.causes[0].words
    assert "register" in found.causes[0].remedy


def test_a_version_that_does_not_count_is_named() -> None:
    broken = with_headers(trial("stripe"), lambda n, v: (n, v.replace("v1=", "v0=")))
    found = diagnose(broken)
    assert (found.failed, codes(found)) == (VerificationStep.FORM, ["unknown-version"])


@pytest.mark.parametrize(
    "url",
    [
        "http://inbox.example/webhooks/twilio",
        "https://inbox.example/webhooks/twilio/",
    ],
)
def test_another_address_than_the_registered_one_is_named(url: str) -> None:
    settings = {"url": url}
    spec = SourceSpec("it", "twilio", "it", settings=settings)
    case = signed("twilio")
    sent = providers.load(spec).send(
        Sample("SM1", "message", case.delivery.body), case.secrets[0], NOW
    )
    came = Delivery(
        "it", "POST", "/webhooks/twilio", sent.query, dict(sent.headers), sent.body, NOW
    )
    wrong = {"url": "https://inbox.example/webhooks/twilio"}
    found = diagnose(Trial(replace(spec, settings=wrong), came, case.secrets))
    assert codes(found) == ["url-changed"]
    assert found.causes[0].remedy == f'url = "{url}" in the source\'s table'


def test_an_address_that_is_given_is_tried() -> None:
    url = "https://hooks.example/elsewhere"
    spec = SourceSpec("it", "twilio", "it", settings={"url": url})
    case = signed("twilio")
    sent = providers.load(spec).send(
        Sample("SM1", "message", case.delivery.body), case.secrets[0], NOW
    )
    came = Delivery("it", "POST", "/webhooks/it", sent.query, dict(sent.headers), sent.body, NOW)
    broken = Trial(replace(spec, settings=example("twilio")), came, case.secrets)
    assert codes(diagnose(broken, url=url)) == ["url-changed"]


@pytest.mark.parametrize(
    "change",
    [
        {"encoding": "base64"},
        {"algorithm": "sha1"},
        {"key": "base64"},
        {"signs": "v0:{timestamp}:{body}", "encoding": "base64"},
    ],
)
def test_what_a_declared_source_says_otherwise_is_named(change: dict[str, str]) -> None:
    true = {**ACME, "signature": {**ACME["signature"], **change}}
    spec = SourceSpec("it", "hmac", "it", settings=true)
    headers = providers.load(spec).sign(Sample("1", "a", b'{"type":"a"}'), SECRET, NOW)
    came = delivery(headers, b'{"type":"a"}')
    found = diagnose(Trial(replace(spec, settings=ACME), came, (SECRET,)))
    assert codes(found) == ["scheme-settings"]
    for key, value in change.items():
        assert f'{key} = "{value}"' in found.causes[0].words


def test_another_scheme_of_the_same_provider_is_named() -> None:
    token = SourceSpec("it", "gitlab", "it", settings={"proof": "token"})
    headers = providers.load(token).sign(Sample("1", "Push Hook", b"{}"), SECRET, NOW)
    found = diagnose(Trial(SourceSpec("it", "gitlab", "it"), delivery(headers, b"{}"), (SECRET,)))
    assert codes(found) == ["scheme-settings"]
    assert 'proof = "token"' in found.causes[0].words


@pytest.mark.parametrize("provider", SCHEMES)
def test_what_nothing_explains_is_said_to_be_so(provider: str) -> None:
    broken = with_body(trial(provider, BODY), b'{"id":"evt_2","livemode":true}')
    found = diagnose(broken)
    assert found.failed is VerificationStep.SIGNATURE
    assert [(cause.code, cause.proven) for cause in found.causes] == [
        ("other-mode", False),
        ("unknown", False),
    ]
    assert found.tried > 50


def test_an_event_without_a_name_fails_at_the_last_step() -> None:
    found = diagnose(without(trial("github"), "x-github-delivery"))
    assert (found.failed, codes(found)) == (VerificationStep.NAME, ["unnamed"])


def test_a_key_that_is_not_at_hand_is_asked_for() -> None:
    found = diagnose(trial("aws-sns"))
    assert (found.failed, codes(found)) == (VerificationStep.KEY, ["key-missing"])


class KeylessServer:
    """A provider's server that publishes no key."""

    def fetch(self, wanted: Fetch) -> bytes:
        """See the port."""
        raise NotPublished(f"{wanted.url} answered 404")


def test_a_key_that_its_provider_does_not_publish_explains_the_rejection() -> None:
    found = diagnose(trial("aws-sns"), fetcher=KeylessServer())
    assert (found.failed, codes(found)) == (VerificationStep.KEY, ["key-unknown"])
    assert found.causes[0].proven
