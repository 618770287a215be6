"""The bootstrap resources of the CDK, of the version that the assembly requires."""

import re
from typing import Final

from webhookctl.preflight.plan import Plan
from webhookctl.preflight.reader import Reader
from webhookctl.preflight.result import CDK, Result

CHECK: Final = "bootstrap"
QUALIFIER: Final = "hnb659fds"  # the CDK's default
PARAMETER: Final = re.compile("/cdk-bootstrap/([^/]+)/version")


def read(reader: Reader, plan: Plan) -> int | None:
    """Returns the version of the account's bootstrap resources; None without any."""
    found = reader.call(
        "ssm", "get_parameter", expected=("ParameterNotFound",), Name=plan.bootstrap_parameter
    )
    return int(found["Parameter"]["Value"]) if found else None


def judge(plan: Plan, version: int | None, *, account: str, region: str) -> Result:
    """Returns a failure with the command where the resources are missing or too old."""
    # Any other name is the app's own choice, and names no qualifier.
    named = PARAMETER.fullmatch(plan.bootstrap_parameter)
    qualifier = named[1] if named else QUALIFIER
    options = "" if qualifier == QUALIFIER else f" --qualifier {qualifier}"
    command = f"run `{CDK} bootstrap{options} aws://{account}/{region}`"
    enough = version is not None and version >= plan.bootstrap_version
    return Result.judged(
        CHECK,
        f"none ({plan.bootstrap_parameter})" if version is None else f"version {version}",
        f"at least version {plan.bootstrap_version}",
        failure="" if enough else command,
    )
