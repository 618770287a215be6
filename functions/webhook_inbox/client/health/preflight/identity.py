"""Credentials and region: one resolution for webhookctl and the CDK CLI."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from webhook_inbox.adapters.aws.account import DEFAULT, KEYS, Account, Setting, resolve
from webhook_inbox.adapters.aws.account_facts import CallerIdentity
from webhook_inbox.client.health.result import CheckResult

# The CDK CLI takes every option from `CDK_…`, from cdk.json, and from this file.
USER_SETTINGS: Final = Path("~/.cdk.json")
# The fallback of the CDK CLI where no setting names a region.
FALLBACK: Final = "us-east-1"
# https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html
ROOT: Final = (
    "use an administrator of IAM Identity Center or an IAM user with `AdministratorAccess`: the"
    " root user cannot assume the CDK's roles"
)


def credentials(found: Account, caller: CallerIdentity) -> CheckResult:
    """Returns the result for the caller that STS names; a warning for the root user."""
    figure = f"account {caller.account}, {caller.arn}, {_from(found)}"
    return CheckResult.judged(
        "credentials", figure, warning=ROOT if caller.arn.endswith(":root") else ""
    )


def _from(found: Account) -> str:
    value, origin = found.profile
    return f"profile {value} ({origin})" if value else origin


def region(setting: Setting) -> CheckResult:
    """Returns the result for the region; a failure where no setting names one."""
    if setting.value:
        return CheckResult.judged("region", f"{setting.value}, from {setting.origin}")
    return CheckResult.judged(
        "region",
        "none set",
        failure="export AWS_REGION=NAME; without it the CDK CLI uses the region of the EC2"
        f" instance, or {FALLBACK}",
    )


def agreement(found: Account, cdk: Account) -> CheckResult:
    """Returns a warning where the CDK CLI resolves another profile or region."""
    parts = list(_differences(found, cdk))
    if not parts:
        return CheckResult.judged("cdk agrees", "same profile and region")
    figure = "the CDK CLI uses " + " and ".join(words for words, _ in parts)
    options = "".join(option for _, option in parts)
    variables = " ".join(
        f"{name}={setting.value}"
        for name, setting in (("AWS_PROFILE", found.profile), ("AWS_REGION", found.region))
        if setting.value
    )
    return CheckResult.judged(
        "cdk agrees",
        figure,
        warning=f"add{options} to each cdk command, or run `export {variables}`",
    )


def _differences(found: Account, cdk: Account) -> Iterator[tuple[str, str]]:
    for name in ("profile", "region"):
        ours, theirs = getattr(found, name), getattr(cdk, name)
        if _effective(name, ours) == _effective(name, theirs):
            continue
        told = f"{name} {theirs.value} ({theirs.origin})" if theirs.value else theirs.origin
        yield told, f" --{name} {ours.value}" if ours.value else ""


def _effective(name: str, setting: Setting) -> str:
    """Returns the profile's name; keys in the environment are none of the profiles."""
    if setting.value or name == "region":
        return setting.value or ""
    return setting.origin if setting.origin == KEYS else DEFAULT


def of_cdk(root: Path, environment: Mapping[str, str] = os.environ) -> Account:
    """Returns the account that the CDK CLI uses in this directory without options."""
    given = {}
    for name in ("profile", "region"):
        settings = (cdk_settings(root / "cdk.json"), cdk_settings(USER_SETTINGS.expanduser()))
        files = (each[name] for each in settings if each.get(name))
        given[name] = environment.get(f"CDK_{name.upper()}") or next(files, None)
    found = resolve(given["profile"], given["region"], environment)
    origins = {name: f"CDK_{name.upper()} or cdk.json" for name in given if given[name]}
    return Account(
        found.profile._replace(origin=origins.get("profile", found.profile.origin)),
        found.region._replace(origin=origins.get("region", found.region.origin)),
        found.session,
    )


def cdk_settings(file: Path) -> Mapping[str, Any]:
    """Returns the settings of a cdk.json; none where it cannot be read."""
    try:
        read = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return read if isinstance(read, dict) else {}
