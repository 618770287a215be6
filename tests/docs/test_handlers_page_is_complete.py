"""docs/handlers.md names everything that a handler has, with its defaults, and nothing else."""

import inspect
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

import pytest

import webhook_inbox
from tests.docs.handlers_page import TEXT, sections
from webhook_inbox import Context, Event, IdempotencyKey, Router, Versions, current, testing
from webhook_inbox.destinations.propagation import CallChain
from webhook_inbox.domain import errors
from webhook_inbox.handlers import policies
from webhook_inbox.handlers.completions.wait import Waiting
from webhook_inbox.handlers.effects.journal import EffectState
from webhook_inbox.handlers.effects.plan import InDoubt, plan
from webhook_inbox.handlers.ordering import declaration
from webhook_inbox.handlers.router import BACKOFFS

# Errors of ingest, conditional writes and queues, which no handler sees.
NOT_A_HANDLERS = {
    "AccessDenied",
    "Rejected",
    "ConditionFailed",
    "ForeignMessage",
    "NotPublished",
    "NoTimeLeft",
}
# Internal attributes of contexts, which the page names only.
MACHINERY = {
    "approvals", "clients", "destinations", "effects", "gate", "secrets", "reservations", "waiting",
}  # fmt: skip
KIT = [testing.Inbox, testing.HandlerRun, testing.Effect, testing.Fake, testing.Request]
NOTHING = inspect.Parameter.empty


def public(cls: type) -> set[str]:
    """Returns the attributes of a class that are not private, its dataclass fields included."""
    own = {
        name
        for base in cls.__mro__
        if base.__module__.startswith("webhook_inbox")
        for name in vars(base)
    }
    named = {field.name for field in fields(cls)} if is_dataclass(cls) else set()
    return {name for name in named | own if not name.startswith("_")}


# Where the options of an effect and of a wait have their defaults.
WITH_DEFAULTS = {
    **inspect.signature(plan).parameters,
    **inspect.signature(Waiting._wait).parameters,
}


def parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Returns the parameters of a function; those of `**options: Unpack[…]` by its names."""
    own = {
        name: parameter
        for name, parameter in inspect.signature(function).parameters.items()
        if name not in {"self", "types"} and parameter.kind is not parameter.VAR_KEYWORD
    }
    for unpacked in get_args(function.__annotations__.get("options")):
        own |= {name: WITH_DEFAULTS[name] for name in get_type_hints(unpacked)}
    return own


def signature(name: str, function: Callable[..., Any]) -> str:
    """Returns how a call is written: `serial(key, *, on_dead="continue")`."""
    parts: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        stars = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else stars
        if parameter.kind is parameter.KEYWORD_ONLY and not any(p.startswith("*") for p in parts):
            parts.append("*")
        # A dataclass's factory makes what it then refuses: no default of the caller's.
        has_none = parameter.default is NOTHING or repr(parameter.default) == "<factory>"
        default = parameter.default
        text = f'"{default}"' if isinstance(default, str) else repr(default)
        parts.append(f"{stars}{parameter.name}" + ("" if has_none else f"={text}"))
    return f"{name}({', '.join(parts)})"


def named_after(word: str) -> set[str]:
    """Returns what the page writes behind `event.` or `ctx.`, in text and in code."""
    code = " ".join(re.findall(r"`[^`\n]+`", TEXT))
    code += "".join(block.text for section in sections().values() for block in section.python)
    return set(re.findall(rf"(?<![\w./\"]){word}\.([a-z_]+)", code))


def table(section: str, heading: str) -> dict[str, list[str]]:
    """Returns the rows of such tables by the names in their first column."""
    return {
        name: cells
        for cells in sections()[section].rows(heading)
        for name in re.findall(r"`([^`]+)`", cells[0])
    }


# -- event and ctx


@pytest.mark.parametrize(("word", "cls"), [("event", Event), ("ctx", Context)])
def test_every_attribute_is_named_and_no_other(word: str, cls: type) -> None:
    assert named_after(word) == public(cls)


@pytest.mark.parametrize(("section", "cls"), [("event", Event), ("ctx", Context)])
def test_every_attribute_that_a_handler_uses_has_a_line(section: str, cls: type) -> None:
    listed = {re.split(r"[.(]", name)[1] for name in sections()[section].names("attribute")}
    assert listed == public(cls) - (MACHINERY if cls is Context else set())


def test_every_attribute_of_a_call_chain_and_of_a_key_is_named() -> None:
    text = sections()["policies and agents"].text
    for name in public(CallChain):
        assert re.search(rf"`(ctx\.call_chain)?\.?{name}\b", text), name
    assert [f"`key.{name}`" in TEXT for name in public(IdempotencyKey)] == [True]


def test_the_page_lists_exactly_the_public_names() -> None:
    listed = TEXT.partition("imports from `webhook_inbox`")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"`(\w+)`", listed)) == sorted(webhook_inbox.__all__)


def test_what_a_router_has_is_named() -> None:
    text = sections()["Declaring"].text
    assert all(re.search(rf"`@?(router\.)?{name}\b", text) for name in public(Router))
    assert f"`{signature('Router', Router)}`" in text


# -- options and their defaults


OPTIONS: list[tuple[str, str, Callable[..., Any]]] = [
    ("Declaring", "option", Router.on),
    ("effects", "argument", Context.effect),
    ("long-running jobs", "argument", Context.wait_for),
]


@pytest.mark.parametrize(("section", "heading", "function"), OPTIONS)
def test_every_option_has_a_line_with_its_default(
    section: str, heading: str, function: Callable[..., Any]
) -> None:
    told = table(section, heading)
    passed = parameters(Context.effect) if function is Context.wait_for else {}
    for name, parameter in parameters(function).items():
        if name != "name" and name in passed:
            continue  # It has its line where effects are described.
        default, written = parameter.default, re.match(r"`([^`]+)`", told[name][1])
        if default is None or default is NOTHING:
            continue
        assert written, name
        text = f'"{default}"' if isinstance(default, str) else repr(default)
        number = isinstance(default, float) and float(written[1]) == default
        assert number or written[1] == text, name


def test_no_option_is_told_of_that_is_none() -> None:
    # A wait has those of the effect that starts its job; what else it takes it hands on.
    effects = parameters(Context.effect).keys()
    assert table("effects", "argument").keys() - {"retry", "hold"} == effects
    assert table("Declaring", "option").keys() == parameters(Router.on).keys()
    waits = table("long-running jobs", "argument").keys()
    passed = effects - {"name", "fn", "key"}
    assert waits == parameters(Context.wait_for).keys() - passed
    last = sections()["long-running jobs"].rows("argument")[-1][2]
    assert set(re.findall(r"`(\w+)`", last)) == passed


def test_coroutine_functions_have_the_same_options() -> None:
    assert parameters(Context.await_for).keys() == parameters(Context.wait_for).keys()
    assert parameters(Context.aeffect).keys() == parameters(Context.effect).keys()


SIGNATURES: list[tuple[str, Callable[..., Any]]] = [
    ("latest", declaration.latest),
    ("sequence", declaration.sequence),
    ("serial", declaration.serial),
    ("current", current),
    ("Versions", Versions),
    ("Permanent", errors.Permanent),
    ("Transient", errors.Transient),
    ("Deferred", errors.Deferred),
    ("Held", errors.Held),
    ("Hold", policies.Hold),
    ("Deny", policies.Deny),
    ("require_agent", policies.require_agent),
    ("all_of", policies.all_of),
    ("Inbox", testing.Inbox),
    ("Fake", testing.Fake),
    ("forward", webhook_inbox.forward),
    ("to_eventbridge", webhook_inbox.to_eventbridge),
    ("invoke", webhook_inbox.invoke),
    ("start_execution", webhook_inbox.start_execution),
]


@pytest.mark.parametrize(("name", "function"), SIGNATURES)
def test_how_a_call_is_written_is_told(name: str, function: Callable[..., Any]) -> None:
    assert signature(name, function) in TEXT


def test_what_an_order_may_say_is_told() -> None:
    rows = table("order", "argument")
    assert rows.keys() == parameters(declaration.sequence).keys()
    assert all(f'`"{word}"`' in rows["on_gap"][1] for word in declaration.ON_GAP)


def test_backoffs_are_told() -> None:
    text = sections()["Declaring"].text
    for name, preset in BACKOFFS.items():
        made = f"Backoff({preset.base:g}, {preset.factor:g}, {preset.cap:g})"
        assert f'`"{name}"` is `{made}`' in text
    steady = BACKOFFS["steady"]
    told = ", ".join(f"{field.name}={getattr(steady, field.name):g}" for field in fields(steady))
    assert f"`Backoff({told})`" in text
    assert webhook_inbox.Backoff() == steady


# -- states and errors


def test_every_state_of_an_effect_and_every_policy_is_told() -> None:
    text = sections()["effects"].text
    assert all(f"`{state}`" in text for state in set(EffectState) - {EffectState.STARTED})
    assert all(f'in_doubt="{word}"' in text for word in InDoubt)


def test_every_error_is_told_of_and_no_other() -> None:
    section = sections()["errors"]
    told = {name.partition("(")[0] for name in section.names("raised") + section.names("met")}
    found = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, errors.InboxError)
    }
    assert {name for name in told if name[0].isupper()} == found - NOT_A_HANDLERS


# -- the kit


@pytest.mark.parametrize("cls", KIT)
def test_every_attribute_of_the_kit_is_named(cls: type) -> None:
    told = sections()["testing"].text.rpartition("```")[2]
    made = {name for name in getattr(_made(cls), "__dict__", {}) if not name.startswith("_")}
    for name in public(cls) | made:
        assert re.search(rf"`[^`\n]*\b{name}\b[^`\n]*`", told), name


def _made(cls: type) -> object:
    """Returns one of those that set attributes of their own when they are made."""
    plain = Router("plain")
    plain.on("*", name="plain.do")(lambda event, ctx: None)
    inbox = testing.Inbox(plain)
    run = inbox.run("plain.do", b"", event_type="a")
    return next((each for each in (inbox, run, testing.Fake()) if type(each) is cls), None)


def test_every_option_of_the_kit_is_named() -> None:
    text = sections()["testing"].text
    for name in parameters(testing.Inbox.run).keys() - {"handler", "event"}:
        assert f"`{name}=`" in text, name
    methods = re.findall(r"`(\w+)\(([^)`]*)\)`", text.rpartition("```")[2])
    for cls, method, told in [
        (cls, method, told) for method, told in methods for cls in KIT if hasattr(cls, method)
    ]:
        given = {part.partition("=")[0].strip() for part in told.split(",") if part.strip()}
        assert given in ({*parameters(getattr(cls, method))}, set()), f"{cls.__name__}.{method}"


@pytest.mark.parametrize("name", testing.__all__)
def test_everything_of_the_kit_is_imported_in_its_example(name: str) -> None:
    assert re.search(rf"from webhook_inbox\.testing import .*\b{name}\b", TEXT)
