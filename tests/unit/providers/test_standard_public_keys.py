"""Signatures `v1a` of Standard Webhooks, made with a private key."""

import subprocess
import sys
from base64 import b64decode, b64encode
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.unit.providers.cases import provider_of, recorded, vectors_of
from tests.unit.providers.deliveries import SECRET, signed, verdict, with_header
from webhook_inbox.domain.errors import ConfigurationError, Reason
from webhook_inbox.domain.provider import Sample, Verified

KEY = Ed25519PrivateKey.generate()
PUBLIC = "whpk_" + b64encode(KEY.public_key().public_bytes_raw()).decode()
SHARED = signed("standard-webhooks")
V1 = SHARED.headers["webhook-signature"]
CONTENT = ".".join(SHARED.headers[f"webhook-{name}"] for name in ("id", "timestamp")).encode()
V1A = "v1a," + b64encode(KEY.sign(CONTENT + b"." + SHARED.body)).decode()
SENT = with_header(SHARED, "webhook-signature", V1A)
PROVIDER = provider_of("standard-webhooks")


def test_a_public_key_verifies_v1a_with_or_without_its_padding() -> None:
    for secret in (PUBLIC, PUBLIC.rstrip("=")):
        verified = verdict(PROVIDER, SENT, (secret,))
        assert isinstance(verified, Verified)
        assert verified.signature == V1A.removeprefix("v1a,")
        assert verified.signed_at == SENT.received_at


def test_under_a_public_key_v1_never_counts() -> None:
    """Everybody has the public key, and could make an HMAC with it."""
    raw = b64encode(b64decode(PUBLIC.removeprefix("whpk_"))).decode()
    for key in (SECRET, raw):
        forged = signed("standard-webhooks", secret=key)
        assert verdict(PROVIDER, forged, (PUBLIC,)) is Reason.MALFORMED


def test_under_a_shared_secret_v1a_never_counts() -> None:
    assert verdict(PROVIDER, SENT, (SECRET,)) is Reason.MALFORMED


@pytest.mark.parametrize(
    "value", [V1A, V1, f"{V1} {V1A}", f"{V1A} {V1}"], ids=["v1a", "v1", "v1-v1a", "v1a-v1"]
)
@pytest.mark.parametrize("secrets", [(PUBLIC, SECRET), (SECRET, PUBLIC)])
def test_while_a_source_changes_from_one_to_the_other_either_counts(
    value: str, secrets: tuple[str, str]
) -> None:
    verified = verdict(PROVIDER, with_header(SENT, "webhook-signature", value), secrets)

    assert isinstance(verified, Verified)
    made = {V1.partition(",")[2]: SECRET, V1A.partition(",")[2]: PUBLIC}
    assert secrets[verified.secret] == made[verified.signature]


def test_with_both_live_a_forged_delivery_is_still_forged_and_a_stale_one_stale() -> None:
    both = with_header(SENT, "webhook-signature", f"{V1} {V1A}")

    altered = replace(both, body=b"{}")
    assert verdict(PROVIDER, altered, (PUBLIC, SECRET)) is Reason.INVALID_SIGNATURE
    late = replace(both, received_at=both.received_at.replace(hour=23))
    assert verdict(PROVIDER, late, (PUBLIC, SECRET)) is Reason.STALE


@pytest.mark.parametrize("key", ["whpk_", "whpk_!", "whpk_" + b64encode(bytes(31)).decode()])
def test_a_public_key_that_is_none_is_no_secret(key: str) -> None:
    assert verdict(PROVIDER, SENT, (key,)) is Reason.NO_SECRET
    assert isinstance(verdict(PROVIDER, SENT, (key, PUBLIC)), Verified)


def test_nothing_can_be_signed_with_a_public_key() -> None:
    with pytest.raises(ConfigurationError):
        PROVIDER.sign(Sample("msg_1", "", b"{}"), PUBLIC, SENT.received_at)


@pytest.mark.parametrize("provider_name", ["polar", "openai"])
def test_a_key_that_is_text_may_begin_like_a_public_one(provider_name: str) -> None:
    sent = signed(provider_name, sample=Sample("msg_1", "", b"{}"), secret=PUBLIC)

    assert isinstance(verdict(provider_of(provider_name), sent, (PUBLIC,)), Verified)


def test_svix_signs_so_too() -> None:
    vector = next(v for v in vectors_of("svix") if v["kind"] == "v1a")

    assert isinstance(recorded(vector).verdict(), Verified)


def test_the_library_for_public_keys_is_loaded_by_sources_that_have_one_alone() -> None:
    program = (
        "import sys\n"
        "from webhook_inbox.providers import load\n"
        "from webhook_inbox.domain.manifest import SourceSpec\n"
        "load(SourceSpec('it', 'svix', 'it'))\n"
        "sys.exit('cryptography' in sys.modules)\n"
    )

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
