"""The bucket of large bodies."""

from datetime import timedelta
from typing import Final

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_s3 as s3
from constructs import Construct
from webhook_inbox_cdk.waive import waive

from webhook_inbox.ingest import rejected
from webhook_inbox.ledger import payloads, schema

# Why roles have patterns of keys.
HASHED: Final = "A key ends in the body's hash, which the template cannot name."


class Bodies(Construct):
    """A private bucket whose objects expire; a body's key ends in its hash."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        self.bucket = s3.Bucket(
            self,
            "Bucket",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            lifecycle_rules=[
                _expiry(payloads.PREFIX, schema.BODY_LIFE),
                _expiry(payloads.REJECTED_PREFIX, rejected.LIFE),
                s3.LifecycleRule(abort_incomplete_multipart_upload_after=Duration.days(1)),
            ],
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        no_access_log = (
            "Only the stack's roles read and write it. An access log needs a second bucket, and"
            " CloudTrail's data events record more; your organization's trail can add them."
        )
        waive(
            self.bucket,
            {
                "AwsSolutions-S1": no_access_log,
                "CKV_AWS_18": no_access_log,
                "CKV_AWS_21": "A key ends in the body's hash, so an overwrite has equal bytes, and"
                " only a source's `retention` and an operator's erasure delete. Old versions would"
                " outlive both, and the body's expiry.",
            },
        )

    @property
    def objects(self) -> str:
        """The ARN pattern of the events' bodies."""
        return self.bucket.arn_for_objects(f"{payloads.PREFIX}*")

    @property
    def rejected_objects(self) -> str:
        """The ARN pattern of the bodies of rejected deliveries."""
        return self.bucket.arn_for_objects(f"{payloads.REJECTED_PREFIX}*")


def _expiry(prefix: str, life: timedelta) -> s3.LifecycleRule:
    return s3.LifecycleRule(prefix=prefix, expiration=Duration.days(life.days))
