"""`conformance`: verifies recorded deliveries with the code of ingest."""

from collections import defaultdict
from pathlib import Path
from typing import Annotated

import typer

from webhook_inbox.domain.printable import counted
from webhookctl.conformance import BadVector, Verdict, judge, read
from webhookctl.display.table import Column
from webhookctl.errors import CommandError
from webhookctl.invocation import Invocation, offline, read_bytes


@offline
def conformance(
    call: Invocation,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File with a JSON list of vectors.")],
) -> None:
    """Verify vectors with the code of ingest; exit with 1 if a verdict differs."""
    try:
        verdicts = [judge(vector) for vector in read(read_bytes(file).decode())]
    except UnicodeDecodeError as error:
        raise CommandError(f"{file}: cannot be read: {error}") from error
    except BadVector as error:
        raise CommandError(f"{file}: {error}") from error
    wrong = [verdict for verdict in verdicts if not verdict.agrees]
    if call.as_json:
        call.output.json(_report(verdicts))
    else:
        _print(call, verdicts, wrong)
    if wrong:
        raise typer.Exit(1)


def _by_provider(verdicts: list[Verdict]) -> dict[str, list[Verdict]]:
    groups: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        groups[verdict.provider].append(verdict)
    return dict(sorted(groups.items()))


def _report(verdicts: list[Verdict]) -> dict[str, object]:
    return {
        "total": len(verdicts),
        "agree": sum(verdict.agrees for verdict in verdicts),
        "providers": {
            provider: {"total": len(group), "agree": sum(v.agrees for v in group)}
            for provider, group in _by_provider(verdicts).items()
        },
        "disagreements": [
            {
                "id": verdict.id,
                "provider": verdict.provider,
                "expected": list(verdict.expected),
                "found": verdict.found,
                "detail": verdict.detail,
            }
            for verdict in verdicts
            if not verdict.agrees
        ],
    }


def _print(call: Invocation, verdicts: list[Verdict], wrong: list[Verdict]) -> None:
    rows = [
        (provider, sum(v.agrees for v in group), len(group))
        for provider, group in _by_provider(verdicts).items()
    ]
    call.output.table((Column("PROVIDER"), Column("AGREE"), Column("OF")), rows)
    for verdict in wrong:
        expected = " or ".join(verdict.expected)
        why = f": {verdict.detail}" if verdict.detail else ""
        call.output.line(f"{verdict.id}: expected {expected}, found {verdict.found}{why}")
    agree = len(verdicts) - len(wrong)
    call.output.note(f"{agree} of {counted(len(verdicts), 'vector')} agree.")
