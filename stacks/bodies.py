"""The bucket of large bodies."""

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_s3 as s3
from constructs import Construct

# An event lives 35 days and its effects 14 more; a body outlives every row that names it.
BODY_DAYS = 49


class Bodies(Construct):
    """A private bucket; nothing is overwritten in it, and everything in it expires."""

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
                s3.LifecycleRule(
                    expiration=Duration.days(BODY_DAYS),
                    abort_incomplete_multipart_upload_after=Duration.days(1),
                )
            ],
            removal_policy=RemovalPolicy.RETAIN,
        )

    @property
    def objects(self) -> str:
        """The ARN pattern of the bodies."""
        return self.bucket.arn_for_objects("bodies/*")
