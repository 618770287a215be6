"""The declaration of an order by a handler."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict
from typing import Any

import pytest

from webhook_inbox import latest, sequence
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import HandlerSpec, Order, handler_from
from webhook_inbox.handlers.ordering.declaration import Ordering


def nothing(ordering_key: str, first: int, last: int) -> int:
    return first - 1


def test_latest_names_two_paths() -> None:
    assert latest("data.object.id", "data.object.updated") == Ordering(
        Order("latest", "data.object.id", "data.object.updated")
    )


def test_the_paths_may_be_given_by_name() -> None:
    by_name = latest(key="id", version="updated")
    assert by_name == latest("id", "updated")
    assert sequence(key="account", number="seq") == sequence("account", "seq")


def test_a_sequence_begins_with_one_and_asks_a_person_after_an_hour() -> None:
    order = sequence("account", "seq").order
    assert (order.kind, order.ordering_key, order.version) == ("sequence", "account", "seq")
    assert (order.first, order.timeout, order.on_gap, order.backfill) == (1, 3600.0, "hold", False)


def test_a_sequence_says_that_it_has_a_backfill_and_brings_it() -> None:
    ordering = sequence("account", "seq", backfill=nothing)
    assert ordering.order.backfill
    assert ordering.backfill is nothing


def test_what_is_declared_is_data_and_survives_the_manifest() -> None:
    order = sequence("a", "n", first=0, timeout="90s", on_gap="skip", backfill=nothing).order
    spec = HandlerSpec("shop.sync", "m", "f", "shop", ("*",), order=order)
    assert handler_from(asdict(spec)) == spec


def test_it_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        latest("id", "n").order = Order("latest", "x", "y")  # type: ignore[misc]


@pytest.mark.parametrize("path", ["", ".", "a.", ".a", "a..b", 5, None])
@pytest.mark.parametrize(
    "declare",
    [
        lambda path: latest(path, "n"),
        lambda path: latest("id", path),
        lambda path: sequence(path, "n"),
        lambda path: sequence("id", path),
    ],
)
def test_a_path_is_names_with_dots_between(declare: Callable[[Any], Ordering], path: Any) -> None:
    with pytest.raises(ConfigurationError, match="is not a path; write it like"):
        declare(path)


@pytest.mark.parametrize("first", [-1, 10**18, 1.0, "1", True, None])
def test_a_sequence_begins_with_a_whole_number(first: Any) -> None:
    with pytest.raises(ConfigurationError, match="begins with 0 or more"):
        sequence("id", "n", first=first)


@pytest.mark.parametrize("on_gap", ["", "Skip", "drop", None])
def test_what_happens_at_a_gap_is_one_of_three(on_gap: Any) -> None:
    with pytest.raises(ConfigurationError, match="use one of hold, skip, dead"):
        sequence("id", "n", on_gap=on_gap)


@pytest.mark.parametrize("timeout", ["", "0s", "1d", "-5m", "5", "soon"])
def test_a_timeout_is_a_duration(timeout: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a duration"):
        sequence("id", "n", timeout=timeout)


@pytest.mark.parametrize("timeout", [60, 1.5, None])
def test_a_timeout_is_spelled(timeout: Any) -> None:
    with pytest.raises(ConfigurationError, match="write it like '30s', '5m' or '1h'"):
        sequence("id", "n", timeout=timeout)


def test_a_timeout_ends_within_four_weeks() -> None:
    assert sequence("id", "n", timeout="672h").order.timeout == 28 * 86400
    with pytest.raises(ConfigurationError, match="at most 672h"):
        sequence("id", "n", timeout="673h")


def test_a_backfill_is_a_function() -> None:
    with pytest.raises(ConfigurationError, match="backfill is a function"):
        sequence("id", "n", backfill="fetch")  # type: ignore[arg-type]
