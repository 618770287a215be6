"""Versions of a document as AWS keeps them, which no double models."""

from typing import Any

from botocore.exceptions import ClientError

from webhook_inbox.adapters.aws.secrets_manager import SecretDocument
from webhook_inbox.domain.secret_document import Secrets, rotated

NAME = "webhook-inbox/test/sources"


class Versions:
    """The client of one secret: the same text under the same id succeeds and does nothing.

    https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_PutSecretValue.html
    """

    def __init__(self) -> None:
        self.texts = {"first": "{}"}
        self.current = "first"
        self.stale: list[str] = []  # what reads of the current version still see

    def get_secret_value(self, *, VersionId: str = "", **_: str) -> dict[str, Any]:  # noqa: N803
        seen = self.stale.pop(0) if self.stale and not VersionId else self.current
        version = VersionId or seen
        stages = ["AWSCURRENT"] if version == self.current else []
        return {
            "SecretString": self.texts[version],
            "VersionId": version,
            "VersionStages": stages,
        }

    def put_secret_value(
        self,
        *,
        ClientRequestToken: str,  # noqa: N803
        SecretString: str,  # noqa: N803
        **_: str,
    ) -> dict[str, Any]:
        if ClientRequestToken not in self.texts:
            self.texts[ClientRequestToken] = SecretString
            self.current = ClientRequestToken
        if self.texts[ClientRequestToken] != SecretString:
            raise ClientError({"Error": {"Code": "ResourceExistsException"}}, "PutSecretValue")
        current = self.current == ClientRequestToken
        return {"VersionStages": ["AWSCURRENT"] if current else ["AWSPREVIOUS"]}


def test_after_a_rollback_the_same_value_is_set_again() -> None:
    client = Versions()
    document = SecretDocument(client, NAME)

    def edit(secrets: Secrets) -> Secrets:
        return rotated(secrets, "stripe", "one")

    document.change(edit)
    client.current = "first"  # update-secret-version-stage
    document.change(edit)
    assert document.read() == {"stripe": ("one",)}
    assert len(client.texts) == 3


def test_a_stale_read_does_not_overwrite_another_writer() -> None:
    client = Versions()
    document = SecretDocument(client, NAME)
    document.change(lambda secrets: rotated(secrets, "github", "theirs"))
    client.stale = ["first"] * 5

    document.change(lambda secrets: rotated(secrets, "stripe", "ours"))

    client.stale = []
    assert document.read() == {"github": ("theirs",), "stripe": ("ours",)}
