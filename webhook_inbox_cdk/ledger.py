"""The ledger's table."""

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from webhook_inbox.ledger.schema import BY_DUE, BY_RECEIVED


class Ledger(Construct):
    """The table with its two indexes and its TTL."""

    def __init__(self, scope: Construct, construct_id: str, *, protected: bool) -> None:
        super().__init__(scope, construct_id)
        self.table = dynamodb.TableV2(
            self,
            "Table",
            partition_key=_text("pk"),
            sort_key=_text("sk"),
            billing=dynamodb.Billing.on_demand(),
            time_to_live_attribute="expires_at",
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            global_secondary_indexes=[_by_received(), _by_due()],
            # The rollback of a first deployment deletes its empty table. It could not delete a
            # protected one, and would fail.
            removal_policy=(
                RemovalPolicy.RETAIN if protected else RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
            ),
            deletion_protection=protected,
        )

    def index(self, name: str) -> str:
        """Returns the ARN of an index."""
        return f"{self.table.table_arn}/index/{name}"


def _by_received() -> dynamodb.GlobalSecondaryIndexPropsV2:
    """Lists events by hour and shard, with what a search and the reconciler need of each."""
    return dynamodb.GlobalSecondaryIndexPropsV2(
        index_name=BY_RECEIVED,
        partition_key=_text("received_bucket"),
        sort_key=_number("received_at"),
        projection_type=dynamodb.ProjectionType.INCLUDE,
        non_key_attributes=["source", "type", "runs", "held", "tenant", "erased_at"],
    )


def _by_due() -> dynamodb.GlobalSecondaryIndexPropsV2:
    """Lists unfinished runs that need attention by due time; sparse: other runs have no entry."""
    return dynamodb.GlobalSecondaryIndexPropsV2(
        index_name=BY_DUE,
        partition_key=_text("due_bucket"),
        sort_key=_number("due_at"),
        projection_type=dynamodb.ProjectionType.KEYS_ONLY,
    )


def _text(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)


def _number(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.NUMBER)
