"""Secrets: the two ports, and the document that people and functions change."""

import json
from contextlib import suppress
from uuid import uuid4

import pytest

from tests.contract.backends import AwsVault, Vault, aws_differs
from tests.contract.conftest import Clients
from webhook_inbox.adapters.aws.errors import MarkedForDeletion
from webhook_inbox.adapters.aws.secrets_manager import SecretsManagerStore
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.secret_document import Secrets, rotated
from webhook_inbox.domain.secrets import COMPLETION_KEY, TOKEN_KEY

NAME = "webhook-inbox/hand-made/sources"


def live(vault: Vault, name: str) -> tuple[str, ...]:
    return vault.store.fetch().get(name, ())


def test_a_secret_that_was_never_set_has_no_values(vault: Vault) -> None:
    assert live(vault, "stripe") == ()


def test_a_secret_set_once_has_one_value(vault: Vault) -> None:
    vault.set("stripe", "whsec_1")

    assert live(vault, "stripe") == ("whsec_1",)
    assert live(vault, "strip") == ()


def test_a_rotated_secret_has_the_current_value_first_and_then_the_previous(vault: Vault) -> None:
    vault.set("stripe", "one")
    vault.set("stripe", "two")
    assert live(vault, "stripe") == ("two", "one")

    vault.set("stripe", "three")

    assert live(vault, "stripe") == ("three", "two")


def test_a_value_that_was_set_twice_is_one_value_and_ends_no_rotation(vault: Vault) -> None:
    for value in ("one", "two", "two"):
        vault.set("stripe", value)

    assert live(vault, "stripe") == ("two", "one")


def test_a_value_that_comes_back_is_the_current_one(vault: Vault) -> None:
    for value in ("one", "two", "one"):
        vault.set("stripe", value)

    assert live(vault, "stripe") == ("one", "two")


def test_secrets_are_apart(vault: Vault) -> None:
    vault.set("stripe", "a")
    vault.set("github", "b")

    assert (live(vault, "stripe"), live(vault, "github")) == (("a",), ("b",))


def test_a_removed_secret_has_no_values(vault: Vault) -> None:
    vault.set("stripe", "whsec_1")

    vault.remove("stripe")

    assert live(vault, "stripe") == ()


def test_a_value_is_kept_to_the_character(vault: Vault) -> None:
    value = ' whsec_ünï"\\🦄\n'

    vault.set("stripe", value)

    assert live(vault, "stripe") == (value,)


def test_a_replaced_secret_has_one_live_value(vault: Vault) -> None:
    for value in ("one", "two"):
        vault.set("stripe", value)

    vault.store.replace("stripe", "three")

    assert live(vault, "stripe") == ("three",)
    vault.set("stripe", "four")
    assert live(vault, "stripe") == ("four", "three")


def test_a_revoked_secret_has_no_live_value_until_it_is_set_again(vault: Vault) -> None:
    for value in ("one", "two"):
        vault.set("stripe", value)

    vault.store.revoke("stripe")

    assert live(vault, "stripe") == ()
    vault.store.replace("stripe", "three")
    assert live(vault, "stripe") == ("three",)


def test_a_secret_that_is_revoked_twice_stays_revoked(vault: Vault) -> None:
    vault.set("stripe", "one")

    vault.store.revoke("stripe")
    vault.store.revoke("stripe")

    assert live(vault, "stripe") == ()


def test_after_a_revocation_a_secret_that_is_set_is_the_only_one(vault: Vault) -> None:
    vault.set("stripe", "one")
    vault.store.revoke("stripe")

    vault.set("stripe", "two")

    assert live(vault, "stripe") == ("two",)


def test_a_change_of_one_name_leaves_the_others(vault: Vault) -> None:
    for value in ("one", "two"):
        vault.set("stripe", value)
        vault.set("github", value)

    vault.store.replace("stripe", "three")
    assert vault.store.fetch() == {"stripe": ("three",), "github": ("two", "one")}

    vault.store.revoke("stripe")
    assert vault.store.fetch() == {"github": ("two", "one")}


# -- the document in Secrets Manager


@pytest.fixture
def made(aws: Clients | None) -> AwsVault:
    """A vault in Secrets Manager; the double in memory has no documents."""
    if aws is None:
        pytest.fail("the double in memory has no documents")
    return AwsVault(aws("secretsmanager"), NAME)


def text_of(vault: AwsVault) -> str:
    text: str = vault.client.get_secret_value(SecretId=vault.document.name)["SecretString"]
    return text


ON_AWS = pytest.mark.parametrize("aws", ["moto", "ministack"], indirect=True)


@pytest.fixture(autouse=True)
def _no_document(request: pytest.FixtureRequest) -> None:
    """Removes the document that the test before left in the local runtime."""
    if "made" in request.fixturenames:
        vault: AwsVault = request.getfixturevalue("made")
        missing = vault.client.exceptions.ResourceNotFoundException
        with suppress(missing):
            vault.client.delete_secret(SecretId=NAME, ForceDeleteWithoutRecovery=True)


@ON_AWS
def test_a_document_made_by_hand_is_read_and_changed(made: AwsVault) -> None:
    """As the console's key/value editor and Terraform write it, here with two live values."""
    by_hand = {"stripe": "whsec_1", "github": ["new", "old"], "unset": ""}
    made.client.create_secret(Name=NAME, SecretString=json.dumps(by_hand))

    assert made.store.fetch() == {"stripe": ("whsec_1",), "github": ("new", "old")}
    made.set("stripe", "whsec_2")

    written = {"stripe": ["whsec_2", "whsec_1"], "github": ["new", "old"]}
    assert json.loads(text_of(made)) == written


@ON_AWS
def test_a_document_made_by_hand_without_a_value_is_filled(made: AwsVault) -> None:
    made.client.create_secret(Name=NAME)

    assert made.store.fetch() == {}
    made.set("stripe", "whsec_1")

    assert text_of(made) == '{"stripe": "whsec_1"}'


@ON_AWS
def test_a_malformed_document_is_neither_read_nor_overwritten(made: AwsVault) -> None:
    made.client.create_secret(Name=NAME, SecretString="hush")

    for act in (made.store.fetch, lambda: made.set("stripe", "a")):
        with pytest.raises(Unavailable, match="is not JSON"):
            act()

    assert text_of(made) == "hush"


@ON_AWS
def test_a_malformed_value_takes_no_other_name_away_and_is_not_overwritten(made: AwsVault) -> None:
    by_hand = '{"stripe": 7, "github": "a"}'
    made.client.create_secret(Name=NAME, SecretString=by_hand)

    assert made.store.fetch() == {"github": ("a",)}
    with pytest.raises(Unavailable, match="malformed 'stripe'"):
        made.set("github", "b")

    assert text_of(made) == by_hand


@ON_AWS
def test_a_document_marked_for_deletion_has_no_secrets_and_takes_none(made: AwsVault) -> None:
    made.set("stripe", "a")
    made.client.delete_secret(SecretId=NAME, RecoveryWindowInDays=7)

    assert made.store.fetch() == {}
    for act in (made.document.read, made.document.create, lambda: made.set("stripe", "b")):
        with pytest.raises(MarkedForDeletion):
            act()

    made.client.restore_secret(SecretId=NAME)
    assert made.store.fetch() == {"stripe": ("a",)}


@ON_AWS
def test_a_generated_key_has_a_current_value_and_after_a_rotation_a_previous_one(
    aws: Clients,
) -> None:
    client, name = aws("secretsmanager"), f"webhook-inbox/{uuid4().hex}/token-key"
    arn = client.create_secret(Name=name, SecretString="one")["ARN"]
    store = SecretsManagerStore(client, NAME, keys={TOKEN_KEY: arn})

    assert store.generated(TOKEN_KEY) == "one"
    assert store.generated(TOKEN_KEY, previous=True) == ""
    client.put_secret_value(SecretId=arn, SecretString="two")

    assert store.generated(TOKEN_KEY) == "two"
    assert store.generated(TOKEN_KEY, previous=True) == "one"
    assert store.generated(COMPLETION_KEY) == ""


@ON_AWS
def test_an_empty_document_is_made_once_and_empties_none(made: AwsVault) -> None:
    made.document.create()
    assert text_of(made) == "{}"

    made.set("stripe", "a")
    made.document.create()

    assert made.store.fetch() == {"stripe": ("a",)}


def meanwhile(vault: Vault, *others: str) -> None:
    """Sets "stripe" while other writers set their own names, each after this one has read."""
    waiting = list(others)

    def edit(secrets: Secrets) -> Secrets:
        if waiting:
            name = waiting.pop(0)
            vault.set(name, f"the-{name}")
        return rotated(secrets, "stripe", "the-stripe")

    if isinstance(vault, AwsVault):
        vault.document.change(edit)
    else:
        # A change of the double is one step: the others come before it.
        vault.set("stripe", edit({})["stripe"][0])


@aws_differs(
    "https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_PutSecretValue.html",
    ministack="overwrites the version",
)
@pytest.mark.parametrize("others", [("github",), ("github", "gitlab", "slack")])
def test_writers_at_the_same_moment_lose_no_update(vault: Vault, others: tuple[str, ...]) -> None:
    vault.set("before", "the-before")

    meanwhile(vault, *others)

    for name in ("before", "stripe", others[0]):
        assert live(vault, name) == (f"the-{name}",)


@ON_AWS
def test_writers_who_both_create_the_document_lose_no_update(made: AwsVault) -> None:
    meanwhile(made, "github")

    assert made.store.fetch() == {"github": ("the-github",), "stripe": ("the-stripe",)}
