from dataclasses import replace
from zlib import crc32

import pytest

from tests.unit.providers.cases import Case, provider_of, recorded, signed, vectors_of
from tests.unit.providers.deliveries import verdict
from webhook_inbox.domain.errors import ConfigurationError, Reason
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.provider import Verified
from webhook_inbox.providers import load

VECTORS = {vector["id"]: vector for vector in vectors_of("paypal")}
REAL = "paypal-0128"


def case(name: str) -> Case:
    return recorded(VECTORS[name])


def of_kind(kind: str) -> list[str]:
    return [name for name, vector in VECTORS.items() if vector["kind"] == kind]


@pytest.mark.parametrize("name", of_kind("cert-url"))
def test_nothing_is_fetched_from_another_place(name: str) -> None:
    judged = case(name)

    assert judged.verdict() is Reason.MALFORMED
    assert judged.fetched == []


@pytest.mark.parametrize("name", of_kind("cert-host"))
def test_the_certificate_is_fetched_from_each_of_paypals_hosts(name: str) -> None:
    judged = case(name)

    assert isinstance(judged.verdict(), Verified)
    assert judged.fetched == [judged.delivery.headers["paypal-cert-url"]]


def test_another_body_of_the_same_crc_32_has_the_same_guard() -> None:
    """It cannot be told from the real one by its signature, so what is signed is guarded."""
    (name,) = of_kind("crc-collision")
    forged, real = case(name).delivery, case("own-paypal-001").delivery
    guard = case("own-paypal-001").provider.guard
    verified = case("own-paypal-001").verdict()
    assert guard is not None
    assert isinstance(verified, Verified)

    assert forged.body != real.body
    assert crc32(forged.body) == crc32(real.body)
    content = guard(verified, ())
    assert content.endswith(f"|{crc32(forged.body)}".encode())


def test_the_time_that_is_told_is_the_transmissions() -> None:
    judged = case(REAL)
    verified = judged.verdict()

    assert isinstance(verified, Verified)
    assert verified.signed_at == judged.delivery.received_at


def test_a_wrong_algorithm_is_refused_by_the_scheme_itself() -> None:
    judged = signed("paypal")
    sent = judged.with_header("paypal-auth-algo", "SHA1withRSA")

    assert verdict(judged.provider, sent, (judged.published.decode(),)) is Reason.MALFORMED


def test_what_is_no_key_verifies_nothing() -> None:
    for material in (b"", b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----", b"<html>"):
        judged = replace(signed("paypal"), published=material)
        assert judged.verdict() in {Reason.UNKNOWN_KEY, Reason.KEY_UNAVAILABLE}


def test_a_delivery_without_a_signature_is_called_that() -> None:
    sent = signed("paypal")

    verdict_ = sent.verdict(sent.with_header("paypal-transmission-sig", None))

    assert verdict_ is Reason.MISSING_SIGNATURE
    assert sent.fetched == []


def test_the_webhooks_id_is_required() -> None:
    with pytest.raises(ConfigurationError, match="webhook_id: missing"):
        load(SourceSpec("it", "paypal", "it"))


def test_no_secret_is_shared_with_paypal() -> None:
    assert not provider_of("paypal").needs_secret


def of(environment: str, host: str) -> Case:
    """Returns a valid delivery to a source of an environment, its certificate on a host."""
    case = signed("paypal")
    settings = {"webhook_id": "4JH86294D6297924G", "environment": environment}
    url = f"https://{host}/v1/notifications/certs/CERT-1"
    sent = case.with_header("paypal-cert-url", url)
    return replace(
        case, provider=load(SourceSpec("it", "paypal", "it", settings=settings)), delivery=sent
    )


PLACES = {
    "production": ("api.paypal.com", "api-m.paypal.com"),
    "sandbox": ("api.sandbox.paypal.com", "api-m.sandbox.paypal.com"),
}


@pytest.mark.parametrize("host", [host for hosts in PLACES.values() for host in hosts])
@pytest.mark.parametrize("environment", list(PLACES))
def test_a_certificate_is_accepted_from_the_sources_own_environment(
    environment: str, host: str
) -> None:
    """Anyone can create an account of the sandbox, and have it sign."""
    judged = of(environment, host)

    if host in PLACES[environment]:
        assert isinstance(judged.verdict(), Verified)
    else:
        assert judged.verdict() is Reason.MALFORMED
        assert judged.fetched == []


@pytest.mark.parametrize("name", ["paypal-0128", "paypal-0137"])
def test_a_delivery_of_the_sandbox_is_refused_by_a_source_in_production(name: str) -> None:
    judged = case(name)
    settings = {"webhook_id": VECTORS[name]["webhook_id"]}
    production = load(SourceSpec("it", "paypal", "it", settings=settings))

    assert replace(judged, provider=production).verdict() is Reason.MALFORMED


def test_the_sandboxs_certificate_is_refused_in_production_wherever_it_is() -> None:
    judged = case(REAL)
    settings = {"webhook_id": VECTORS[REAL]["webhook_id"]}
    production = load(SourceSpec("it", "paypal", "it", settings=settings))
    moved = judged.with_header(
        "paypal-cert-url", "https://api.paypal.com/v1/notifications/certs/CERT-1"
    )

    assert replace(judged, provider=production).verdict(moved) is Reason.INVALID_SIGNATURE


def test_another_environment_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="environment"):
        of("test", "api.paypal.com")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("paypal-auth-algo", "SHA1withRSA"),
        ("paypal-transmission-sig", "not base64"),
        ("paypal-transmission-time", "yesterday"),
        ("paypal-transmission-time", None),
        ("paypal-transmission-id", None),
    ],
)
def test_everything_else_is_checked_before_a_certificate_is_fetched(
    name: str, value: str | None
) -> None:
    judged = signed("paypal")

    assert judged.verdict(judged.with_header(name, value)) is Reason.MALFORMED
    assert judged.fetched == []


def test_a_body_that_is_no_event_asks_for_no_certificate() -> None:
    judged = signed("paypal")

    assert judged.verdict(replace(judged.delivery, body=b"[]")) is Reason.MALFORMED
    assert judged.fetched == []
