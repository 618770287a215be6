"""The secrets: live values, previous values, and destinations that are placeholders."""

from collections.abc import Iterator
from typing import Final

from webhook_inbox.client.health.doctor.examination import Examination
from webhook_inbox.client.health.result import CheckResult, Level
from webhook_inbox.client.named_secrets import StoredSecret, named_secrets
from webhook_inbox.client.times import relative
from webhook_inbox.configuration.addresses import kind_of
from webhook_inbox.domain.secret_document import HANDLERS, SOURCES, TOOLS

CHECK: Final = "secrets"


def secrets(exam: Examination) -> Iterator[CheckResult]:
    """Yields a failure for each secret without a value, and the rotations that have not ended."""
    documents = exam.target.secret_documents
    stored = {reader: documents.read(reader) for reader in (SOURCES, HANDLERS)} | {TOOLS: {}}
    every = named_secrets(exam.target.manifest, stored, documents.prefix)
    found = [each for each in every if each.used_by]
    missing = [each.name for each in found if each.is_missing]
    for name in missing:
        remedy = exam.program.command("secrets set", argument=name)
        yield CheckResult.judged(CHECK, f"{name} has no value", failure=f"run `{remedy} < FILE`")
    if not missing:
        yield CheckResult.judged(CHECK, f"{len(found)} of {len(found)} set")
    yield from (_rotation(exam, each) for each in found if each.values > 1)


def _rotation(exam: Examination, secret: StoredSecret) -> CheckResult:
    since = "" if secret.since is None else f", replaced {relative(secret.since, exam.now)}"
    revoke = exam.program.command("secrets revoke", "--previous", argument=secret.name)
    if secret.until is not None:
        ended = secret.until <= exam.now
        told = f"{'ended' if ended else 'ends'} {relative(secret.until, exam.now)}"
        return CheckResult.judged("rotation", f"{secret.name}: previous value {told}{since}")
    return CheckResult(
        "rotation",
        Level.WARNING,
        f"{secret.name}: previous value valid without an end{since}",
        remedy=f"`{revoke}` once the provider uses the new value",
    )


def placeholders(exam: Examination) -> Iterator[CheckResult]:
    """Yields a failure for each destination whose address belongs to no system."""
    destinations = exam.target.manifest.destinations
    for name, spec in destinations.items():
        if not exam.target.local and kind_of(spec.base_url) == "placeholder":
            yield CheckResult.judged(
                "destinations",
                f"{name}: {spec.base_url} belongs to no system",
                failure=f"set [destinations.{name}] base_url in inbox.toml, and deploy",
            )
