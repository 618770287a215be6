"""Versions of a document as AWS keeps them, which no double models."""

from typing import Any

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

    def get_secret_value(self, **_: str) -> dict[str, Any]:
        return {"SecretString": self.texts[self.current], "VersionId": self.current}

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
        assert self.texts[ClientRequestToken] == SecretString
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
