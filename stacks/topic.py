"""Where alarms go."""

from collections.abc import Sequence

from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct


def alarm_topic(scope: Construct, addresses: Sequence[str]) -> sns.Topic:
    """Returns a topic that tells these addresses, `mailto:` or `https:`."""
    # Unencrypted on purpose: CloudWatch may not use the account's own key for SNS, and an
    # alarm's text holds nothing secret.
    topic = sns.Topic(scope, "Topic", display_name="webhook-inbox", enforce_ssl=True)
    # A policy, even one that only denies, replaces the one by which the account's own alarms
    # may publish.
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
