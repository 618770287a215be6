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
