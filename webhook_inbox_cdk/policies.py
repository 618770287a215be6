"""Managed policies for the people and programs that use `webhookctl` with a stack.

    reader     everything that only reads; no secret's value
    operator   in addition to reader: replay, skip, pause, release, complete, erase, secrets; may
               not approve, and may not delete or change audit rows
    approver   in addition to reader: approve and deny held runs, and nothing else

A request that the people of a group decide is decided by an approver or under a link; an operator's
denial of it would be the same call as an approval.

A role has reader and one of the others. IAM sees the key and the names of the attributes of a
DynamoDB call, and neither its values nor its condition.
"""

from collections.abc import Sequence
from typing import Final

from aws_cdk import ArnFormat, Aws, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct
from webhook_inbox_cdk.bucket import HASHED
from webhook_inbox_cdk.function import EVERYTHING
from webhook_inbox_cdk.resources import Resources
from webhook_inbox_cdk.waive import waive, wildcard

from webhook_inbox.domain.secret_document import READERS
from webhook_inbox.ledger.schema import BY_DUE, BY_RECEIVED

LEADING_KEYS: Final = "dynamodb:LeadingKeys"
ATTRIBUTES: Final = "dynamodb:Attributes"
AUDIT_ROWS: Final = "audit#*"
# The attributes of an audit row, and of the same row in an event's history.
AUDIT_ATTRIBUTES: Final = (
    *("pk", "sk", "action", "by", "proof", "on_behalf_of", "request_id"),
    *("reason", "request", "event_ids", "forced", "expires_at"),
)
# The attributes of such a row that `conclude` changes.
CONCLUSION: Final = ("pk", "sk", "counts")
# The attributes of a held run and of its effect that a decision reads and changes.
DECISION: Final = (
    *("pk", "sk", "status", "generation", "attempt_count", "approvals", "held", "skip_reason"),
    *("resumed_at", "last_at", "done_at", "last_error", "due_bucket", "due_at", "lease_id"),
    *("claimed_until", "next_attempt_at", "parked", "resends", "waits_for"),
    *("committed_at", "committed_by", "result", "found_by", "word", "error"),
    *("failed_at", "busy_until", "unrecorded"),
)
# The attributes of a request for approval that a person's decision writes; its state is the truth.
VERDICT: Final = ("decisions", "state")
# Those that a decision changes or compares besides.
REQUEST: Final = (*VERDICT, "ended_at", "version", "mark")
# The partitions that a decision about a held run changes.
DECIDED: Final = ("event#*", "effect#*", AUDIT_ROWS)
# The partitions of which commands delete rows: a smoke test's, and the lines of ordering keys.
DELETED: Final = ("smoke", "event#smoke#*", "conflict#smoke#*", "ordering_key#*", "selection#*")

NO_ARN: Final = "CloudWatch's metrics and lists of alarms, and queries of logs, have no ARN."
NO_NAMES: Final = "Lambda identifies an event source mapping by a random id, which has no name."
OWN_NAMES: Final = "CloudFormation begins the names of the stack's resources with the stack's name."


class Policies(Construct):
    """The three policies, without fixed names.

    Attributes:
        arns: the ARNs by name: reader, operator, approver.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        resources: Resources,
        replay: str,
        logs: Sequence[str],
    ) -> None:
        """Creates the policies; `replay` and `logs` are the ARNs of the function and log groups."""
        super().__init__(scope, construct_id)
        self._resources = resources
        self.arns = {
            "Reader": self._policy("Reader", "webhook-inbox: read", self._reader(logs)),
            "Operator": self._policy("Operator", "webhook-inbox: operate", self._operator(replay)),
            "Approver": self._policy("Approver", "webhook-inbox: approve", self._approver()),
        }

    def _reader(self, logs: Sequence[str]) -> list[iam.PolicyStatement]:
        found, bodies = self._resources, self._resources.bodies
        indexes = [found.ledger.index(name) for name in (BY_DUE, BY_RECEIVED)]
        return [
            _allow(
                "cloudformation:DescribeStacks",
                "cloudformation:GetTemplateSummary",
                "cloudformation:ListStackResources",
                on=[Aws.STACK_ID],
            ),
            _allow("dynamodb:BatchGetItem", "dynamodb:GetItem", on=[found.table]),
            _allow("dynamodb:Query", on=[found.table, *indexes]),
            _allow("s3:GetObject", on=[bodies.objects, bodies.rejected_objects]),
            # Without it S3 answers "access denied" for a missing body.
            _allow("s3:ListBucket", on=[bodies.bucket.bucket_arn]),
            _allow("sqs:GetQueueAttributes", on=[*found.work_queues, *found.dead_letter_queues]),
            _allow("logs:FilterLogEvents", "logs:StartQuery", on=logs),
            # One statement, since a policy has 6,144 characters; each action is of one resource.
            _allow(
                "events:DescribeRule",
                "lambda:GetEventSourceMapping",
                "lambda:GetFunctionConfiguration",
                "sns:ListSubscriptionsByTopic",
                on=[
                    self._own("events", "rule", between="/"),
                    self._mappings(),
                    self._own("lambda", "function"),
                    self._own("sns"),
                ],
            ),
            _allow(
                "cloudwatch:DescribeAlarms",
                "cloudwatch:GetMetricData",
                "cloudwatch:GetMetricStatistics",
                "cloudwatch:ListMetrics",
                "logs:GetQueryResults",
                on=[EVERYTHING],
            ),
        ]

    def _operator(self, replay: str) -> list[iam.PolicyStatement]:
        found, bodies, secrets = self._resources, self._resources.bodies, self._resources.secrets
        return [
            _allow("lambda:InvokeFunction", on=[replay]),
            _allow("dynamodb:PutItem", "dynamodb:UpdateItem", on=[found.table]),
            _allow("dynamodb:DeleteItem", on=[found.table], when=_only_keys(DELETED)),
            _deny("dynamodb:DeleteItem", on=[found.table], when=_any_key(AUDIT_ROWS)),
            self._deny_audit_changes(),
            _deny(
                "dynamodb:PutItem",
                "dynamodb:UpdateItem",
                on=[found.table],
                when={"ForAnyValue:StringEquals": {ATTRIBUTES: self._denied}},
            ),
            # A release stores bodies, and `erase` deletes one.
            _allow("s3:DeleteObject", "s3:PutObject", on=[bodies.objects]),
            _allow("sqs:SendMessage", on=found.work_queues),
            _allow(
                "sqs:ChangeMessageVisibility",
                "sqs:DeleteMessage",
                "sqs:ReceiveMessage",
                on=found.dead_letter_queues,
            ),
            _allow(
                "secretsmanager:CreateSecret",
                "secretsmanager:GetSecretValue",
                "secretsmanager:PutSecretValue",
                on=[secrets.arn(reader) for reader in READERS],
            ),
            # A release compares the hashes of rejected tokens.
            *(
                _allow("secretsmanager:GetSecretValue", on=[arn])
                for arn in secrets.token_key.values()
            ),
            _allow("cloudwatch:SetAlarmState", on=[self._own("cloudwatch", "alarm")]),
        ]

    def _approver(self) -> list[iam.PolicyStatement]:
        table = [self._resources.table]
        return [
            _allow(
                "dynamodb:PutItem",
                on=table,
                when={
                    "ForAllValues:StringLike": {LEADING_KEYS: ["event#*", AUDIT_ROWS]},
                    "ForAllValues:StringEquals": {ATTRIBUTES: list(AUDIT_ATTRIBUTES)},
                },
            ),
            _allow(
                "dynamodb:UpdateItem",
                on=table,
                when={
                    **_only_keys(DECIDED),
                    "ForAllValues:StringEquals": {ATTRIBUTES: self._decided},
                },
            ),
            self._deny_audit_changes(),
            _allow("sqs:SendMessage", on=self._resources.work_queues),
        ]

    @property
    def _denied(self) -> list[str]:
        """The attributes that approve, which an operator never writes."""
        return ["approvals", *(VERDICT if self._asks_people else ())]

    @property
    def _decided(self) -> list[str]:
        """The attributes that an approver's decision changes."""
        return [*DECISION, *(REQUEST if self._asks_people else ()), "counts"]

    @property
    def _asks_people(self) -> bool:
        return bool(self._resources.manifest.approvers)

    def _deny_audit_changes(self) -> iam.PolicyStatement:
        """Denies to change any attribute of an audit row but its conclusion."""
        changed = {"ForAnyValue:StringNotEquals": {ATTRIBUTES: list(CONCLUSION)}}
        when = {**_any_key(AUDIT_ROWS), **changed}
        return _deny("dynamodb:UpdateItem", on=[self._resources.table], when=when)

    def _own(self, service: str, kind: str = "", *, between: str = ":") -> str:
        """Returns the ARN pattern of a service's resources of this stack."""
        own = f"{Stack.of(self).stack_name}-*"
        return self._arn(service, f"{kind}{between}{own}" if kind else own)

    def _mappings(self) -> str:
        return self._arn("lambda", "event-source-mapping:*")

    def _arn(self, service: str, resource: str) -> str:
        form = ArnFormat.NO_RESOURCE_NAME
        return Stack.of(self).format_arn(service=service, resource=resource, arn_format=form)

    def _policy(
        self, name: str, description: str, statements: Sequence[iam.PolicyStatement]
    ) -> str:
        policy = iam.ManagedPolicy(self, name, description=description, statements=statements)
        reasons = {
            self._resources.bodies.objects: HASHED,
            self._resources.bodies.rejected_objects: HASHED,
            self._own("sns"): OWN_NAMES,
            self._own("cloudwatch", "alarm"): OWN_NAMES,
            self._own("lambda", "function"): OWN_NAMES,
            self._own("events", "rule", between="/"): OWN_NAMES,
            self._mappings(): NO_NAMES,
            EVERYTHING: NO_ARN,
        }
        granted = {arn for each in statements for arn in each.resources}
        waive(policy, {wildcard(self, arn): why for arn, why in reasons.items() if arn in granted})
        return policy.managed_policy_arn


def _allow(
    *actions: str, on: Sequence[str], when: dict[str, dict[str, list[str]]] | None = None
) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=list(actions), resources=list(on), conditions=when)


def _deny(
    *actions: str, on: Sequence[str], when: dict[str, dict[str, list[str]]]
) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        effect=iam.Effect.DENY, actions=list(actions), resources=list(on), conditions=when
    )


def _only_keys(patterns: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    return {"ForAllValues:StringLike": {LEADING_KEYS: list(patterns)}}


def _any_key(pattern: str) -> dict[str, dict[str, list[str]]]:
    return {"ForAnyValue:StringLike": {LEADING_KEYS: [pattern]}}
