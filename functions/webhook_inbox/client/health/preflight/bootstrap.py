"""The bootstrap resources of the CDK, of the version that the assembly requires."""

import re
from typing import Final

from webhook_inbox.client.health.preflight.plan import DeploymentPlan
from webhook_inbox.client.health.result import CDK, CheckResult

CHECK: Final = "bootstrap"
QUALIFIER: Final = "hnb659fds"  # the CDK's default
PARAMETER: Final = re.compile("/cdk-bootstrap/([^/]+)/version")


def judge(plan: DeploymentPlan, version: int | None, *, account: str, region: str) -> CheckResult:
    """Returns a failure with the command where the resources are missing or too old."""
    # Any other name is the app's own choice, and names no qualifier.
    named = PARAMETER.fullmatch(plan.bootstrap_parameter)
    qualifier = named[1] if named else QUALIFIER
    options = "" if qualifier == QUALIFIER else f" --qualifier {qualifier}"
    command = f"run `{CDK} bootstrap{options} aws://{account}/{region}`"
    enough = version is not None and version >= plan.bootstrap_version
    return CheckResult.judged(
        CHECK,
        f"none ({plan.bootstrap_parameter})" if version is None else f"version {version}",
        f"at least version {plan.bootstrap_version}",
        failure="" if enough else command,
    )
