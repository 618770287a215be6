"""Counts and checks the rows of the ledger and the effects at the sink."""

import json
import urllib.request
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final

from scripts.realinput.payloads import Payload
from webhook_inbox.adapters.aws.dynamodb import DynamoTable
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.model import Overview, Run, Status
from webhook_inbox.ledger.queries import Ledger

# Source, event id and handler, as in the idempotency keys of the example handlers.
RunName = tuple[str, str, str]
# The prefix of the idempotency key of an order; the invoice id follows.
ORDER: Final = "create-order:invoice:in_"


@dataclass(frozen=True, slots=True)
class Expected:
    """The events to be stored, by (source, id), and their runs, as the manifest declares."""

    stored: Mapping[tuple[str, str], Payload]
    runs: frozenset[RunName]

    @classmethod
    def of(cls, payloads: Iterable[Payload], manifest: Manifest) -> "Expected":
        """Returns the stored events and the runs that the manifest declares for the payloads."""
        stored = {
            (payload.source, payload.event_id): payload
            for payload in payloads
            if manifest.wants(manifest.sources[payload.source], payload.type)
        }
        runs = frozenset(
            (payload.source, payload.event_id, spec.name)
            for payload in stored.values()
            for spec in manifest.runs_for(payload.source, payload.type)
        )
        return cls(stored, runs)


class Observer:
    """Reads the ledger and the sink."""

    def __init__(self, expected: Expected, *, client: Any, table: str, sink: str) -> None:
        """Takes a DynamoDB client, the table's name and the sink's address."""
        self.expected = expected
        self._client = client
        self._table = table
        self._sink = sink
        self._unsettled = set(expected.stored)
        self._found: dict[tuple[str, str], Overview] = {}

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger."""
        return Ledger(table=DynamoTable(self._client, self._table))

    def settled(self) -> bool:
        """Returns whether every run has ended; reads only the events that had not."""
        for key in sorted(self._unsettled):
            overview = self.ledger.overview(*key, now=datetime.now(UTC))
            if overview is not None:
                self._found[key] = overview
                if overview.status in {"done", "skipped"} or _given_up(overview):
                    self._unsettled.discard(key)
        return not self._unsettled

    def refresh_dead(self) -> None:
        """Marks events with dead runs to be read again, after a replay."""
        self._unsettled |= {key for key, found in self._found.items() if _given_up(found)}

    @property
    def runs(self) -> list[Run]:
        """Every run, as last read."""
        return [run for overview in self._found.values() for run in overview.runs]

    @property
    def dead(self) -> list[Run]:
        """The dead runs."""
        return [run for run in self.runs if run.status is Status.DEAD_LETTER]

    def event_rows(self) -> Counter[tuple[str, str]]:
        """Counts the table's event rows of the two sources, by (source, id)."""
        pages = self._client.get_paginator("scan").paginate(
            TableName=self._table,
            FilterExpression="sk = :event",
            ExpressionAttributeValues={":event": {"S": "event"}},
            ProjectionExpression="pk",
        )
        keys = [item["pk"]["S"].split("#", 2)[1:] for page in pages for item in page["Items"]]
        return Counter((source, id_) for source, id_ in keys if source in {"github", "stripe"})

    def effects(self) -> dict[RunName, list[dict[str, Any]]]:
        """Returns the effects at the sink by the run in their idempotency key.

        The key of an order contains the invoice id, from which the event id is derived.
        """
        with urllib.request.urlopen(f"{self._sink}/effects", timeout=30) as answer:  # noqa: S310
            listed: dict[str, dict[str, Any]] = json.load(answer)
        found: dict[RunName, list[dict[str, Any]]] = {}
        for key, effect in listed.items():
            parts = key.split(":", 3)
            if key.startswith(ORDER):
                run = ("stripe", f"evt_{key.removeprefix(ORDER)}", "stripe.fulfil")
                found.setdefault(run, []).append(effect)
            elif len(parts) == 4:  # the key of an example handler
                _, handler, source, event_id = parts
                found.setdefault((source, event_id, handler), []).append(effect)
        return found


def _given_up(overview: Overview) -> bool:
    open_ = [run for run in overview.runs if run.status is not Status.DONE]
    begun = {run.handler for run in overview.runs} == set(overview.event.runs)
    return begun and all(run.status is Status.DEAD_LETTER for run in open_) and bool(open_)


@dataclass(frozen=True, slots=True)
class Claim:
    """A condition and whether it holds."""

    text: str
    holds: bool


def claims(observer: Observer, answers: Mapping[str, Counter[str]], *, alone: bool) -> list[Claim]:
    """Returns the claims of every run: each event stored once, done once, one effect each.

    `alone` is true if the inbox has received no other deliveries.
    """
    expected, rows = observer.expected, observer.event_rows()
    runs = {(run.source, run.event_id, run.handler): run for run in observer.runs}
    effects = {
        name: found
        for name, found in observer.effects().items()
        if (name[0], name[1]) in expected.stored
    }
    return [
        Claim("every delivery was answered with 2xx", _all_taken(answers.values())),
        Claim(
            "no event was accepted twice",
            all(counts["accepted"] <= 1 for counts in answers.values()),
        ),
        Claim(
            "one event row each",
            [rows[key] for key in expected.stored] == [1] * len(expected.stored),
        ),
        Claim("no other event row", not alone or rows.keys() == expected.stored.keys()),
        Claim("one run for each handler, and no other", runs.keys() == expected.runs),
        Claim("every run is done", {run.status for run in runs.values()} == {Status.DONE}),
        Claim("one sink effect for each run, and no other", _one_each(effects, expected.runs)),
    ]


def _all_taken(counts: Iterable[Counter[str]]) -> bool:
    return all(word and not word.isdigit() for each in counts for word in each)


def _one_each(
    effects: Mapping[RunName, Sequence[Mapping[str, Any]]], runs: frozenset[RunName]
) -> bool:
    return effects.keys() == runs and all(len(found) == 1 for found in effects.values())
