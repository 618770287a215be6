"""The interface of a handler's author: Router, Event, Context."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import BaseModel

from tests.unit.support.world import World
from webhook_inbox import Backoff, Context, Event, Held, Permanent, Router, Transient
from webhook_inbox.adapters.memory import ManualClock
from webhook_inbox.destinations.gate import Gate
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.idempotency import KEY_LIMIT
from webhook_inbox.domain.manifest import DestinationSpec
from webhook_inbox.domain.model import Run, Status
from webhook_inbox.handlers.completions.jobs import Jobs
from webhook_inbox.handlers.effects.effect import Effects
from webhook_inbox.handlers.effects.journal import EffectJournal
from webhook_inbox.handlers.router import BACKOFFS, Registered

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def noop(event: Event, ctx: Context) -> None:
    pass


# -- Router


def test_a_function_is_registered_under_the_routers_name_and_its_own() -> None:
    router = Router("stripe")

    @router.on("invoice.*", "charge.*")
    def fulfil(event: Event, ctx: Context) -> None:
        pass

    (spec,) = router.handlers
    assert (spec.name, spec.source, spec.types) == (
        "stripe.fulfil",
        "stripe",
        ("invoice.*", "charge.*"),
    )
    assert spec.module == "test_router_and_context"
    assert router.registered("stripe.fulfil") == Registered(fulfil)


def test_the_decorated_function_stays_what_it_was() -> None:
    assert Router("a").on("*")(noop) is noop


def test_an_async_function_is_registered_too() -> None:
    router = Router("stripe")

    @router.on("*")
    async def hand_over(event: Event, ctx: Context) -> None:
        pass

    assert router.registered("stripe.hand_over") == Registered(hand_over)


def test_defaults_suit_most() -> None:
    router = Router("a")
    router.on("*")(noop)
    (spec,) = router.handlers
    assert (spec.max_attempts, spec.timeout, spec.lane) == (8, 50.0, "default")
    assert spec.backoff == BACKOFFS["steady"]


def test_everything_can_be_said() -> None:
    router = Router("a", source="b")
    router.on("x", name="c.d", max_attempts=1, timeout=5, backoff="fast", lane="slow")(noop)
    (spec,) = router.handlers
    assert (spec.name, spec.source, spec.lane) == ("c.d", "b", "slow")
    assert (spec.max_attempts, spec.timeout) == (1, 5.0)
    assert spec.backoff.cap == 2.0


def test_a_backoff_of_ones_own_is_taken_as_it_is() -> None:
    router = Router("a")
    router.on("x", backoff=Backoff(1, 2, 3))(noop)
    assert router.handlers[0].backoff == Backoff(1, 2, 3)


def test_a_name_used_twice_is_an_error() -> None:
    router = Router("a")
    router.on("x")(noop)
    with pytest.raises(ConfigurationError, match="registered twice"):
        router.on("y")(noop)


def test_the_same_function_may_be_registered_under_two_names() -> None:
    router = Router("a")
    router.on("x", name="a.one")(noop)
    router.on("y", name="a.two")(noop)
    assert len(router.handlers) == 2


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"name": "Has Space"}, "a name is"),
        ({"name": ""}, "a name is"),
        ({"name": "x" * 65}, "a name is"),
        ({"name": "UPPER"}, "a name is"),
        ({"lane": "no/slash"}, "a lane is"),
        ({"max_attempts": 0}, "max_attempts is 1-100"),
        ({"max_attempts": 101}, "max_attempts is 1-100"),
        ({"timeout": 0.5}, "timeout is 1-55"),
        ({"timeout": 56}, "timeout is 1-55"),
        ({"backoff": "hasty"}, "use one of steady, fast"),
    ],
)
def test_what_is_out_of_bounds_is_named_with_its_remedy(
    settings: dict[str, object], remedy: str
) -> None:
    with pytest.raises(ConfigurationError, match=remedy):
        Router("a").on("*", **settings)(noop)  # type: ignore[arg-type]


def test_a_handler_needs_a_type() -> None:
    with pytest.raises(ConfigurationError, match="at least one event type"):
        Router("a").on()(noop)


def test_an_unregistered_name_is_none() -> None:
    assert Router("a").registered("a.b") is None


# -- Event


class Invoice(BaseModel):
    amount: int


def event(body: bytes = b'{"amount": 3}') -> Event:
    return Event("acme", "evt-1", "paid", NOW, {}, body)


def test_a_body_is_parsed_as_json_or_as_a_model() -> None:
    assert event().json() == {"amount": 3}
    assert event().parse(Invoice).amount == 3


@pytest.mark.parametrize("body", [b"", b"no", b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_json_is_permanent(body: bytes) -> None:
    with pytest.raises(Permanent, match="not JSON"):
        event(body).json()


@pytest.mark.parametrize("body", [b"", b"no", b"{}", b'{"amount": "x"}', b"[" * 10_000])
def test_a_body_that_does_not_fit_its_model_is_permanent(body: bytes) -> None:
    with pytest.raises(Permanent, match="the body is not a valid Invoice: "):
        event(body).parse(Invoice)


# -- Context


def context(*, event_id: str = "evt-1", handler: str = "acme.fulfil", attempt: int = 1) -> Context:
    ports = replace(World().ports, clock=ManualClock(NOW))
    run = Run("acme", event_id, handler, "paid", Status.PROCESSING, attempt_count=attempt)
    journal = EffectJournal(ports.table, run, received_at=NOW)
    effects = Effects(journal, run, clock=ports.clock, end=NOW + timedelta(seconds=50))
    return Context(
        source="acme",
        event_id=event_id,
        handler=handler,
        attempt=attempt,
        deadline=NOW,
        destinations={"crm": DestinationSpec("crm", "https://crm.example")},
        secrets=lambda name: {"crm": ("current", "previous")}.get(name, ()),
        effects=effects,
        waiting=Jobs(ports).of(run, effects, received_at=NOW),
        gate=Gate(ports),
    )


def test_an_effects_key_is_the_same_in_every_attempt() -> None:
    keys = {context(attempt=attempt).idempotency_key("order") for attempt in range(1, 9)}
    assert keys == {"order:acme.fulfil:acme:evt-1"}


def test_each_effect_handler_and_event_has_its_own_key() -> None:
    keys = {
        context().idempotency_key("order"),
        context().idempotency_key("note"),
        context(handler="acme.mail").idempotency_key("order"),
        context(event_id="evt-2").idempotency_key("order"),
    }
    assert len(keys) == 4


@pytest.mark.parametrize(
    "event_id", ["x" * 500, "é", "a b", "line\nbreak", "tab\t", "\x00", "x" * 240, "😀" * 100]
)
def test_a_key_fits_into_any_header(event_id: str) -> None:
    key = context(event_id=event_id).idempotency_key("order")
    assert len(key) <= KEY_LIMIT
    assert key.isascii()
    assert key.isprintable()


def test_odd_ids_have_keys_of_their_own() -> None:
    ids = ["é", "è", "a\nb", "a\tb", "x" * 400, "x" * 401]
    assert len({context(event_id=id_).idempotency_key("order") for id_ in ids}) == len(ids)


def test_a_long_effect_name_is_cut_and_hashed() -> None:
    keys = {context().idempotency_key("x" * length) for length in (300, 301)}
    assert len(keys) == 2
    assert max(map(len, keys)) <= KEY_LIMIT


def test_a_destination_is_found_by_its_name() -> None:
    assert context().destination("crm").base_url == "https://crm.example"


def test_a_destination_that_is_not_configured_is_permanent() -> None:
    with pytest.raises(Permanent, match=r"add \[destinations.mail\]"):
        context().destination("mail")


def test_a_secret_is_its_current_value() -> None:
    assert context().secret("crm") == "current"


def test_a_secret_that_is_not_set_is_transient_and_says_how_to_set_it() -> None:
    with pytest.raises(Transient, match="webhookctl secrets set mail"):
        context().secret("mail")


# -- what a handler raises, and asks


@pytest.mark.parametrize(
    ("given", "seconds"),
    [(30, 30), (1.5, 1.5), (timedelta(minutes=1), 60), (-5, 0), (1e300, 31_536_000)],
)
def test_a_delay_is_a_timedelta_or_seconds(given: timedelta | float, seconds: float) -> None:
    asked = Transient("busy", retry_after=given).retry_after
    assert asked == timedelta(seconds=seconds)


def test_a_hold_lets_through_what_a_person_has_approved_and_nothing_else() -> None:
    with pytest.raises(Held) as held:
        context().hold("a lot", shows="20000 EUR")
    assert (held.value.subject, held.value.shows) == ("handler", "20000 EUR")
    word = {"by": "ann", "fingerprint": held.value.fingerprint}
    approved = replace(context(), approvals={"handler": word})
    approved.hold("a lot", shows="20000 EUR")
    for reason, shows in (("a lot", "30000 EUR"), ("too much", "20000 EUR")):
        with pytest.raises(Held):
            approved.hold(reason, shows=shows)
    with pytest.raises(Held):
        replace(context(), approvals={"policy": word}).hold("a lot", shows="20000 EUR")
