"""The inboxes that are scanned, synthesized without wheels, which no scanner reads."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App
from cdk_nag import AwsSolutionsChecks

from stacks.inbox_stack import FUNCTIONS, InboxStack
from webhook_inbox.configuration.handler_modules import registered_modules

NETWORK = {
    "id": "vpc-0123456789abcdef0",
    "availability_zones": ["eu-west-1a", "eu-west-1b"],
    "private_subnet_ids": ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
    "gateway_endpoints": ["rtb-0123456789abcdef0"],
}
# The parts that the default lacks: a domain, addresses for alarms, people who approve effects, a
# source that delivers its own secret, an ordered lane, and a source of batches.
CERTIFICATE = "arn:aws:acm:eu-west-1:111122223333:certificate/1a2b3c4d"
DOMAIN = f"""
domain.name = "hooks.shop.example"
domain.certificate = "{CERTIFICATE}"
domain.hosted_zone = "Z0123456789ABC"
"""
SETTINGS = """
[alarms]
notify = ["mailto:ops@shop.example"]
page = ["https://page.example"]

[approvers.finance]
people = { ann = "sns:arn:aws:sns:eu-west-1:111122223333:ann" }

[sources.planner]
provider = "asana"

[sources.mail]
provider = "sendgrid"
types = ["delivered"]
"""
HANDLERS = """
from webhook_inbox import Router, serial

planner = Router("planner")
mail = Router("mail")


@planner.on("*", order=serial("gid"), lane="ordered")
def plan(event, ctx):
    return None


@mail.on("*")
def note(event, ctx):
    return None
"""


@dataclass(frozen=True)
class Scanned:
    """The template of one inbox, and what cdk-nag finds in its construct tree."""

    template: Path
    violations: list[str]


@pytest.fixture(scope="session")
def scanned(tmp_path_factory: pytest.TempPathFactory) -> list[Scanned]:
    """This repository's stages dev and prod, and a prod with every part and option."""
    top = tmp_path_factory.mktemp("scanned")
    functions = str(_everything(top))
    everything = {"stage": "prod", "functions": functions, "vpc": NETWORK, "snapstart": "true"}
    return [
        _synthesized(top / "dev", {"stage": "dev"}),
        _synthesized(top / "prod", {"stage": "prod"}),
        _synthesized(top / "everything", everything),
    ]


def _synthesized(out: Path, context: Mapping[str, Any]) -> Scanned:
    app = App(
        context={"local": "true", "@aws-cdk/aws-iam:minimizePolicies": True, **context},
        analytics_reporting=False,
        outdir=str(out),
    )
    InboxStack(app)
    violations = AwsSolutionsChecks().validate_scope(app).violations or []
    app.synth()
    (template,) = out.glob("*.template.json")
    return Scanned(
        template,
        [
            f"{resource.construct_path}: {violation.rule_name} {violation.description}"
            for violation in violations
            for resource in violation.violating_resources
        ],
    )


def _everything(top: Path) -> Path:
    functions = top / "functions"
    ignored = shutil.ignore_patterns("__pycache__", "webhook_inbox")
    shutil.copytree(FUNCTIONS, functions, ignore=ignored)
    settings, handlers = functions / "inbox.toml", functions / "handlers"
    settings.write_text(DOMAIN + settings.read_text() + SETTINGS)
    modules = (*registered_modules(functions), "everything")
    (handlers / "everything.py").write_text(HANDLERS)
    (handlers / "__init__.py").write_text(f"MODULES = {modules!r}\n")
    return functions
