"""Synthesizes the plan of a deployment, which `preflight` compares with an account."""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from webhook_inbox.client.health.preflight.plan import DeploymentPlan, TemplateResources
from webhook_inbox.domain.manifest import METADATA, Manifest
from webhookctl.errors import CommandError
from webhookctl.local.deployment.assembly import STACK, artifacts, assets
from webhookctl.local.deployment.synth import run_app


def synthesize_plan(root: Path, stack: str, context: Mapping[str, str]) -> DeploymentPlan:
    """Runs the project's `app.py`, and returns the plan; raises CommandError."""
    with tempfile.TemporaryDirectory(prefix="webhookctl-preflight-") as directory:
        run_app(root, Path(directory), context)
        return _read_plan(Path(directory), stack)


def _read_plan(directory: Path, stack: str) -> DeploymentPlan:
    """Reads a cloud assembly; raises CommandError where it lacks the stack."""
    listed = artifacts(directory)
    stacks = {
        artifact["properties"].get("stackName", name): artifact
        for name, artifact in listed.items()
        if artifact["type"] == STACK
    }
    if stack not in stacks:
        raise CommandError(
            f"app.py synthesizes {', '.join(stacks) or 'no stack'}, and not {stack}: check"
            " --stack, or name the stage with `-c stage=NAME`"
        )
    artifact = stacks[stack]
    properties = artifact["properties"]
    template = json.loads((directory / properties["templateFile"]).read_text())
    return DeploymentPlan(
        stack=stack,
        template=TemplateResources.of(template),
        manifest=_manifest(template),
        bootstrap_parameter=properties.get("bootstrapStackVersionSsmParameter", ""),
        bootstrap_version=properties.get("requiresBootstrapStackVersion", 0),
        code=sum(
            file.stat().st_size
            for asset in assets(directory, artifact, listed)
            if asset.archived
            for file in asset.path.rglob("*")
            if file.is_file()
        ),
    )


def _manifest(template: Mapping[str, Any]) -> Manifest:
    text = template.get("Metadata", {}).get(METADATA)
    return Manifest.from_data(json.loads(text)) if text else Manifest()
