"""Rows of the last table of docs/handlers.md: declarations that fit nothing."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from tests.docs.trouble import an_inbox, of, posted, refused
from tests.unit.support.world import World
from webhook_inbox import Router, latest, serial
from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.domain.errors import ConfigurationError

HANDLERS: Final = """
from webhook_inbox import Router

mail = Router("mail")


@mail.on("*", name="mail.one"{options})
def one(event, ctx):
    pass
"""


def compiled(*handlers: str) -> str:
    """Returns what synth says of modules of handlers."""
    names = tuple(f"m{number}" for number, _ in enumerate(handlers))
    with TemporaryDirectory() as directory:
        root = Path(directory)
        (root / "handlers").mkdir()
        (root / "handlers" / "__init__.py").write_text(f"MODULES = {names!r}\n")
        (root / "inbox.toml").write_text('[sources.mail]\nprovider = "stripe"\n')
        for name, text in zip(names, handlers, strict=True):
            (root / "handlers" / f"{name}.py").write_text(text)
        with pytest.raises(ConfigurationError) as raised:
            compile_manifest(root, stage="dev")
    return str(raised.value)


@of("a name in `destinations=` is not in `inbox.toml`")
def _undeclared() -> str:
    said = compiled(HANDLERS.format(options=', destinations=["crm"]'))
    assert "handlers/m0.py" in said
    assert "add [destinations.crm]" in said
    return said


@of("a name in `ctx.http` or `ctx.destination` is not")
def _unknown() -> str:
    for method in ("http", "destination"):
        written = HANDLERS.format(options="").replace("pass", f"ctx.{method}('crm')")
        assert "add [destinations.crm]" in compiled(written)
    return refused(lambda _, ctx: ctx.http("x").post("/"))


@of("a handler is registered twice")
def _registered_twice() -> str:
    one = HANDLERS.format(options="")
    assert "rename one" in compiled(one, one)
    router = Router("x")
    router.on("*", name="x.go")(lambda event, ctx: None)
    with pytest.raises(ConfigurationError) as raised:
        router.on("*", name="x.go")(lambda event, ctx: None)
    return str(raised.value)


@of("an option of another kind than it takes, or `on` without parentheses")
def _another_kind() -> str:
    assert "destinations is a list" in compiled(HANDLERS.format(options=', destinations="crm"'))
    return compiled(HANDLERS.replace('("*", name="mail.one"{options})', ""))


@of("a handler that takes other arguments than two, or yields")
def _no_handler() -> str:
    one = HANDLERS.format(options="")
    assert "with event and context" in compiled(one.replace("(event, ctx)", "(event)"))
    return compiled(one.replace("    pass", "    yield"))


@of("an order's path is absent from the payload")
def _no_path() -> str:
    for order in (latest("data.id", "n"), serial("data.id")):
        inbox = an_inbox(lambda _, ctx: posted(ctx), order=order)
        run = inbox.run("x.go", {"data": {}})
        assert run.status == "dead_letter"
        assert "x.go" in run.error
        assert "'data.id'" in run.error
        assert inbox.run("x.go", {"data": {"id": "c"}, "n": 1}).status == "done"
    return run.error


@of("a handler is renamed or removed with runs in flight")
def _removed() -> str:
    world = World()
    world.deliver()
    world.deploy(replace(world.manifest, handlers={}))
    world.pass_minutes(59)
    assert (world.run().status, world.run().attempt_count) == ("deferred", 0)
    world.pass_minutes(5)
    assert (world.run().status, world.handled) == ("dead_letter", [])
    return world.run().last_error
