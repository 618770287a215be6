"""Synthesizes each kind of inbox once for all tests."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

# Read when jsii is first imported; Node 20 prints a banner that would be a warning here.
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")

from aws_cdk import App, Stack
from webhook_inbox_cdk.inbox import InboxProps, WebhookInbox
from webhook_inbox_cdk.processor import Placement

from tests.infra.template import Template
from webhook_inbox.configuration.declared_handlers import declared_by
from webhook_inbox.domain.manifest import HandlerSpec

INBOX = """
[sources.github]
provider = "github"

[sources.stripe-eu]
provider = "stripe"

[destinations.crm]
base_url = "https://crm.example"
allow = ["placeholder"]
"""
APPROVERS = """
[approvers.finance]
people = { ann = "crm:/ann", bob = "sns:arn:aws:sns:us-east-1:111122223333:bob" }
escalate_after = "4h"
escalate_to = "board"

[approvers.board]
people = { eve = "sns:arn:aws:sns:us-east-1:111122223333:board", bob = "crm:/bob" }
"""
REGISTRY = 'MODULES = ("github_issues", "billing")\n'
GITHUB = """
from webhook_inbox import Router

github = Router("github")


@github.on("issues.*", max_attempts=12)
def triage(event, ctx):
    return "triage"


@github.on("push", lane="slow")
def build(event, ctx):
    return "build"
"""
BILLING = """
from webhook_inbox import Router

billing = Router("billing", source="stripe-eu")


@billing.on("invoice.*")
async def fulfil(event, ctx):
    return "fulfil"
"""

Synthesize = Callable[..., Template]
# The template names the bundles, and they are not copied beside it: that takes a second each time.
UNSTAGED = {"aws:cdk:disable-asset-staging": True}


LANES = """
[lanes.slow]
runs_per_invocation = 5

[stages.prod.lanes.slow]
workers = 4
"""


def write_functions(top: Path, *, inbox: str = INBOX) -> Path:
    """Writes an integrator's part of `functions/` and returns it."""
    functions = top / "functions"
    (functions / "handlers").mkdir(parents=True)
    (functions / "inbox.toml").write_text('handler_secrets = ["openai"]\n' + inbox + LANES)
    (functions / "handlers" / "__init__.py").write_text(REGISTRY)
    (functions / "handlers" / "github_issues.py").write_text(GITHUB)
    (functions / "handlers" / "billing.py").write_text(BILLING)
    return functions


# The declared handlers, by module and the contents of all modules.
_DECLARED: dict[tuple[str, frozenset[tuple[str, bytes]]], list[HandlerSpec]] = {}


def _declared(module: str, *, root: Path, **options: Any) -> list[HandlerSpec]:
    files = [file for file in (root / "handlers").rglob("*.py") if file.is_file()]
    contents = {(str(file.relative_to(root)), file.read_bytes()) for file in files}
    key = module, frozenset(contents)
    if key not in _DECLARED:
        _DECLARED[key] = list(declared_by(module, root=root, **options))
    return _DECLARED[key]


@pytest.fixture(scope="module", autouse=True)
def _one_import_of_the_same_modules() -> Iterator[None]:
    """Imports handlers of the same contents once; each module is imported in its own process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("webhook_inbox.configuration.compile.declared_by", _declared)
        yield


@pytest.fixture(scope="session")
def functions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An integrator's handlers and inbox.toml; no test changes them."""
    return write_functions(tmp_path_factory.mktemp("integrator"))


@pytest.fixture(scope="session")
def props(functions: Path, tmp_path_factory: pytest.TempPathFactory) -> InboxProps:
    """Without wheels: these tests are about the template, and need no network."""
    build = tmp_path_factory.mktemp("build")
    return InboxProps(functions=functions, build=build, local=True, dashboard=True)


@pytest.fixture(scope="session")
def synthesize(props: InboxProps, tmp_path_factory: pytest.TempPathFactory) -> Synthesize:
    """Synthesizes an inbox with some properties changed."""

    def synthesized(placement: Placement | None = None, **changes: object) -> Template:
        outdir = str(tmp_path_factory.mktemp("assembly"))
        app = App(outdir=outdir, analytics_reporting=False, context=UNSTAGED)
        stack = Stack(app, "Inbox")
        changed = replace(props, placement=placement or props.placement, **changes)
        WebhookInbox(stack, "Inbox", changed)
        return Template.of(Path(app.synth().directory), "Inbox")

    return synthesized


@pytest.fixture(scope="session")
def dev(synthesize: Synthesize) -> Template:
    """The stage `dev`: every default, and a dashboard."""
    return synthesize()


@pytest.fixture(scope="session")
def prod(synthesize: Synthesize) -> Template:
    """The stage `prod`, of the same functions."""
    return synthesize(stage="prod")


@pytest.fixture(scope="session")
def asking(tmp_path_factory: pytest.TempPathFactory, synthesize: Synthesize) -> Template:
    """The stage `dev` of an inbox that names people who approve effects."""
    top = tmp_path_factory.mktemp("asking")
    return synthesize(functions=write_functions(top, inbox=INBOX + APPROVERS))
