"""Ready-made handlers as synth meets them: each is its own module's, and its destination exists."""

from pathlib import Path

import pytest

from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import Manifest

INBOX = """
[sources.acme]
provider = "stripe"

[destinations.billing]
base_url = "https://billing.example"
"""
TOP = "from webhook_inbox import Router, forward\n"
REGISTERED = 'acme.on("{types}", name="{name}")(forward("{destination}"))\n'


class Project:
    """A directory of handlers."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "handlers").mkdir(parents=True)
        (root / "inbox.toml").write_text(INBOX)

    def write(self, **modules: str) -> "Project":
        for name, text in modules.items():
            (self.root / "handlers" / f"{name}.py").write_text(TOP + text)
        (self.root / "handlers" / "__init__.py").write_text(f"MODULES = {tuple(modules)!r}\n")
        return self

    def compiled(self) -> Manifest:
        return compile_manifest(self.root, stage="local")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "functions")


def registered(name: str, *, types: str = "*", destination: str = "billing") -> str:
    return REGISTERED.format(name=name, types=types, destination=destination)


def test_a_forward_is_declared_like_any_handler(project: Project) -> None:
    text = 'acme = Router("acme")\n' + registered("acme.forward", types="invoice.*")

    manifest = project.write(billing=text).compiled()

    spec = manifest.handlers["acme.forward"]
    assert (spec.module, spec.function) == ("billing", "forward('billing')")
    assert (spec.types, spec.destinations) == (("invoice.*",), ("billing",))
    assert Manifest.from_data(manifest.to_data()) == manifest


def test_a_module_called_as_the_library_s_takes_nothing_away(project: Project) -> None:
    """`ready` is where forward comes from, and may be the name of a module of handlers too."""
    first = 'acme = Router("acme")\n' + registered("acme.first")
    second = 'more = Router("more", source="acme")\n' + registered("more.second").replace(
        "acme.on", "more.on"
    )
    manifest = project.write(billing=first, ready=second, http=second.replace("more", "most"))
    modules = {name: spec.module for name, spec in manifest.compiled().handlers.items()}
    assert modules == {"acme.first": "billing", "more.second": "ready", "most.second": "http"}


def test_without_a_name_synth_says_where(project: Project) -> None:
    text = 'acme = Router("acme")\n\nacme.on("*")(forward("billing"))\n'
    with pytest.raises(
        ConfigurationError,
        match=r"handlers/billing\.py:4: forward\('billing'\) has no name of its own",
    ):
        project.write(billing=text).compiled()


def test_a_destination_that_is_not_there_is_refused(project: Project) -> None:
    text = 'acme = Router("acme")\n' + registered("acme.forward", destination="bilning")
    with pytest.raises(ConfigurationError, match=r"add \[destinations\.bilning\]"):
        project.write(billing=text).compiled()


def test_the_same_name_twice_is_refused(project: Project) -> None:
    text = 'acme = Router("acme")\n' + registered("acme.forward") * 2
    with pytest.raises(ConfigurationError, match=r"'acme.forward' is registered twice"):
        project.write(billing=text).compiled()


def test_the_aws_ones_are_declared_without_an_account(project: Project) -> None:
    """Synth has neither region nor credentials: no client is made before the first call."""
    machine = "arn:aws:states:eu-west-1:1:stateMachine:x"
    text = (
        "from webhook_inbox import invoke, start_execution, to_eventbridge\n"
        'acme = Router("acme")\n'
        'acme.on("a", name="acme.bus")(to_eventbridge("orders"))\n'
        'acme.on("b", name="acme.call")(invoke("worker"))\n'
        f'acme.on("c", name="acme.start")(start_execution("{machine}"))\n'
    )
    handlers = project.write(billing=text).compiled().handlers
    assert {name: spec.function for name, spec in handlers.items()} == {
        "acme.bus": "to_eventbridge('orders')",
        "acme.call": "invoke('worker')",
        "acme.start": f"start_execution('{machine}')",
    }
