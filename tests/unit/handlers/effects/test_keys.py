"""Idempotency keys: the same for ever, readable, fit for a header, and a UUID."""

from uuid import UUID, uuid5

from hypothesis import given
from hypothesis import strategies as st

from webhook_inbox import IdempotencyKey
from webhook_inbox.domain.idempotency import key_of
from webhook_inbox.handlers.effects.plan import takes_key


def test_a_key_names_effect_handler_source_and_event() -> None:
    key = key_of("create-order", "stripe.fulfil", "stripe", "evt_1")
    assert key == "create-order:stripe.fulfil:stripe:evt_1"
    # Pinned: a key that changes with a deployment charges twice.
    assert key.uuid == "608bda6e-66bd-579e-9fa9-6c9631a7763b"


@given(st.lists(st.text(min_size=1), min_size=2, max_size=4, unique=True))
def test_any_key_fits_a_header_and_has_a_uuid(parts: list[str]) -> None:
    key = key_of(*parts)
    assert 0 < len(key) <= 255
    assert key.isascii()
    assert key.isprintable()
    assert key == key_of(*parts)
    # The standard library's, which the library may not ask: most of what it gives is random.
    assert key.uuid == str(uuid5(UUID("6f1d3f0c-6a5e-5c0e-9d3b-9d0f6c5b7a11"), key))


@given(st.text(min_size=300), st.text(min_size=300))
def test_long_ids_that_differ_have_keys_that_differ(one: str, other: str) -> None:
    keys = {key_of("mail", "h", "s", one), key_of("mail", "h", "s", other)}
    assert len(keys) == len({one, other})


def test_a_key_is_text() -> None:
    assert {"Idempotency-Key": IdempotencyKey("a")} == {"Idempotency-Key": "a"}


def test_a_function_takes_the_key_if_it_takes_anything() -> None:
    assert takes_key(lambda key: None)
    assert takes_key(lambda *args: None)
    assert takes_key(print)
    assert not takes_key(lambda: None)
    assert not takes_key(lambda *, x=1: None)
    assert takes_key(type("C", (), {"m": lambda self, key: None})().m)
    assert not takes_key(type("C", (), {"m": lambda self: None})().m)


def test_a_default_is_the_functions_own_unless_it_is_called_a_key() -> None:
    assert not takes_key(lambda line=1: line)  # how a loop binds its variable
    assert not takes_key(lambda line=1, page=2: (line, page))
    assert takes_key(lambda key, line=1: (key, line))
    assert takes_key(lambda key=None: key)
    assert takes_key(lambda idempotency_key=None: idempotency_key)
