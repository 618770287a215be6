"""The secrets of sources, destinations and handlers."""

from collections.abc import Iterable, Sequence
from typing import Final

from aws_cdk import Arn, ArnComponents, ArnFormat, RemovalPolicy, Stack
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct
from webhook_inbox_cdk.waive import waive

from webhook_inbox.domain.manifest import SMOKE_SOURCE
from webhook_inbox.domain.secrets import COMPLETION_KEY, TOKEN_KEY

WAIVED: Final = {
    "AwsSolutions-SMG4": "The provider chooses a source's secret, and tokens that were handed out"
    " depend on a generated key: a schedule would reject genuine requests. `webhookctl secrets"
    " set` keeps the previous value valid.",
    "CKV_AWS_149": "Secrets Manager encrypts with its own key; no other account reads the secret.",
}


class Secrets(Construct):
    """Secrets without a value: a source answers 503 until an operator sets its secret.

    The stack generates two itself: `completion_key`, an ARN, and `token_key`, a list of one ARN
    where a source's deliveries bear tokens.

    CfnSecret is used because the high-level construct would generate a value that no provider
    knows, and ingest would reject genuine deliveries.

    The names are fixed. The rollback of a first deployment deletes the secrets; those of a
    deleted stack remain, and `cdk deploy --import-existing-resources` adopts them.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        stage: str,
        names: Iterable[str],
        hashes_tokens: bool = False,
    ) -> None:
        super().__init__(scope, construct_id)
        self.prefix = f"webhook-inbox/{stage}/"
        self._secrets = {name: self._secret(name) for name in names}
        self.token_key = (
            [self._generated("TokenKey", TOKEN_KEY, "hashes the tokens of rejected deliveries")]
            if hashes_tokens
            else []
        )
        self.completion_key = self._generated(
            "CompletionKey", COMPLETION_KEY, "makes the tokens that complete jobs"
        )

    @property
    def smoke(self) -> str:
        """The ARN of the smoke test's secret, which exists while `webhookctl smoke` runs."""
        # Secrets Manager adds six characters to a name.
        name = f"{self.prefix}{SMOKE_SOURCE.secret}-??????"
        parts = ArnComponents(
            service="secretsmanager",
            resource="secret",
            resource_name=name,
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        return Arn.format(parts, Stack.of(self))

    def arns(self, names: Iterable[str]) -> Sequence[str]:
        """Returns the ARNs of the named secrets, each once and in order."""
        return [self._secrets[name].attr_id for name in sorted(set(names))]

    def _generated(self, construct_id: str, name: str, purpose: str) -> str:
        """Creates a secret with a generated value, and returns its ARN."""
        key = secretsmanager.CfnSecret(
            self,
            construct_id,
            name=f"{self.prefix}{name}",
            description=f"webhook-inbox: {purpose}; generated, do not set",
            generate_secret_string=secretsmanager.CfnSecret.GenerateSecretStringProperty(
                password_length=64, exclude_punctuation=True
            ),
        )
        waive(key, WAIVED)
        key.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        return key.attr_id

    def _secret(self, name: str) -> secretsmanager.CfnSecret:
        secret = secretsmanager.CfnSecret(
            self,
            name,
            name=f"{self.prefix}{name}",
            description="webhook-inbox: set it with `webhookctl secrets set`",
        )
        waive(secret, WAIVED)
        secret.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        return secret
