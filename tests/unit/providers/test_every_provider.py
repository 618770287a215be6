"""Properties of every provider: sign a valid delivery, then break one part of it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.providers.deliveries import (
    NAMES,
    NOW,
    OTHER,
    SAMPLES,
    SECRET,
    SIGNATURES,
    TIMED,
    delivery,
    later,
    name_of,
    provider_of,
    signed,
    verdict,
    with_header,
)
from webhook_inbox.domain.errors import ConfigurationError, Reason
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Verified

FORGED = {Reason.INVALID_SIGNATURE, Reason.MALFORMED}

every_provider = pytest.mark.parametrize("provider_name", NAMES)
every_timed_provider = pytest.mark.parametrize("provider_name", TIMED)


@every_provider
def test_a_signed_delivery_is_verified_and_named(provider_name: str) -> None:
    provider, sent = provider_of(provider_name), signed(provider_name)

    verified = provider.verify(sent, (SECRET,))
    identity = provider.identify(sent)

    assert provider.name == provider_name
    assert verified.secret == 0
    assert verified.signature in sent.headers[SIGNATURES[provider_name]]
    assert verified.signed_at == (NOW if provider_name in TIMED else None)
    assert (identity.event_id, identity.type) == (
        SAMPLES[provider_name].event_id,
        SAMPLES[provider_name].type,
    )


@every_provider
def test_a_provider_that_documents_no_retries_declares_none(provider_name: str) -> None:
    """Its duplicates are then counted as resends. LINE's retries are a setting of the channel."""
    provider = provider_of(provider_name)
    facts = provider.facts
    never = facts is not None and facts.retries.startswith("none") and provider_name != "line"

    assert provider.retries is not never


@every_provider
def test_another_body_is_refused(provider_name: str) -> None:
    sent = signed(provider_name)
    changed = replace(sent, body=sent.body.replace(b":", b";", 1))

    assert verdict(provider_of(provider_name), changed) is Reason.INVALID_SIGNATURE


@every_provider
@pytest.mark.parametrize("extra", [b"\n", b"\r\n", b" ", b"\x00"])
def test_a_byte_more_at_the_end_is_refused(provider_name: str, extra: bytes) -> None:
    sent = signed(provider_name)

    changed = replace(sent, body=sent.body + extra)

    assert verdict(provider_of(provider_name), changed) is Reason.INVALID_SIGNATURE


@every_provider
def test_another_secret_is_refused(provider_name: str) -> None:
    sent = signed(provider_name)

    assert verdict(provider_of(provider_name), sent, (OTHER,)) is Reason.INVALID_SIGNATURE


@every_provider
def test_the_previous_secret_still_counts_and_is_told_apart(provider_name: str) -> None:
    provider, sent = provider_of(provider_name), signed(provider_name)

    assert provider.verify(sent, (SECRET, OTHER)).secret == 0
    assert provider.verify(sent, (OTHER, SECRET)).secret == 1


@every_provider
@pytest.mark.parametrize("secrets", [(), ("",), ("", "")])
def test_without_a_usable_secret_nothing_is_judged(
    provider_name: str, secrets: tuple[str, ...]
) -> None:
    assert verdict(provider_of(provider_name), signed(provider_name), secrets) is Reason.NO_SECRET


@every_provider
def test_a_signature_made_with_an_empty_key_is_refused(provider_name: str) -> None:
    """Everybody has the empty key, so a secret that was set to nothing must not let them in."""
    with pytest.raises(ConfigurationError):
        provider_of(provider_name).sign(SAMPLES[provider_name], "", NOW)


@every_provider
@pytest.mark.parametrize("value", [None, ""])
def test_a_missing_or_empty_signature_is_refused(provider_name: str, value: str | None) -> None:
    sent = with_header(signed(provider_name), SIGNATURES[provider_name], value)

    assert verdict(provider_of(provider_name), sent) is Reason.MISSING_SIGNATURE


@every_provider
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda text: text[:-1], id="truncated"),
        pytest.param(lambda text: text[: len(text) // 2], id="half"),
        pytest.param(lambda text: text + "0", id="longer"),
        pytest.param(lambda text: text + "\t", id="tab-after"),
        pytest.param(lambda text: "\t" + text, id="tab-before"),
        pytest.param(lambda text: text + "\n", id="newline"),
        pytest.param(lambda text: text + "\u00e9", id="non-ascii"),
        pytest.param(lambda text: text + "\ud800", id="lone-surrogate"),
        pytest.param(lambda text: text.upper(), id="upper-case"),
        pytest.param(lambda text: text.translate({ord("0"): "\u0660"}) + "\u0660", id="digits"),
        pytest.param(lambda text: "=" + text, id="no-prefix"),
        pytest.param(lambda text: "x" * 10_000, id="long"),
        pytest.param(lambda text: ",", id="comma"),
        pytest.param(lambda text: "\x00", id="nul"),
    ],
)
def test_a_broken_signature_is_refused(provider_name: str, change: object) -> None:
    sent, name = signed(provider_name), SIGNATURES[provider_name]
    assert callable(change)

    broken = with_header(sent, name, change(sent.headers[name]))

    assert verdict(provider_of(provider_name), broken) in FORGED


@every_provider
def test_a_signature_header_sent_twice_is_refused_unless_its_scheme_has_lists(
    provider_name: str,
) -> None:
    """HTTP API joins repeated headers by commas."""
    sent, name = signed(provider_name), SIGNATURES[provider_name]

    twice = with_header(sent, name, f"{sent.headers[name]},{sent.headers[name]}")

    assert verdict(provider_of(provider_name), twice) in FORGED


@every_timed_provider
def test_time_is_judged_when_the_delivery_was_received_both_ways(provider_name: str) -> None:
    provider, sent = provider_of(provider_name), signed(provider_name)

    assert isinstance(verdict(provider, later(sent, 300)), Verified)
    assert isinstance(verdict(provider, later(sent, -300)), Verified)
    assert verdict(provider, later(sent, 300.5)) is Reason.STALE
    assert verdict(provider, later(sent, -300.5)) is Reason.FUTURE


@every_timed_provider
def test_a_forged_delivery_is_called_forged_however_old_it_is(provider_name: str) -> None:
    forged = replace(signed(provider_name), body=b"{}", received_at=NOW + timedelta(days=1))

    assert verdict(provider_of(provider_name), forged) is Reason.INVALID_SIGNATURE


@every_timed_provider
@pytest.mark.parametrize(
    "stamp",
    [
        "", "-1795248000", "+1795248000", "1795248000.0", "1_795_248_000", " 1795248000",
        "NaN", "inf", "1e9", "hello", "\u0661\u0667", "\u00b2", "9" * 19, "9" * 5000, "0x6b",
        "\ud800", "2026-11-21T08:00:00Z", "0", "1", "179524800", "17952480000", "1795248000000",
    ],
)  # fmt: skip
def test_a_time_that_is_no_number_of_seconds_is_malformed(provider_name: str, stamp: str) -> None:
    sent = restamped(provider_name, stamp)

    assert verdict(provider_of(provider_name), sent) is Reason.MALFORMED


@every_timed_provider
@pytest.mark.parametrize("stamp", ["1000000000", "9999999999"])
def test_any_other_time_than_the_signed_one_is_refused(provider_name: str, stamp: str) -> None:
    sent = restamped(provider_name, stamp)

    assert verdict(provider_of(provider_name), sent) is Reason.INVALID_SIGNATURE


def restamped(provider_name: str, stamp: str) -> Delivery:
    """Returns a valid delivery whose time is replaced and nothing else."""
    sent = signed(provider_name)
    if provider_name == "stripe":
        rest = sent.headers["stripe-signature"].partition(",")[2]
        return with_header(sent, "stripe-signature", f"t={stamp},{rest}")
    header = {
        "hmac": "x-acme-timestamp",
        "slack": "x-slack-request-timestamp",
        "standard-webhooks": "webhook-timestamp",
    }[provider_name]
    return with_header(sent, header, stamp)


@every_provider
def test_a_body_of_any_bytes_can_be_signed(provider_name: str) -> None:
    sample = replace(SAMPLES[provider_name], body=b"\xff\xfe\x00 not text, not JSON \r\n")
    sent = signed(provider_name, sample=sample)

    assert isinstance(verdict(provider_of(provider_name), sent), Verified)


@every_provider
@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"id":' + b"9" * 5000 + b"}",
        b"\xff\xfe",
        b"null",
        b"[]",
        b"",
        b"payload=%7B",
        b"&" * 5000,
    ],
    ids=["nested", "nested-objects", "digits", "not-utf8", "null", "list", "empty", "form", "&"],
)
def test_naming_never_fails_in_another_way_than_being_rejected(
    provider_name: str, body: bytes
) -> None:
    sent = replace(signed(provider_name), body=body)

    name_of(provider_of(provider_name), sent)

    handshake = provider_of(provider_name).handshake
    assert handshake is None or handshake(sent, SECRET) is None


@every_provider
def test_no_header_at_all_is_a_missing_signature(provider_name: str) -> None:
    sent = delivery({}, SAMPLES[provider_name].body)

    assert verdict(provider_of(provider_name), sent) is Reason.MISSING_SIGNATURE


@every_provider
def test_a_rejection_never_shows_the_secret_or_the_signature(provider_name: str) -> None:
    provider, sent = provider_of(provider_name), signed(provider_name)
    signature = provider.verify(sent, (SECRET,)).signature

    with pytest.raises(Exception, match="invalid-signature") as raised:
        provider.verify(sent, (OTHER,))

    assert signature not in str(raised.value)
    assert OTHER not in str(raised.value)


@every_provider
def test_every_reason_has_a_status_that_is_no_success(provider_name: str) -> None:
    statuses = provider_of(provider_name).statuses

    assert set(statuses) == set(Reason)
    assert all(status in {400, 401, 403, 503} for status in statuses.values())


@every_provider
def test_stored_header_names_are_lower_case_and_hold_no_signature(provider_name: str) -> None:
    kept = provider_of(provider_name).kept_headers

    assert all(name == name.lower() for name in kept)
    assert SIGNATURES[provider_name] not in kept
