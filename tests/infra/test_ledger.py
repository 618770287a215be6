"""The table and the bucket: what must not get lost, and what must not get out."""

import random
from datetime import timedelta

from tests.infra.template import KEPT_ONCE_DEPLOYED, Properties, Template, named, survival
from webhook_inbox.ingest import rejected
from webhook_inbox.ledger import payloads, schema

TABLE = "AWS::DynamoDB::GlobalTable"
LARGE = random.Random(1).randbytes(64 * 1024)


def lifecycle(template: Template) -> dict[str, Properties]:
    """The bucket's lifecycle rules by their prefix."""
    rules = template.one("AWS::S3::Bucket")["LifecycleConfiguration"]["Rules"]
    return {rule.get("Prefix", ""): rule for rule in rules}


def test_table_has_the_ledger_s_keys_and_is_paid_by_use(dev: Template) -> None:
    table = dev.one(TABLE)
    assert table["KeySchema"] == [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ]
    assert {a["AttributeName"]: a["AttributeType"] for a in table["AttributeDefinitions"]} == {
        "pk": "S",
        "sk": "S",
        "received_bucket": "S",
        "received_at": "N",
        "due_bucket": "S",
        "due_at": "N",
    }
    assert table["BillingMode"] == "PAY_PER_REQUEST"


def test_indexes_are_the_two_that_the_code_queries(dev: Template) -> None:
    received, by_due = dev.one(TABLE)["GlobalSecondaryIndexes"]
    assert received == {
        "IndexName": "by_received",
        "KeySchema": [
            {"AttributeName": "received_bucket", "KeyType": "HASH"},
            {"AttributeName": "received_at", "KeyType": "RANGE"},
        ],
        "Projection": {
            "ProjectionType": "INCLUDE",
            "NonKeyAttributes": ["source", "type", "runs", "held", "tenant", "erased_at"],
        },
    }
    assert by_due == {
        "IndexName": "by_due",
        "KeySchema": [
            {"AttributeName": "due_bucket", "KeyType": "HASH"},
            {"AttributeName": "due_at", "KeyType": "RANGE"},
        ],
        "Projection": {"ProjectionType": "KEYS_ONLY"},
    }


def test_rows_expire_and_can_be_restored(dev: Template) -> None:
    table = dev.one(TABLE)
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}
    [replica] = table["Replicas"]
    assert replica["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}


def test_table_survives_its_stack_and_a_replacement(dev: Template) -> None:
    assert survival(dev.resource(TABLE)) == KEPT_ONCE_DEPLOYED


def test_a_rollback_leaves_a_protected_table_alone(prod: Template) -> None:
    assert survival(prod.resource(TABLE)) == ("Retain", "Retain")


def test_only_production_refuses_the_table_s_deletion(dev: Template, prod: Template) -> None:
    assert [
        template.one(TABLE)["Replicas"][0]["DeletionProtectionEnabled"] for template in (dev, prod)
    ] == [False, True]


def test_bodies_are_private_encrypted_and_owned_by_the_account(dev: Template) -> None:
    bucket = dev.one("AWS::S3::Bucket")
    assert bucket["PublicAccessBlockConfiguration"] == {
        "BlockPublicAcls": True,
        "BlockPublicPolicy": True,
        "IgnorePublicAcls": True,
        "RestrictPublicBuckets": True,
    }
    [rule] = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule == {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    assert bucket["OwnershipControls"]["Rules"] == [{"ObjectOwnership": "BucketOwnerEnforced"}]


def test_bodies_travel_by_tls_only(dev: Template) -> None:
    [statement] = dev.one("AWS::S3::BucketPolicy")["PolicyDocument"]["Statement"]
    assert statement["Effect"] == "Deny"
    assert statement["Action"] == "s3:*"
    assert statement["Principal"] == {"AWS": "*"}
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_bodies_outlive_every_row_that_names_them(dev: Template) -> None:
    rule = lifecycle(dev)["bodies/"]
    assert (rule["Status"], rule["ExpirationInDays"]) == ("Enabled", 35 + 14)
    assert timedelta(days=rule["ExpirationInDays"]) > schema.RUN_LIFE
    assert payloads.event_prefix("a", "evt-1").startswith("bodies/")


def test_bodies_without_an_event_go_after_a_week(dev: Template) -> None:
    rule = lifecycle(dev)["rejected/"]
    assert (rule["Status"], rule["ExpirationInDays"]) == ("Enabled", 7)
    assert timedelta(days=rule["ExpirationInDays"]) == rejected.LIFE
    packed = payloads.pack(LARGE, prefix=payloads.REJECTED_PREFIX)
    assert packed.blob_key.startswith("rejected/")


def test_unfinished_uploads_are_aborted_wherever_they_go(dev: Template) -> None:
    rules = lifecycle(dev)
    assert set(rules) == {"", "bodies/", "rejected/"}
    assert rules[""]["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    assert "ExpirationInDays" not in rules[""]


def test_bucket_survives_its_stack(dev: Template) -> None:
    assert survival(dev.resource("AWS::S3::Bucket")) == KEPT_ONCE_DEPLOYED


def test_no_secret_of_the_stack_has_a_name_that_may_be_taken(dev: Template) -> None:
    """A name outlives a deleted secret, and CloudFormation does not adopt what has it."""
    [(name, key)] = dev.all("AWS::SecretsManager::Secret").items()
    assert "Name" not in key
    assert key["GenerateSecretString"]["PasswordLength"] == 64
    assert survival(dev.body["Resources"][name]) == ("Delete", "Delete")


def test_no_secret_has_a_value_in_the_template(dev: Template) -> None:
    assert named(dev.outputs["SecretPrefix"]) == "webhook-inbox/Inbox/"
    assert "resolve:secretsmanager" not in str(dev.body)
    assert "SecretString'" not in str(dev.body).replace("GenerateSecretString'", "")
