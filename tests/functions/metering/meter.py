"""Counts the calls of the functions at the HTTP layer, and the units that AWS bills for them."""

from base64 import b64decode
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

from tests.functions.metering.recorder import Exchange, Forward
from tests.functions.metering.units import TABLE, read_units, sqs_requests, write_units
from webhook_inbox.adapters.aws.dynamodb import row_from_wire
from webhook_inbox.domain.ports import Item
from webhookctl.cost.units import Step

WRITES: Final = frozenset({"DeleteItem", "PutItem", "UpdateItem"})


@dataclass
class _Bill:
    """The calls since the last look, and their units."""

    calls: list[str] = field(default_factory=list)
    writes: Counter[str] = field(default_factory=Counter)
    reads: float = 0.0
    sqs: int = 0


class Meter:
    """A `recorder.Watch`; `client` reads the rows that are billed, past the recorder."""

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table
        self._lock = Lock()
        self._bill = _Bill()

    def take(self) -> Step:
        """Returns what was counted since the last call."""
        with self._lock:
            bill, self._bill = self._bill, _Bill()
        return Step(
            calls=tuple(bill.calls),
            writes=bill.writes[TABLE],
            index_writes=bill.writes.total() - bill.writes[TABLE],
            reads=bill.reads,
            sqs=bill.sqs,
        )

    def __call__(self, asked: Exchange, forward: Forward) -> Exchange:
        """Counts one call."""
        # One at a time, so that no row changes between the looks at it.
        with self._lock:
            self._bill.calls.append(asked.name)
            written = asked.service == "dynamodb" and asked.operation in WRITES
            before = self._row(_key(asked)) if written else None
            done = forward()
            if written:
                item = asked.parameters.get("Item")
                tried = None if item is None else row_from_wire(_decoded(item))
                self._bill.writes += write_units(before, self._row(_key(asked)), tried)
            elif done.name.startswith("dynamodb"):
                self._bill.reads += self._reads(done)
            elif done.name.startswith("sqs"):
                self._bill.sqs += sqs_requests(_bodies(done))
            return done

    def _reads(self, done: Exchange) -> float:
        assert done.status == 200, done.answer
        asked, result = done.parameters, done.result
        if done.operation == "BatchGetItem":
            wanted = asked["RequestItems"][self._table]
            consistent = wanted.get("ConsistentRead", False)
            # Each row by itself, and whole, whatever is projected of it.
            found = [self._row(key) or {} for key in wanted["Keys"]]
            return sum(read_units([row], consistent=consistent) for row in found)
        wires = result["Items"] if "Items" in result else [result.get("Item", {})]
        rows = [row_from_wire(_decoded(wire)) for wire in wires]
        return read_units(rows, consistent=asked.get("ConsistentRead", False))

    def _row(self, key: Mapping[str, Any]) -> Item | None:
        answer = self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True)
        return row_from_wire(answer["Item"]) if "Item" in answer else None


def _key(asked: Exchange) -> dict[str, Any]:
    parameters = asked.parameters
    row = parameters.get("Key") or parameters["Item"]
    return {name: row[name] for name in ("pk", "sk")}


def _decoded(wire: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a row of a JSON document with its binary values as bytes."""
    return {name: _value(value) for name, value in wire.items()}


def _value(wire: dict[str, Any]) -> dict[str, Any]:
    match wire:
        case {"B": text}:
            return {"B": b64decode(text)}
        case {"L": entries}:
            return {"L": [_value(entry) for entry in entries]}
        case {"M": members}:
            return {"M": _decoded(members)}
        case _:
            return wire


def _bodies(done: Exchange) -> Iterator[str]:
    """Yields the bodies of the messages that a request sends or receives."""
    for entry in done.parameters.get("Entries", ()):
        yield entry.get("MessageBody", "")
    for message in done.result.get("Messages", ()) if done.answer else ():
        yield message["Body"]
