"""The secrets of sources, destinations and handlers."""

from collections.abc import Iterable, Sequence

from aws_cdk import RemovalPolicy
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from webhook_inbox.rejected import TOKEN_KEY


class Secrets(Construct):
    """Secrets without a value: until an operator sets one, its source answers 503.

    `token_key` has the ARN of the one that the stack makes itself, where a source needs it.

    The low-level construct, because the other one would generate a value, which no provider
    knows; ingest would then refuse true deliveries instead of keeping them.

    They have names, so one that is left would be in the next one's way: those of a first
    deployment that was rolled back go with it. Those of a deleted stack stay;
    `cdk deploy --import-existing-resources` takes them over.
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
        self.token_key = [self._token_key().attr_id] if hashes_tokens else []

    def arns(self, names: Iterable[str]) -> Sequence[str]:
        """Returns the ARNs of the named secrets, each once and in order."""
        return [self._secrets[name].attr_id for name in sorted(set(names))]

    def _token_key(self) -> secretsmanager.CfnSecret:
        """Makes the one secret that nobody else knows: what refused tokens are hashed with."""
        key = secretsmanager.CfnSecret(
            self,
            "TokenKey",
            name=f"{self.prefix}{TOKEN_KEY}",
            description="webhook-inbox: hashes the tokens of rejected deliveries; set by nobody",
            generate_secret_string=secretsmanager.CfnSecret.GenerateSecretStringProperty(
                password_length=64, exclude_punctuation=True
            ),
        )
        key.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        return key

    def _secret(self, name: str) -> secretsmanager.CfnSecret:
        secret = secretsmanager.CfnSecret(
            self,
            name,
            name=f"{self.prefix}{name}",
            description="webhook-inbox: set it with `webhookctl secrets set`",
        )
        secret.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        return secret
