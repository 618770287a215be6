"""The SNS topics that deliver the alarms, one for each severity."""

from collections.abc import Sequence
from typing import Final

from aws_cdk import Aws, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct
from webhook_inbox_cdk.alarm_declaration import Severity
from webhook_inbox_cdk.waive import waive

from webhook_inbox.configuration.inbox_toml import AlarmSpec

# The sender's name in the mails of an SNS topic.
DISPLAY_LIMIT: Final = 100


def topics(scope: Construct, recipients: AlarmSpec) -> dict[Severity, sns.Topic]:
    """Returns the topic of each severity; empty without an address.

    If only one list has addresses, its topic receives both severities.
    """
    lists = {Severity.NOTIFY: recipients.notify, Severity.PAGE: recipients.page}
    made = {
        severity: _topic(scope, severity, addresses)
        for severity, addresses in lists.items()
        if addresses
    }
    if not made:
        return {}
    [only, *_] = made.values()
    return {severity: made.get(severity, only) for severity in lists}


def _topic(scope: Construct, severity: Severity, addresses: Sequence[str]) -> sns.Topic:
    """Returns a topic that notifies these addresses, `mailto:` or `https:`."""
    # Unencrypted: CloudWatch cannot publish with the account's default KMS key for SNS, and the
    # alarms' texts hold no secrets.
    sender = f"{severity} {Stack.of(scope).stack_name}"[:DISPLAY_LIMIT]
    name = f"{severity.title()}Topic"
    topic = sns.Topic(scope, name, display_name=sender, enforce_ssl=True)
    waive(topic, {"CKV_AWS_26": "CloudWatch cannot publish with the account's default key."})
    # Any resource policy, even one with only a Deny, replaces the default policy that lets the
    # account's alarms publish.
    topic.add_to_resource_policy(
        iam.PolicyStatement(
            sid="AllowAlarms",
            principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
            actions=["sns:Publish"],
            resources=[topic.topic_arn],
            conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
        )
    )
    for address in addresses:
        kind, _, rest = address.partition(":")
        topic.add_subscription(
            subscriptions.EmailSubscription(rest)
            if kind == "mailto"
            else subscriptions.UrlSubscription(address)
        )
    return topic
