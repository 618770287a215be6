"""No error puts personal fields into a row, a result or a log line, however it quotes them."""

import json
import reprlib
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from traceback import format_exception
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, ValidationError, field_validator

from tests.unit.support.world import ACME, MANIFEST, World
from webhook_inbox.domain.error_text import shorten, traceback_text
from webhook_inbox.domain.errors import Permanent, Transient
from webhook_inbox.handlers.context import Context
from webhook_inbox.handlers.event import Event
from webhook_inbox.ledger.schema import event_key

EMAIL = "ada.lovelace+bills@analytical-engine.example"
NAME = 'José "Countess" O\'Brien <Lovelace> & Söhne/Ltd'
LONG = "".join(f"{number:04}-secret-words;" for number in range(200))
CUSTOMER = {
    "email": EMAIL,
    "name": NAME,
    "diary": LONG,
    "emails": {EMAIL: {"since": "yesterday-at-noon"}},
}
BODY = json.dumps({"id": "evt-1", "type": "paid", "customer": CUSTOMER}).encode()
PERSONAL = replace(
    MANIFEST, sources={**MANIFEST.sources, "acme": replace(ACME, personal=("customer",))}
)
# Any part of a value that is this long must be gone.
PART = 5


class Number(BaseModel):
    email: int
    name: int
    diary: int
    emails: dict[str, dict[str, int]]


class Address(BaseModel):
    kind: Literal["address"]
    email: str = Field(max_length=3)


class Person(BaseModel):
    kind: Literal["person"]
    diary: datetime


class Custom(BaseModel):
    email: str

    @field_validator("email")
    @classmethod
    def reject(cls, value: str) -> str:
        raise ValueError(f"{value} is not one of ours")


class Order(BaseModel):
    customer: Number


class Union(BaseModel):
    customer: Address | Person


class Validated(BaseModel):
    customer: Custom


class Text(BaseModel):
    customer: str = Field(pattern="^never$")


class Tagged(BaseModel):
    person: Address | Person = Field(discriminator="kind")


class Model(BaseModel):
    email: Literal["another"]


def parse(model: type[BaseModel]) -> Callable[[Event, Context], None]:
    return lambda event, ctx: event.parse(model)


def validate(event: Event, ctx: Context) -> None:
    Order.model_validate(event.json())


def wrapped(event: Event, ctx: Context) -> None:
    try:
        validate(event, ctx)
    except ValidationError as error:
        raise Transient(f"unusable: {error}") from error


def in_its_chain(event: Event, ctx: Context) -> None:
    try:
        validate(event, ctx)
    except ValidationError as error:
        raise KeyError("order") from error


def in_a_group(event: Event, ctx: Context) -> None:
    try:
        validate(event, ctx)
    except ValidationError as error:
        raise ExceptionGroup("several", [error, ValueError(LONG)]) from None


def in_an_effect(event: Event, ctx: Context) -> None:
    ctx.effect("note", lambda: validate(event, ctx))


class Result:
    """A result that cannot be stored, with an error that quotes the payload."""

    def model_dump(self, mode: str) -> Any:
        Number.model_validate(CUSTOMER)


def as_a_result(event: Event, ctx: Context) -> None:
    ctx.effect("note", Result, in_doubt="retry")


def number(event: Event, ctx: Context) -> None:
    int(event.json()["customer"]["diary"])


def shown(text: Callable[[dict[str, Any]], str]) -> Callable[[Event, Context], None]:
    def fail(event: Event, ctx: Context) -> None:
        raise Permanent(text(event.json()["customer"]))

    return fail


def missing(event: Event, ctx: Context) -> None:
    {}[event.json()["customer"]["name"]]


def position(event: Event, ctx: Context) -> None:
    datetime.fromisoformat(event.json()["customer"]["email"])


HANDLERS: dict[str, Callable[[Event, Context], None]] = {
    "parse": parse(Order),
    "parse, a union": parse(Union),
    "parse, a custom validator": parse(Validated),
    "parse, an object in place of a text": parse(Text),
    "model_validate": validate,
    "its text in another error": wrapped,
    "the cause of another error": in_its_chain,
    "a group": in_a_group,
    "an effect": in_an_effect,
    "the result of an effect": as_a_result,
    "int, which cuts its input": number,
    "KeyError": missing,
    "fromisoformat": position,
    "reprlib": shown(reprlib.repr),
    "JSON": shown(json.dumps),
    "JSON in JSON": shown(lambda customer: json.dumps(json.dumps(customer))),
    "JSON without escapes": shown(lambda customer: json.dumps(customer, ensure_ascii=False)),
    "JSON of PHP": shown(lambda customer: json.dumps(customer).replace("/", "\\/")),
    "JSON in a repr": shown(lambda customer: repr(json.dumps(customer))),
    "bytes": shown(lambda customer: str(customer["name"].encode())),
    "ascii": shown(ascii),
    "HTML": shown(lambda customer: __import__("html").escape(customer["name"])),
    "a URL": shown(lambda customer: f"/people/{__import__('httpx').URL('/' + customer['name'])}"),
    "one line": shown(lambda customer: " ".join(f"a  b {customer['diary']}".split())),
}  # fmt: skip


def parts_of(text: str) -> set[str]:
    return {text[start : start + PART] for start in range(len(text) - PART + 1)}


PARTS = parts_of(EMAIL) | parts_of("Countess") | parts_of("Lovelace") | parts_of(LONG)


def leaks(text: str) -> list[str]:
    return sorted(parts_of(text) & PARTS)


def surface(world: World, handler: Callable[[Event, Context], None], *, body: bytes = BODY) -> str:
    """Returns all that the inbox stores and logs of an attempt, but for the event itself."""
    world.behaviours["acme.fulfil"] = handler
    world.deliver(body=body)
    result = world.work_once()
    assert result is not None
    key = event_key("acme", "evt-1")
    rows = [row for row in world.table if (row["pk"], row["sk"]) != (key.pk, key.sk)]
    assert world.run().last_error
    logged = "" if result.error is None else result.hide(traceback_text(result.error))
    return "\n".join([repr(rows), result.hide(result.detail), result.detail, logged])


@pytest.mark.parametrize("name", HANDLERS)
def test_no_error_shows_a_personal_field(name: str) -> None:
    assert leaks(surface(World(PERSONAL), HANDLERS[name])) == []


@pytest.mark.parametrize("name", ["parse", "model_validate", "its text in another error"])
def test_errors_of_pydantic_have_no_input_without_personal_fields_too(name: str) -> None:
    customer = {name: value for name, value in CUSTOMER.items() if name != "emails"}
    body = json.dumps({"id": "evt-1", "type": "paid", "customer": customer}).encode()

    text = surface(World(), HANDLERS[name], body=body)

    assert leaks(text) == []
    assert "input_value" not in text
    assert "valid integer" in text


@pytest.mark.parametrize("field", ["email", "diary"])
def test_a_tag_of_no_model_is_an_input(field: str) -> None:
    def fail(event: Event, ctx: Context) -> None:
        Tagged.model_validate({"person": {"kind": event.json()["customer"][field]}})

    text = surface(World(), fail)

    assert leaks(text) == []
    assert "person: Input tag" in text
    # A tag of more than 400 characters hides the rest of its line.
    assert ("found using 'kind' does not match" in text) is (field == "email")


def test_a_mismatch_names_field_and_mistake() -> None:
    world = World(PERSONAL)
    surface(world, parse(Order))
    assert world.run().last_error == (
        "permanent: the body is not a valid Order: customer.email: Input should be a valid integer,"
        " unable to parse string as an integer; customer.name: Input should be a valid integer,"
        " unable to parse string as an integer; customer.diary: Input should be a valid integer,"
        " unable to parse string as an integer; customer.emails.[personal].since: Input should be a"
        " valid integer, unable to parse string as an integer"
    )


@pytest.mark.parametrize("length", range(1, len(EMAIL) + 40))
def test_a_value_that_was_cut_is_removed_at_every_length(length: int) -> None:
    text = surface(
        World(PERSONAL), shown(lambda customer: shorten(f"no customer {customer['email']}", length))
    )
    assert leaks(text) == []


def test_a_fault_of_the_processor_shows_no_personal_field(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(PERSONAL)

    def bug(*_: Any, **__: Any) -> None:
        raise RuntimeError(f"a bug of ours: {CUSTOMER}")

    world.deliver(body=BODY)
    monkeypatch.setattr(world.processor._settler, "settle", bug)
    with pytest.raises(RuntimeError) as raised:
        world.work_once()

    assert leaks(str(raised.value)) != []
    assert leaks(world.processor.hide(traceback_text(raised.value))) == []


def test_a_fault_of_ingest_shows_no_personal_field(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(PERSONAL)

    def bug(*_: Any, **__: Any) -> None:
        raise RuntimeError(f"a bug of ours: {CUSTOMER}")

    monkeypatch.setattr(world.ingest._receiver, "record", bug)
    receipt = world.deliver(body=BODY)

    assert "a bug of ours" in receipt.detail
    assert leaks(receipt.detail) == []


def test_a_parsing_error_refers_to_no_input() -> None:
    event = Event("acme", "evt-1", "paid", World().now, {}, BODY)
    for parse_it in (lambda: event.parse(Order), lambda: replace(event, body=BODY[:-1]).json()):
        with pytest.raises(Permanent) as raised:
            parse_it()
        assert leaks("".join(format_exception(raised.value)).replace(f"emails.{EMAIL}", "")) == []
        assert (raised.value.__cause__, raised.value.__context__) == (None, None)
