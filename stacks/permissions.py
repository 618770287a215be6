"""YOURS: the AWS permissions of your handlers, one line each."""

from collections.abc import Sequence

from aws_cdk import aws_iam as iam


def handler_rights() -> Sequence[iam.PolicyStatement]:
    """Returns the extra permissions of the functions that run handlers.

    For example `allow("ses:SendEmail", on="arn:aws:ses:eu-west-1:111122223333:identity/a.example")`
    """
    return []


def allow(*actions: str, on: str) -> iam.PolicyStatement:
    """Returns the permission for `actions` on the resource with this ARN."""
    return iam.PolicyStatement(actions=list(actions), resources=[on])
