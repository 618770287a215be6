"""The secrets that the sources and handlers use, which exist apart from the stack."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from webhook_inbox.adapters.aws.secrets_manager import text_of
from webhook_inbox.client.named_secrets import named_secrets
from webhook_inbox.domain.secret_document import HANDLERS, SOURCES, TOOLS, Secrets, parse, prefix_of
from webhookctl.preflight.plan import Plan
from webhookctl.preflight.reader import Reader, Unread
from webhookctl.preflight.result import Result

CHECK: Final = "secrets"
MISSING: Final = ("ResourceNotFoundException",)


class Stored(NamedTuple):
    """The secrets by reader, and the documents that are scheduled for deletion."""

    secrets: Mapping[str, Secrets]
    deleted: tuple[str, ...]


def read(reader: Reader, plan: Plan) -> Stored:
    """Returns the stored secrets; a document that does not exist has none."""
    found: dict[str, Secrets] = {TOOLS: {}}
    deleted = []
    for name in (SOURCES, HANDLERS):
        document, found[name] = prefix_of(plan.stack) + name, {}
        state = reader.call(
            "secretsmanager", "describe_secret", expected=MISSING, SecretId=document
        )
        if state and "DeletedDate" in state:
            deleted.append(document)
        elif state:
            found[name] = _content(reader, document)
    return Stored(found, tuple(deleted))


def _content(reader: Reader, document: str) -> Secrets:
    """Returns the secrets of a document; raises Unread, without a value, where it is malformed."""
    answer = reader.call("secretsmanager", "get_secret_value", expected=MISSING, SecretId=document)
    try:
        return parse(text_of(answer)) if answer else {}
    except ValueError as error:
        raise Unread(f"{document} {error}") from None


def judge(plan: Plan, stored: Stored) -> Result:
    """Returns a warning for secrets without a value, and a failure for deleted documents."""
    named = [each for each in named_secrets(plan.manifest, stored.secrets) if each.users]
    missing = [each.name for each in named if each.missing]
    figure = f"{len(named) - len(missing)} of {len(named)} set"
    if stored.deleted:
        restore = (
            f"`aws secretsmanager restore-secret --secret-id {each}`" for each in stored.deleted
        )
        gone = f"{figure}; scheduled for deletion: {', '.join(stored.deleted)}"
        return Result.judged(CHECK, gone, failure="run " + ", ".join(restore))
    if missing:
        return Result.judged(
            CHECK,
            f"{figure}; missing: {', '.join(missing)}",
            warning=f"run `webhookctl --stack {plan.stack} secrets set NAME` for each; a source"
            " without its secret answers 503",
        )
    return Result.judged(CHECK, figure)
