"""The secrets of sources, destinations and handlers."""

from collections.abc import Iterable, Sequence

from aws_cdk import RemovalPolicy
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from webhook_inbox.domain.secrets import COMPLETION_KEY, TOKEN_KEY


class Secrets(Construct):
    """Secrets without a value: until an operator sets one, its source answers 503.

    Two the stack makes itself: `token_key` has the ARN of the one, where a source needs it, and
    `completion_key` that of the other.

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
        self.token_key = (
            [self._made("TokenKey", TOKEN_KEY, "hashes the tokens of rejected deliveries")]
            if hashes_tokens
            else []
        )
        self.completion_key = self._made(
            "CompletionKey", COMPLETION_KEY, "makes the tokens that complete jobs"
        )

    def arns(self, names: Iterable[str]) -> Sequence[str]:
        """Returns the ARNs of the named secrets, each once and in order."""
        return [self._secrets[name].attr_id for name in sorted(set(names))]

    def _made(self, construct_id: str, name: str, purpose: str) -> str:
        """Makes a secret that nobody else knows, and returns its ARN."""
        key = secretsmanager.CfnSecret(
            self,
            construct_id,
            name=f"{self.prefix}{name}",
            description=f"webhook-inbox: {purpose}; set by nobody",
            generate_secret_string=secretsmanager.CfnSecret.GenerateSecretStringProperty(
                password_length=64, exclude_punctuation=True
            ),
        )
        key.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        return key.attr_id

    def _secret(self, name: str) -> secretsmanager.CfnSecret:
        secret = secretsmanager.CfnSecret(
            self,
            name,
            name=f"{self.prefix}{name}",
            description="webhook-inbox: set it with `webhookctl secrets set`",
        )
        secret.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        return secret
