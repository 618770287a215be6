"""The names of the secrets' documents, and the keys that the stack generates."""

from typing import Final

from aws_cdk import ArnFormat, RemovalPolicy, Stack
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct
from webhook_inbox_cdk.waive import waive

from webhook_inbox.domain.secret_document import prefix_of
from webhook_inbox.domain.secrets import APPROVAL_KEY, COMPLETION_KEY, TOKEN_KEY

WAIVED: Final = {
    "AwsSolutions-SMG4": "Tokens that were handed out depend on the key: a rotation by schedule"
    " would reject genuine completions.",
    "CKV_AWS_149": "Secrets Manager encrypts with its own key; no other account reads the secret.",
}


class Secrets(Construct):
    """The secrets of one stack.

    Those of sources, destinations and handlers are not resources of the stack: CloudFormation can
    neither adopt an existing secret nor create one whose name is taken, and a removed secret keeps
    its name. `webhookctl secrets set` creates one document for each reader, below `prefix`.

    The stack generates the values of `completion_key`, of `token_key` where a source's deliveries
    bear tokens or its callers get status URLs, and of `approval_key` where inbox.toml names
    approvers: each is a dictionary of one ARN by the key's name, or empty. They have no fixed names
    and are deleted with the stack.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        makes_tokens: bool = False,
        makes_links: bool = False,
    ) -> None:
        super().__init__(scope, construct_id)
        self.prefix = prefix_of(Stack.of(self).stack_name)
        self.completion_key = {
            COMPLETION_KEY: self._generated("CompletionKey", "makes the tokens that complete jobs")
        }
        self.token_key = (
            {
                TOKEN_KEY: self._generated(
                    "TokenKey", "hashes the tokens of rejected deliveries, and signs status URLs"
                )
            }
            if makes_tokens
            else {}
        )
        self.approval_key = (
            {APPROVAL_KEY: self._generated("ApprovalKey", "signs the links of approvers")}
            if makes_links
            else {}
        )

    def document(self, reader: str) -> str:
        """Returns the name of a reader's document."""
        return self.prefix + reader

    def arn(self, reader: str) -> str:
        """Returns the pattern of the document's ARN, which ends with six random characters."""
        return Stack.of(self).format_arn(
            service="secretsmanager",
            resource="secret",
            resource_name=f"{self.document(reader)}-??????",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )

    def _generated(self, construct_id: str, purpose: str) -> str:
        """Creates a secret with a generated value, and returns its ARN."""
        key = secretsmanager.CfnSecret(
            self,
            construct_id,
            description=f"webhook-inbox: {purpose}; generated, do not set",
            generate_secret_string=secretsmanager.CfnSecret.GenerateSecretStringProperty(
                password_length=64, exclude_punctuation=True
            ),
        )
        waive(key, WAIVED)
        key.apply_removal_policy(RemovalPolicy.DESTROY)
        return key.attr_id
