"""Who calls, as it is written beside what they changed."""

import getpass

from webhookctl.target import Target


def caller(target: Target) -> str:
    """Returns the ARN of whoever calls, or this machine's user for an inbox that runs here."""
    if target.local:
        return getpass.getuser()
    return str(target.client("sts").get_caller_identity()["Arn"])
