"""Sends real payloads through a local inbox and checks the results.

    python scripts/real_input.py            through the running `make dev`
    python scripts/real_input.py --own      through a temporary session
    python scripts/real_input.py --chaos    the same, while workers are killed and the sink is down

More than 300 of GitHub's own example payloads (npm fetches them) and a few dozen Stripe events,
signed by Stripe's own library, are each delivered one to five times concurrently. Every event must
then have one row, every run of its handlers must be done, and the sink must have received one
effect for each run. In a second run through the same inbox all of them are duplicates.

With --chaos, workers of the processor and of ingest are killed with `kill -9` throughout, and the
sink is down for a minute. SQS must have moved the messages of dead runs to the dead-letter queue,
`webhookctl inbox list --status dead_letter` must list them, and `webhookctl replay` must finish
them.

Prints a table of counts and claims. The exit status is 1 if a claim fails or npm is unreachable.
The claims apply to the repository's example handlers; other handlers have other effects.
"""

import argparse
import contextlib
import random
import sys
import time
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from scripts.realinput.payloads import (
    Payload,
    UnreachableError,
    fetch_examples,
    github_payloads,
    stripe_payloads,
)
from scripts.realinput.run import Result, Run
from scripts.realinput.session import ROOT, own, running
from webhook_inbox.domain.errors import ConfigurationError
from webhookctl.errors import CommandError

SEED: Final = 20261121
TIME: Final = 600.0
OUTAGE: Final = 60.0


def collect(seed: int, limit: int | None) -> tuple[list[Payload], dict[str, object]]:
    """Returns the payloads in delivery order, and their counts."""
    randomness = random.Random(seed)  # noqa: S311 - to be repeatable
    examples = fetch_examples()
    github = github_payloads(examples)
    stripe = list(stripe_payloads(randomness))
    payloads = [*github, *stripe]
    randomness.shuffle(payloads)
    counts: dict[str, object] = {
        "GitHub examples": len(examples),
        "of these distinct": len(github),
        "Stripe events": len(stripe),
    }
    return payloads[:limit], counts


def show(result: Result) -> None:
    """Prints the counts and the claims."""
    console = Console()
    table = Table(show_header=False, box=None)
    for name, number in result.counts.items():
        table.add_row(name, str(number))
    console.print(table)
    for claim in result.claims:
        console.print("ok    " if claim.holds else "FAILED", claim.text)


def options() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--own", action="store_true", help="start a temporary session")
    parser.add_argument("--chaos", action="store_true", help="inject faults; implies --own")
    parser.add_argument(
        "--outage", type=float, default=OUTAGE, help="downtime of the sink in seconds, at least 20"
    )
    parser.add_argument(
        "--state", type=Path, default=ROOT / ".local", help="state directory of the session"
    )
    parser.add_argument(
        "--secret",
        action="append",
        default=[],
        metavar="SOURCE=VALUE",
        help="a secret as passed to the session",
    )
    parser.add_argument("--events", type=int, help="maximum number of events")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--time", type=float, default=TIME, help="time limit in seconds")
    return parser.parse_args()


def main() -> int:
    """Runs and returns the exit status."""
    chosen = options()
    try:
        payloads, counts = collect(chosen.seed, chosen.events)
        given = dict(pair.split("=", 1) for pair in chosen.secret)
        session = (
            own(impatient=chosen.chaos)
            if chosen.own or chosen.chaos
            else contextlib.nullcontext(running(chosen.state, given))
        )
        with session as where:
            run = Run(where, payloads, seed=chosen.seed)
            run.result.counts |= counts
            end = time.monotonic() + chosen.time
            if chosen.chaos:
                run.chaotic(end=end, outage=chosen.outage)
            else:
                run.plain(end=end)
    except (UnreachableError, CommandError, ConfigurationError) as error:
        sys.stderr.write(f"real_input: {error}\n")
        return 1
    show(run.result)
    return 0 if run.result.holds else 1


if __name__ == "__main__":
    sys.exit(main())
