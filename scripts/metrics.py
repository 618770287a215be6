"""Writes the section on metrics of docs/operate.md: `python -m scripts.metrics`."""

import re
import sys
from collections.abc import Iterable, Mapping
from math import prod
from pathlib import Path
from typing import Final

from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.domain import prices
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.metrics import (
    CATALOGUE,
    OF_AWS,
    Duplicate,
    Metric,
)

ROOT: Final = Path(__file__).resolve().parents[1]
FILE: Final = ROOT / "docs" / "operate.md"
SECTION: Final = re.compile(r"^## Metrics\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
# The outcomes of RUNS.
OUTCOMES: Final = 5
# The routes of an API beside its sources': completions, and unknown sources.
OTHER_ROUTES: Final = 2
KINDS: Final = {
    Duplicate.ATTACK: "known signed content under another id or in other bytes; it does not run",
    Duplicate.SELF: "the event's runs had not begun 3 seconds after its first delivery or later:"
    " that delivery was not finished, or the queue has a backlog",
    Duplicate.RESEND: "the provider never retries by itself, or says that this is no retry: a"
    " redelivery that a person or `sources reconcile` requested",
    Duplicate.RETRY: "any other: the provider did not receive the answer, or retries anyway",
}
METRIC_COLUMNS: Final = "metric | dimensions | unit | value | used by"
TEXT: Final = """\
## Metrics

The functions write CloudWatch metrics in the embedded metric format. Their namespace is
`WebhookInbox/` and the stack's name, such as `WebhookInbox/WebhookInbox-prod`.

@METRICS@
A count of 0 is not written. `source`, `handler` and `destination` have names of the manifest, or
`none`. The first kind of a duplicate that applies is counted:

@KINDS@
A stack without a dashboard writes only what alarms or commands use: the total of `Rejected` and
the reason `contested-enrolment`, of `Runs` the outcome `dead` without its handler. Its console
counts events in the ledger instead.

Alarms and dashboard also use metrics that AWS writes at no cost:

@AWS@
CloudWatch charges 0.30 dollars a month for each combination of dimension values, in the hours in
which it is written. An idle stack writes none. This repository's app has at most @COUNT@, for
@COST@ dollars a month if each is written in every hour.

"""


def combinations(metric: Metric, manifest: Manifest) -> int:
    """Returns how many combinations of dimension values a metric has at most."""
    values: Mapping[str, int] = {
        "source": len(manifest.sources),
        "handler": len(manifest.handlers),
        "destination": len(manifest.destinations),
        "route": len(manifest.sources) + OTHER_ROUTES,
        "kind": len(Duplicate),
        "reason": len(Reason),
        "outcome": OUTCOMES,
    }
    return sum(prod(values[name] for name in names) for names in metric.dimensions)


def render() -> str:
    """Returns the section."""
    manifest = compile_manifest(ROOT / "functions", stage="prod")
    count = sum(combinations(metric, manifest) for metric in CATALOGUE.values())
    parts = {
        "METRICS": _table(
            "metric | dimensions | unit | value | used by", map(_row, CATALOGUE.values())
        ),
        "KINDS": _table("kind | the delivery", (f"`{k}` | {text}" for k, text in KINDS.items())),
        "AWS": _table(
            "namespace | metrics",
            (
                f"`{space}` | {', '.join(f'`{n}`' for n in names)}"
                for space, names in OF_AWS.items()
            ),
        ),
        "COUNT": str(count),
        "COST": f"{count * prices.METRIC:.2f}",
    }
    text = TEXT
    for name, part in parts.items():
        text = text.replace(f"@{name}@", part)
    return text


def _row(metric: Metric) -> str:
    sets = "; ".join(_listed(names) or "none" for names in metric.dimensions)
    cells = (f"`{metric.name}`", sets, metric.unit.lower(), metric.text, ", ".join(metric.used))
    return " | ".join(cells)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(head: str, rows: Iterable[str]) -> str:
    columns = head.count("|") + 1
    lines = [f"| {head} |", "|---" * columns + "|", *(f"| {row} |" for row in rows)]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Writes the section into the page; returns the exit status."""
    page = FILE.read_text(encoding="utf-8")
    FILE.write_text(SECTION.sub(lambda _: render(), page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
