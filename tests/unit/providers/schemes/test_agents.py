"""Secrets that hold the credentials of several agents."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook_inbox.providers.schemes import tokens


@pytest.mark.parametrize("name", ["planner", "Agent 7", "agent-7@example.com", "büro", "x" * 128])
def test_an_agent_is_called_by_any_plain_text(name: str) -> None:
    assert tokens.is_agent_name(name)


@pytest.mark.parametrize(
    "name", ["", " ", " a", "a ", "a\n", "a\tb", "\x00", "\u202e", "\ud800", "x" * 129]
)
def test_what_cannot_be_shown_or_typed_is_no_name(name: str) -> None:
    assert not tokens.is_agent_name(name)


def test_a_text_that_is_no_object_is_one_unnamed_credential() -> None:
    assert tokens.credentials("the-key") == [("", "the-key")]
    assert tokens.credentials('["the-key"]') == [("", '["the-key"]')]
    assert tokens.credentials("") == []


def test_an_object_holds_a_credential_of_each_agent() -> None:
    held = '\n {"planner": "one", "buyer": "two", "empty": "", "number": 7, " bad": "x"}'

    assert tokens.credentials(held) == [("planner", "one"), ("buyer", "two")]


@pytest.mark.parametrize("broken", ["{", '{"a": "b"', "{'a': 'b'}", "{" * 100_000])
def test_a_broken_object_holds_nothing_and_is_no_credential_itself(broken: str) -> None:
    assert tokens.secret_document(broken) == {}
    assert tokens.credentials(broken) == []


@given(st.text(st.characters(codec=None)) | st.dictionaries(st.text(), st.text()).map(json.dumps))
def test_any_text_may_be_a_secret(held: str) -> None:
    for name, credential in tokens.credentials(held):
        assert credential
        assert name == "" or tokens.is_agent_name(name)
