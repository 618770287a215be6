"""The document of one reader's secrets."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.secret_document import (
    LIMIT,
    Rotation,
    Secrets,
    in_force,
    parse,
    removed,
    replaced,
    revoked,
    rotated,
    write,
)

VALUES = st.text().filter(str.strip)
DOCUMENTS = st.dictionaries(
    st.text(), st.lists(VALUES, min_size=1, max_size=2, unique=True).map(tuple)
)


@given(DOCUMENTS)
def test_what_is_written_is_read(secrets: Secrets) -> None:
    assert parse(write(secrets)) == secrets


def test_a_value_is_a_text_as_the_console_writes_it_and_two_are_a_list() -> None:
    written = write({"stripe": ("a",), "github": ("new", "previous")})
    assert json.loads(written) == {"stripe": "a", "github": ["new", "previous"]}


@pytest.mark.parametrize("text", ["", " ", "{}", '{"a": ""}', '{"a": " "}', '{"a": []}'])
def test_a_blank_value_is_none(text: str) -> None:
    assert parse(text) == {}


def test_a_blank_value_beside_another_is_left_out_and_an_equal_one_counts_once() -> None:
    assert parse('{"a": ["new", " "], "b": ["same", "same"]}') == {"a": ("new",), "b": ("same",)}


@pytest.mark.parametrize(
    "text",
    ["hush", "{'a': 'hush'}", '["hush"]', '"hush"', '{"a": ["hush", 7]}', '{"a": {"b": "hush"}}',
     '{"a": null}', '{"a": 7}', '{"a": true}', '{"a": ["hush", "b", "c"]}', "[" * 100_000],
)  # fmt: skip
def test_anything_else_is_malformed_and_not_shown(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not|malformed") as refused:
        parse(text)
    assert "hush" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None or refused.value.__suppress_context__


@pytest.mark.parametrize("value", ['["hush", 7]', '{"b": "hush"}', "null", "7", '["a", "b", "c"]'])
def test_leniently_a_malformed_value_is_none_and_other_names_stay(value: str) -> None:
    text = f'{{"stripe": {value}, "github": ["new", "old"]}}'
    assert parse(text, leniently=True) == {"github": ("new", "old")}
    for whole in ("hush", '["hush"]'):
        with pytest.raises(ValueError, match="is not"):
            parse(whole, leniently=True)


def test_a_rotation_keeps_one_previous_value_and_every_other_name() -> None:
    secrets: Secrets = {"other": ("x",)}
    for value in ("one", "two", "three"):
        secrets = rotated(secrets, "it", value)
    assert secrets == {"other": ("x",), "it": ("three", "two")}


def test_the_same_value_again_ends_no_rotation() -> None:
    secrets: Secrets = {"it": ("two", "one")}
    assert rotated(secrets, "it", "two") is secrets
    assert rotated(secrets, "it", "one") == {"it": ("one", "two")}


def test_a_replacement_leaves_one_value_and_a_removal_none() -> None:
    secrets: Secrets = {"it": ("two", "one"), "other": ("x",)}
    assert replaced(secrets, "it", "three") == {"it": ("three",), "other": ("x",)}
    assert replaced(secrets, "it", "two") == {"it": ("two",), "other": ("x",)}
    assert removed(secrets, "it") == {"other": ("x",)}
    assert removed(secrets, "absent") == secrets


def test_a_document_that_secrets_manager_would_refuse_is_not_written() -> None:
    fits = LIMIT - len('{"a": ""}')
    assert len(write({"a": ("x" * fits,)})) == LIMIT
    with pytest.raises(ConfigurationError, match=f"{LIMIT + 1} bytes, .* remove names"):
        write({"a": ("x" * (fits + 1),)})


# -- a rotation that ends

NOW = datetime(2026, 1, 1, tzinfo=UTC)
END = NOW + timedelta(hours=24)


def rotation() -> Secrets:
    return rotated({"a": ("old", "older")}, "a", "new", since=NOW, until=END)


def test_the_previous_value_is_in_force_until_the_end() -> None:
    values = rotation()["a"]
    assert in_force(values, END - timedelta(milliseconds=1)) == ("new", "old")
    assert in_force(values, END) == ("new",)
    assert in_force(("new", "old"), END) == ("new", "old")


def test_its_times_are_written_and_read() -> None:
    text = write(rotation())
    assert json.loads(text)["a"] == {
        "current": "new",
        "previous": "old",
        "since": "2026-01-01T00:00:00+00:00",
        "until": "2026-01-02T00:00:00+00:00",
    }
    read = parse(text)["a"]
    assert isinstance(read, Rotation)
    assert (read, read.since, read.until) == (("new", "old"), NOW, END)


def test_a_time_without_a_zone_is_utc() -> None:
    text = write(rotation()).replace("+00:00", "")
    assert in_force(parse(text)["a"], END) == ("new",)


@pytest.mark.parametrize(
    "change",
    [{"until": "soon"}, {"until": 7}, {"since": None}, {"previous": None}, {"more": "x"}],
)
def test_a_malformed_rotation_is_no_value(change: dict[str, object]) -> None:
    document = {"a": {**json.loads(write(rotation()))["a"], **change}, "b": "other"}
    text = json.dumps(document)
    assert parse(text, leniently=True) == {"b": ("other",)}
    with pytest.raises(ValueError, match="has a malformed 'a'"):
        parse(text)


def test_the_first_value_and_the_same_value_have_no_end() -> None:
    assert not isinstance(rotated({}, "a", "new", since=NOW, until=END)["a"], Rotation)
    assert rotated(rotation(), "a", "new", since=END, until=END) == rotation()


def test_the_next_change_removes_a_previous_value() -> None:
    assert rotated(rotation(), "a", "newer")["a"] == ("newer", "new")
    assert revoked(rotation(), "a") == {"a": ("new",)}
    assert revoked({"b": ("x",)}, "a") == {"b": ("x",)}
