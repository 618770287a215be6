"""Secrets."""

from tests.contract.backends import Vault


def test_a_secret_that_was_never_set_has_no_values(vault: Vault) -> None:
    assert vault.store.fetch("stripe") == ()


def test_a_secret_set_once_has_one_value(vault: Vault) -> None:
    vault.set("stripe", "whsec_1")

    assert vault.store.fetch("stripe") == ("whsec_1",)
    assert vault.store.fetch("strip") == ()


def test_a_rotated_secret_has_the_current_value_first_and_then_the_previous(vault: Vault) -> None:
    vault.set("stripe", "one")
    vault.set("stripe", "two")
    assert vault.store.fetch("stripe") == ("two", "one")

    vault.set("stripe", "three")

    assert vault.store.fetch("stripe") == ("three", "two")


def test_a_value_that_was_set_twice_is_one_value(vault: Vault) -> None:
    for value in ("one", "two", "two"):
        vault.set("stripe", value)

    assert vault.store.fetch("stripe") == ("two",)


def test_a_value_that_comes_back_is_the_current_one(vault: Vault) -> None:
    for value in ("one", "two", "one"):
        vault.set("stripe", value)

    assert vault.store.fetch("stripe") == ("one", "two")


def test_secrets_are_apart(vault: Vault) -> None:
    vault.set("stripe", "a")
    vault.set("github", "b")

    assert (vault.store.fetch("stripe"), vault.store.fetch("github")) == (("a",), ("b",))


def test_a_removed_secret_has_no_values(vault: Vault) -> None:
    vault.set("stripe", "whsec_1")

    vault.remove("stripe")

    assert vault.store.fetch("stripe") == ()


def test_a_value_is_kept_to_the_character(vault: Vault) -> None:
    value = ' whsec_ünï"\\🦄\n'

    vault.set("stripe", value)

    assert vault.store.fetch("stripe") == (value,)


def test_a_replaced_secret_has_one_live_value(vault: Vault) -> None:
    for value in ("one", "two"):
        vault.set("stripe", value)

    vault.store.replace("stripe", "three")

    assert vault.store.fetch("stripe") == ("three",)
    vault.set("stripe", "four")
    assert vault.store.fetch("stripe") == ("four", "three")


def test_a_revoked_secret_has_no_live_value_until_it_is_set_again(vault: Vault) -> None:
    for value in ("one", "two"):
        vault.set("stripe", value)

    vault.store.revoke("stripe")

    assert vault.store.fetch("stripe") == ()
    vault.store.replace("stripe", "three")
    assert vault.store.fetch("stripe") == ("three",)


def test_a_secret_that_is_revoked_twice_stays_revoked(vault: Vault) -> None:
    vault.set("stripe", "one")

    vault.store.revoke("stripe")
    vault.store.revoke("stripe")

    assert vault.store.fetch("stripe") == ()


def test_after_a_revocation_a_secret_that_is_set_is_the_only_one(vault: Vault) -> None:
    vault.set("stripe", "one")
    vault.store.revoke("stripe")

    vault.set("stripe", "two")

    assert vault.store.fetch("stripe") == ("two",)
