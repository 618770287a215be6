"""The secrets that the sources and handlers use, which exist apart from the stack."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from webhook_inbox.adapters.aws.account_facts import AccountFacts
from webhook_inbox.adapters.aws.reader import Unread
from webhook_inbox.client.health.preflight.plan import DeploymentPlan
from webhook_inbox.client.health.result import CheckResult
from webhook_inbox.client.named_secrets import named_secrets
from webhook_inbox.domain.secret_document import HANDLERS, SOURCES, TOOLS, Secrets, parse, prefix_of

CHECK: Final = "secrets"


class StoredSecrets(NamedTuple):
    """The secrets by reader, and the documents that are scheduled for deletion."""

    secrets: Mapping[str, Secrets]
    deleted: tuple[str, ...]


def read(facts: AccountFacts, plan: DeploymentPlan) -> StoredSecrets:
    """Returns the stored secrets; a document that does not exist has none."""
    found: dict[str, Secrets] = {TOOLS: {}}
    deleted = []
    for name in (SOURCES, HANDLERS):
        document, found[name] = prefix_of(plan.stack) + name, {}
        is_deleted = facts.secret_is_deleted(document)
        if is_deleted:
            deleted.append(document)
        elif is_deleted is not None:
            found[name] = _content(facts, document)
    return StoredSecrets(found, tuple(deleted))


def _content(facts: AccountFacts, document: str) -> Secrets:
    """Returns the secrets of a document; raises Unread, without a value, where it is malformed."""
    try:
        text = facts.secret_text(document)
        return {} if text is None else parse(text)
    except ValueError as error:
        raise Unread(f"{document} {error}") from None


def judge(plan: DeploymentPlan, stored: StoredSecrets) -> CheckResult:
    """Returns a warning for secrets without a value, and a failure for deleted documents."""
    every = named_secrets(plan.manifest, stored.secrets, prefix_of(plan.stack))
    named = [each for each in every if each.used_by]
    missing = [each.name for each in named if each.is_missing]
    figure = f"{len(named) - len(missing)} of {len(named)} set"
    if stored.deleted:
        restore = (
            f"`aws secretsmanager restore-secret --secret-id {each}`" for each in stored.deleted
        )
        gone = f"{figure}; scheduled for deletion: {', '.join(stored.deleted)}"
        return CheckResult.judged(CHECK, gone, failure="run " + ", ".join(restore))
    if missing:
        return CheckResult.judged(
            CHECK,
            f"{figure}; missing: {', '.join(missing)}",
            warning=f"run `webhookctl --stack {plan.stack} secrets set NAME` for each; a source"
            " without its secret answers 503",
        )
    return CheckResult.judged(CHECK, figure)
