"""Which versions of a payload a handler understands."""

from typing import Any

import pytest

from webhook_inbox import Permanent, Versions
from webhook_inbox.domain.errors import ConfigurationError

KNOWN = Versions("meta.version", {"1": None, "2024-01-01": None}, absent="1")


@pytest.mark.parametrize(
    ("told", "version"),
    [("1", "1"), (1, "1"), ("2024-01-01", "2024-01-01"), (None, "1")],
)
def test_a_version_is_text_or_a_whole_number_or_absent(told: Any, version: str) -> None:
    assert KNOWN.version_of({"meta": {"version": told}}) == version


@pytest.mark.parametrize("body", [{}, {"meta": 1}, [], "1", None])
def test_a_body_without_the_path_has_the_version_of_the_silent(body: Any) -> None:
    assert KNOWN.version_of(body) == "1"


@pytest.mark.parametrize("told", ["3", 3, True, 1.0, ""])
def test_any_other_is_permanent_and_named_with_those_that_are_supported(told: Any) -> None:
    with pytest.raises(Permanent) as raised:
        KNOWN.version_of({"meta": {"version": told}})
    assert str(raised.value) == (
        f"the payload has version {told!r} at meta.version,"
        " and this handler supports '1', '2024-01-01'"
    )


@pytest.mark.parametrize("told", [["1"], {"1": "1"}])
def test_an_object_or_a_list_in_its_place_is_not_shown(told: Any) -> None:
    with pytest.raises(Permanent) as raised:
        KNOWN.version_of({"meta": {"version": told}})
    assert str(raised.value) == (
        f"the payload has {type(told).__name__} at meta.version,"
        " and this handler supports '1', '2024-01-01'"
    )


def test_where_none_is_for_the_silent_a_version_is_needed() -> None:
    with pytest.raises(Permanent, match="the payload has no v, and this handler supports '1'"):
        Versions("v", {"1": None}).version_of({})


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ({"path": ""}, "need a path and at least one model"),
        ({"models": {}}, "need a path and at least one model"),
        ({"models": {1: None}}, r'named in quotes, like \{"1": Order\}'),
        ({"absent": "2"}, "absent='2' is none of the versions"),
    ],
)
def test_versions_that_could_never_be_met_are_refused(given: dict[str, Any], remedy: str) -> None:
    valid: dict[str, Any] = {"path": "v", "models": {"1": None}}
    Versions(**valid)
    with pytest.raises(ConfigurationError, match=remedy):
        Versions(**{**valid, **given})
