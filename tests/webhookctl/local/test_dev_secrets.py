import base64
import stat
from pathlib import Path

import pytest

from tests.unit.providers.cases import NAMES, NOW, provider_of, sample_of
from webhook_inbox.client.secret_documents import SecretDocuments
from webhook_inbox.domain.manifest import DestinationSpec, Manifest, SourceSpec
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Verified
from webhook_inbox.domain.secret_document import HANDLERS, SOURCES
from webhookctl.errors import CommandError
from webhookctl.local.dev_secrets import FILE, choose, fake, signing_key, store, stored
from webhookctl.local.processes.ministack import Ministack

MANIFEST = Manifest(
    sources={
        "github": SourceSpec("github", "github", "github"),
        "billing": SourceSpec("billing", "standard-webhooks", "shared"),
    },
    secrets=("github", "openai", "shared"),
)


def test_every_secret_gets_a_value_that_says_it_is_fake(tmp_path: Path) -> None:
    values = choose(MANIFEST, {}, tmp_path)
    assert set(values) == {"github", "openai", "shared"}
    assert values["github"].startswith("dev-only-github-")
    assert b"dev-only" in base64.b64decode(values["shared"].removeprefix("whsec_"))


@pytest.mark.parametrize("provider_name", ["github", "stripe", "standard-webhooks", "hmac"])
def test_no_two_fakes_are_the_same(provider_name: str) -> None:
    assert fake(provider_name, "s") != fake(provider_name, "s")


def test_a_declared_schemes_fake_is_text_hexadecimal_and_base64_alike() -> None:
    secret = fake("hmac", "acme")
    assert len(bytes.fromhex(secret)) == 32
    assert base64.b64encode(base64.b64decode(secret, validate=True)).decode() == secret


@pytest.mark.parametrize(
    "provider_name", [name for name in NAMES if provider_of(name).pair is None]
)
def test_every_provider_that_shares_a_secret_signs_with_its_fake(provider_name: str) -> None:
    provider, secret = provider_of(provider_name), fake(provider_name, "s")
    sent = provider.send(sample_of(provider_name), secret, NOW)
    headers = {"host": "inbox.example", **sent.headers}
    delivery = Delivery("it", "POST", "/webhooks/it", sent.query, headers, sent.body, NOW)
    assert isinstance(provider.verify(delivery, (secret,)), Verified)


@pytest.mark.parametrize("provider_name", ["discord", "sendgrid", "wise"])
def test_a_provider_with_a_key_of_its_own_gets_a_pair_that_stays_the_same(
    tmp_path: Path, provider_name: str
) -> None:
    manifest = Manifest(sources={"it": SourceSpec("it", provider_name, "it")})
    public, provider = choose(manifest, {}, tmp_path)["it"], provider_of(provider_name)
    private = signing_key(tmp_path, "it")
    assert private is not None
    sent = provider.send(sample_of(provider_name), private, NOW)
    delivery = Delivery("it", "POST", "/webhooks/it", "", sent.headers, sent.body, NOW)
    assert isinstance(provider.verify(delivery, (public,)), Verified)
    assert choose(manifest, {}, tmp_path) == {"it": public}
    assert signing_key(tmp_path, "it") == private


def test_what_signs_calls_to_a_destination_is_a_key_of_standard_webhooks(tmp_path: Path) -> None:
    crm = DestinationSpec("crm", "https://crm.example", sign="crm-signing")
    manifest = Manifest(destinations={"crm": crm}, secrets=("crm-signing",))
    secret = choose(manifest, {}, tmp_path)["crm-signing"]
    assert b"dev-only" in base64.b64decode(secret.removeprefix("whsec_"), validate=True)


def test_a_shared_secret_is_what_signs(tmp_path: Path) -> None:
    choose(MANIFEST, {}, tmp_path)
    assert signing_key(tmp_path, "github") is None


def test_fakes_stay_the_same_between_starts(tmp_path: Path) -> None:
    assert choose(MANIFEST, {}, tmp_path) == choose(MANIFEST, {}, tmp_path)
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


def test_a_given_value_is_named_by_its_source_or_itself_and_is_not_kept(tmp_path: Path) -> None:
    given = {"billing": "whsec_cmVhbA==", "openai": "sk-real"}
    values = choose(MANIFEST, given, tmp_path)
    assert values["shared"] == "whsec_cmVhbA=="
    assert values["openai"] == "sk-real"
    assert "real" not in (tmp_path / FILE).read_text()
    assert choose(MANIFEST, {}, tmp_path)["openai"].startswith("dev-only")


def test_an_unknown_name_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"no such source; it has: billing, github$"):
        choose(MANIFEST, {"gitlab": "x"}, tmp_path)


def test_a_damaged_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{")
    values = choose(MANIFEST, {}, tmp_path)
    assert choose(MANIFEST, {}, tmp_path) == values


def test_values_are_stored_in_the_documents_of_their_readers(ministack: Ministack) -> None:
    documents = SecretDocuments(ministack.client("secretsmanager"), "box/")
    assert stored(documents) == {}
    for value in ("one", "two"):
        store({"github": value, "openai": value}, MANIFEST, documents)
        assert documents.read(SOURCES) == {"github": (value,)}
        assert documents.read(HANDLERS) == {"openai": (value,)}

    documents.set(SOURCES, "github", "three")

    assert stored(documents) == {"github": "three", "openai": "two"}


def test_the_fake_of_a_source_that_was_removed_is_there_when_it_returns(tmp_path: Path) -> None:
    before = choose(MANIFEST, {}, tmp_path)
    choose(Manifest(), {}, tmp_path)
    assert choose(MANIFEST, {}, tmp_path) == before
