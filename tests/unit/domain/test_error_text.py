"""The texts of errors: described for the ledger, and normalised for grouping."""

from time import process_time

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from webhook_inbox.domain.error_text import (
    describe,
    error_class,
    error_group,
    normalised,
    traceback_text,
)
from webhook_inbox.domain.errors import Permanent, Transient


class OrderGone(Permanent):
    """A handler's own error, derived from one of the library's."""


class Unprintable(Exception):
    """An error whose text cannot be printed."""

    def __str__(self) -> str:
        """Fails."""
        raise RuntimeError("no text")


class Leaving(Exception):
    """An error whose text ends the program."""

    def __str__(self) -> str:
        """Leaves."""
        raise SystemExit(3)


@pytest.mark.parametrize(
    ("error", "text", "name"),
    [
        (KeyError("sku"), "KeyError: 'sku'", "KeyError"),
        (TimeoutError(), "TimeoutError", "TimeoutError"),
        (Transient("the CRM is down"), "the CRM is down", "Transient"),
        (OrderGone("order 12"), "OrderGone: order 12", "OrderGone"),
        (Permanent(""), "Permanent", "Permanent"),
        (Unprintable(), "Unprintable: (its text cannot be printed)", "Unprintable"),
        # Raised outside of the attempt, it would end the process before the run is settled.
        (Leaving(), "Leaving: (its text cannot be printed)", "Leaving"),
    ],
)
def test_an_error_is_described_by_its_class_and_text(
    error: Exception, text: str, name: str
) -> None:
    assert (describe(error), error_class(error)) == (text, name)


def test_no_error_has_no_class_and_a_long_name_is_cut() -> None:
    assert error_class(None) == ""
    assert len(error_class(type("Long" * 100, (Exception,), {})())) == 100


@pytest.mark.parametrize(
    ("text", "group"),
    [
        ("exhausted: KeyError: 'sku-12'", "KeyError: <text>"),
        ("permanent: no order", "no order"),
        ('crm: POST /orders/981 answered 503: {"id": 4}',
         "crm: POST /orders/<number> answered 503: {<text>: <number>}"),
        ("HTTP 404, status=422, [502] in 12.5 s", "HTTP 404, status=422, [502] in <number> s"),
        ("order evt_1Q2w3e4R and ORD-2024-0001", "order <id> and <id>"),
        ("01ARZ3NDEKTSV4RRFFQ69G5FAV is gone", "<id> is gone"),
        ("run 7f9c24e8-3b12-4fef-91e0-6a5b2d7c9e10", "run <uuid>"),
        ("since 2026-01-02T03:04:05.123Z, 2026-01-02 and 03:04:05",
         "since <time>, <time> and <time>"),
        ("<Order object at 0x7f12ab>: 9f86d081884c7d659a2f", "<Order object at <hex>>: <hex>"),
        ("can't read the user's name", "can't read the user's name"),
        ("deadbeef decade python3 base64", "deadbeef decade python3 base64"),
        ("1 validation error\n  Field\trequired ", "<number> validation error Field required"),
    ],
)  # fmt: skip
def test_the_variable_parts_of_a_text_are_replaced_by_their_kind(text: str, group: str) -> None:
    assert normalised(text) == group
    assert normalised(group) == group


@pytest.mark.parametrize(
    "unit", ["a", "'", "a-", "0", "a_", "1,", "a1", "-", "ab12cd34", "aaaaaaaaaaaaaaa-", "1:1:"]
)
def test_a_hostile_text_is_normalised_in_bounded_time(unit: str) -> None:
    began = process_time()
    normalised(unit * 100_000)
    assert process_time() - began < 0.5


def test_a_group_without_a_recorded_class_has_that_of_its_text() -> None:
    recorded = error_group("KeyError", "handlers/orders.py:1", "exhausted: KeyError: 'a'")
    assert recorded == error_group("", "handlers/orders.py:1", "KeyError: 'b'")
    assert recorded.id == error_group(*recorded).id
    assert error_group("", "", "no colon").error_class == ""


def test_the_parts_of_a_group_decide_its_id() -> None:
    ids = {
        error_group(*parts).id
        for parts in (
            ("KeyError", "handlers/orders.py:1", "KeyError: 'a'"),
            ("KeyError", "handlers/orders.py:2", "KeyError: 'a'"),
            ("LookupError", "handlers/orders.py:1", "KeyError: 'a'"),
            ("KeyError", "handlers/orders.py:1", "KeyError: 1"),
        )
    }
    assert len(ids) == 4
    assert all(len(each) == 12 for each in ids)


class Count(BaseModel):
    """A model whose errors show their input."""

    n: int


def mismatch(value: object) -> ValidationError:
    """Returns pydantic's error for a value."""
    with pytest.raises(ValidationError) as raised:
        Count.model_validate({"n": value})
    return raised.value


def test_a_mismatch_is_described_without_its_input() -> None:
    assert "input_value='secret words'" in str(mismatch("secret words"))
    assert describe(mismatch("secret words")) == (
        "ValidationError: n: Input should be a valid integer, unable to parse string as an integer"
    )


def test_only_the_first_mistakes_are_named() -> None:
    numbers = TypeAdapter(list[int])
    with pytest.raises(ValidationError) as raised:
        numbers.validate_python(["x"] * 50)
    text = describe(raised.value)
    assert (text.count("Input should be"), text.endswith("; and 30 more")) == (20, True)


class Lines:
    """A value whose repr has several lines."""

    def __repr__(self) -> str:
        """Returns two lines."""
        return "secret\nwords"


@pytest.mark.parametrize("value", ["secret words", "x, input_type=str] secret", [1], Lines()])
@pytest.mark.parametrize("size", [None, -1, -30, -60, -90])
def test_an_error_that_quotes_a_mismatch_has_no_input(value: object, size: int | None) -> None:
    told = describe(Transient(f"unusable: {mismatch(value)}"[:size]))
    assert "secret" not in told
    assert told.startswith("unusable: 1 validation error for Count\nn\n  Input should be")


def test_a_traceback_has_the_chain_without_inputs() -> None:
    group = ExceptionGroup("several", [mismatch("secret words"), KeyError("sku")])
    error = RuntimeError("no")
    error.__cause__ = group
    text = traceback_text(error)
    assert "secret" not in text
    assert all(part in text for part in ("valid integer", "KeyError: 'sku'", "RuntimeError: no"))


@pytest.mark.parametrize("piece", [", input_value=\n", ", input_type=", ", input_value=x"])
def test_a_text_that_a_sender_wrote_is_searched_for_inputs_in_bounded_time(piece: str) -> None:
    begun = process_time()
    describe(ValueError(f"unknown {piece * 10_000}"))
    assert process_time() - begun < 2
