"""Secrets in Secrets Manager."""

from typing import Any, Final

from webhook_inbox.adapters.aws import errors
from webhook_inbox.domain.errors import Unavailable

STAGES: Final = ("AWSCURRENT", "AWSPREVIOUS")
# The current value of a revoked secret; Secrets Manager stores no empty one.
REVOKED: Final = " "


class SecretsManagerStore:
    """The ports `SecretStore` and `Vault`; `prefix` is that of a stage, "webhook-inbox/dev/"."""

    def __init__(self, client: Any, prefix: str, *, call: errors.Caller = errors.once) -> None:
        self._client = client
        self._prefix = prefix
        self._call = call

    def fetch(self, name: str) -> tuple[str, ...]:
        """See the port. A blank value is ignored; anyone could sign with it."""
        current = self._value(name, STAGES[0])
        if current is None or not current.strip():
            return ()
        previous = self._value(name, STAGES[1])
        rotated = previous is not None and previous.strip() and previous != current
        return (current, previous) if previous and rotated else (current,)

    def replace(self, name: str, value: str) -> None:
        """See the port."""
        # In this order, so that no crash leaves an earlier value live beside the new one.
        self.revoke(name)
        self._put(name, value)

    def revoke(self, name: str) -> None:
        """See the port."""
        self._put(name, REVOKED)

    def _put(self, name: str, value: str) -> None:
        self._call(
            "secretsmanager",
            "PutSecretValue",
            lambda: self._client.put_secret_value(SecretId=self._prefix + name, SecretString=value),
        )

    def _value(self, name: str, stage: str) -> str | None:
        try:
            answer = self._call(
                "secretsmanager",
                "GetSecretValue",
                lambda: self._client.get_secret_value(
                    SecretId=self._prefix + name, VersionStage=stage
                ),
            )
        except errors.Missing:
            return None
        return _text(answer)


def _text(answer: dict[str, Any]) -> str:
    text: str | None = answer.get("SecretString")
    if text is not None:
        return text
    try:
        return bytes(answer.get("SecretBinary", b"")).decode()
    except UnicodeDecodeError:
        # Not chained, since the original error contains the secret's bytes.
        cause = "SecretBinary is not UTF-8; store the secret as text"
        raise Unavailable("secretsmanager", "GetSecretValue", cause) from None
