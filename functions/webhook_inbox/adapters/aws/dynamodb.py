"""The ledger's table in DynamoDB."""

import time
from binascii import a2b_base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from webhook_inbox.adapters.aws import errors
from webhook_inbox.domain.conditions import (
    Absent,
    Condition,
    Either,
    Equals,
    Every,
    Less,
    OneOf,
    Present,
)
from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.ports import Change, Item, Key, Page
from webhook_inbox.domain.quotas import GET_BATCH, check_name, check_number, text_size

# The retries of BatchGetItem while it returns no row.
PATIENT_ROUNDS: Final = 5

# The key attributes of the indexes, partition and sort, which `stacks/ledger.py` declares.
INDEX_KEYS: Final = {
    "by_received": ("received_bucket", "received_at"),
    "by_due": ("due_bucket", "due_at"),
}
# A value in DynamoDB's notation: {"S": "text"}, {"N": "1"}, …
Wire = dict[str, Any]


class DynamoTable:
    """The port `Table` over one table."""

    def __init__(
        self,
        client: Any,
        name: str,
        *,
        call: errors.Caller = errors.once,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._name = name
        self._call = call
        self._sleep = sleep

    def get(self, key: Key, *, consistent: bool = True) -> Item | None:
        """See the port."""
        answer = self._ask("GetItem", Key=_wire_key(key), ConsistentRead=consistent)
        return row_from_wire(answer["Item"]) if "Item" in answer else None

    def get_many(self, keys: Sequence[Key], *, only: Sequence[str] = ()) -> list[Item]:
        """See the port."""
        unique = list(dict.fromkeys(keys))
        return [
            row_from_wire(wire)
            for start in range(0, len(unique), GET_BATCH)
            for wire in self._get_batch(unique[start : start + GET_BATCH], only)
        ]

    def put(self, item: Item, *, when: Condition | None = None) -> None:
        """See the port."""
        self._write("PutItem", Expressions(), when, Item=row_to_wire(item))

    def update(self, key: Key, change: Change, *, when: Condition | None = None) -> Item:
        """See the port."""
        expressions = Expressions()
        parameters = {"Key": _wire_key(key), "ReturnValues": "ALL_NEW"}
        if update := expressions.update(change):
            parameters["UpdateExpression"] = update
        answer = self._write("UpdateItem", expressions, when, **parameters)
        return row_from_wire(answer["Attributes"])

    def delete(self, key: Key) -> None:
        """See the port."""
        self._ask("DeleteItem", Key=_wire_key(key))

    def query(
        self,
        pk: str,
        *,
        sk_prefix: str = "",
        consistent: bool = True,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[Item]:
        """See the port."""
        expressions = Expressions()
        keys = f"{expressions.name('pk')} = {expressions.value(pk)}"
        if sk_prefix:
            prefix = expressions.value(sk_prefix)
            keys += f" AND begins_with({expressions.name('sk')}, {prefix})"
        parameters = {
            "KeyConditionExpression": keys,
            "ConsistentRead": consistent,
            "ScanIndexForward": not newest_first,
            **expressions.parameters,
        }
        left = limit
        while True:
            if left is not None:
                parameters["Limit"] = left
            answer = self._ask("Query", **parameters)
            yield from map(row_from_wire, answer["Items"])
            left = None if left is None else left - len(answer["Items"])
            if left == 0 or not answer.get("LastEvaluatedKey"):
                return
            parameters["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def query_index(
        self,
        index: str,
        value: str,
        *,
        low: int,
        high: int,
        newest_first: bool = False,
        limit: int | None = None,
        start: Mapping[str, Any] | None = None,
    ) -> Page:
        """See the port."""
        expressions = Expressions()
        partition, sort = map(expressions.name, INDEX_KEYS[index])
        bounds = f"{expressions.value(low)} AND {expressions.value(high)}"
        answer = self._ask(
            "Query",
            IndexName=index,
            KeyConditionExpression=f"{partition} = {expressions.value(value)}"
            f" AND {sort} BETWEEN {bounds}",
            ScanIndexForward=not newest_first,
            **expressions.parameters,
            **({"Limit": limit} if limit is not None else {}),
            **({"ExclusiveStartKey": row_to_wire(start)} if start is not None else {}),
        )
        last = answer.get("LastEvaluatedKey")
        items = [row_from_wire(wire) for wire in answer["Items"]]
        return Page(items, row_from_wire(last) if last else None)

    def _write(
        self, operation: str, expressions: "Expressions", when: Condition | None, **parameters: Any
    ) -> Any:
        if when is not None:
            parameters["ConditionExpression"] = expressions.condition(when)
            parameters["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        try:
            return self._ask(operation, **parameters, **expressions.parameters)
        except ConditionFailed as error:
            old = None if error.old is None else row_from_wire(error.old)
            raise ConditionFailed(old) from error

    def _get_batch(self, keys: Sequence[Key], only: Sequence[str]) -> Iterator[Any]:
        waiting = [_wire_key(key) for key in keys]
        fruitless = 0
        while waiting:
            answer = self._batch_get(waiting, only)
            found = answer["Responses"].get(self._name, [])
            yield from found
            waiting = answer.get("UnprocessedKeys", {}).get(self._name, {}).get("Keys", [])
            # A response ends at 16 MB; one without rows is throttled.
            fruitless = 0 if found else fruitless + 1
            if waiting and fruitless > PATIENT_ROUNDS:
                raise Unavailable("dynamodb", "BatchGetItem", "keys stay unprocessed")
            if waiting and fruitless:
                self._sleep(0.05 * 2**fruitless)

    def _batch_get(self, keys: list[Any], only: Sequence[str]) -> Any:
        wanted: dict[str, Any] = {"Keys": keys}
        if only:
            expressions = Expressions()
            wanted["ProjectionExpression"] = ", ".join(map(expressions.name, only))
            wanted |= expressions.parameters
        return self._call(
            "dynamodb",
            "BatchGetItem",
            lambda: self._client.batch_get_item(RequestItems={self._name: wanted}),
        )

    def _ask(self, operation: str, **parameters: Any) -> Any:
        method = getattr(self._client, _METHODS[operation])
        return self._call("dynamodb", operation, lambda: method(TableName=self._name, **parameters))


_METHODS: Final = {
    "GetItem": "get_item",
    "PutItem": "put_item",
    "UpdateItem": "update_item",
    "DeleteItem": "delete_item",
    "Query": "query",
}


def _wire_key(key: Key) -> dict[str, Any]:
    return {"pk": to_wire(key.pk), "sk": to_wire(key.sk)}


def to_wire(value: Any) -> Wire:
    """Returns a value in DynamoDB's notation.

    Raises:
        TypeError: it is none of str, int, bool, bytes, list and dict.
        ValueError: a text is not Unicode, a number is too large, an attribute has no name.
    """
    match value:
        case str():
            text_size(value)  # rejects lone surrogates, as AWS does
            return {"S": value}
        case bool():
            return {"BOOL": value}
        case int():
            return {"N": str(check_number(value))}
        case bytes():
            return {"B": value}
        case list():
            return {"L": [to_wire(entry) for entry in value]}
        case dict():
            return {"M": row_to_wire(value)}
        case _:
            raise TypeError(f"a row cannot hold {type(value).__name__}")


def row_to_wire(row: Mapping[str, Any]) -> dict[str, Wire]:
    """Returns a row, or a part of one, in DynamoDB's notation; raises as `to_wire`."""
    return {check_name(name): to_wire(value) for name, value in row.items()}


def from_wire(wire: Wire) -> Any:
    """Returns the value of DynamoDB's notation.

    Raises:
        TypeError: a type that the inbox does not write.
    """
    [(kind, value)] = wire.items()
    match kind:
        case "S" | "BOOL":
            return value
        case "B":
            # Ingest's client leaves base64, as it is in JSON.
            return value if isinstance(value, bytes) else a2b_base64(value)
        case "N":
            return int(value)
        case "L":
            return [from_wire(entry) for entry in value]
        case "M":
            return row_from_wire(value)
        case _:
            raise TypeError(f"a row holds a DynamoDB {kind}, which the inbox does not write")


def row_from_wire(wire: Mapping[str, Wire]) -> Item:
    """Returns the row of DynamoDB's notation."""
    return {name: from_wire(value) for name, value in wire.items()}


_WORDS: Final[Mapping[type[Condition], str]] = {
    Absent: "attribute_not_exists",
    Present: "attribute_exists",
    Equals: "=",
    Less: "<",
    Every: "AND",
    Either: "OR",
}


class Expressions:
    """Renders the expressions of one request, with shared placeholders.

    Every name gets a placeholder, since DynamoDB has 573 reserved words.
    """

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: dict[str, Wire] = {}

    @property
    def parameters(self) -> dict[str, Any]:
        """The request's placeholder parameters; DynamoDB rejects empty ones."""
        parameters: dict[str, Any] = {}
        if self._names:
            parameters["ExpressionAttributeNames"] = {p: n for n, p in self._names.items()}
        if self._values:
            parameters["ExpressionAttributeValues"] = self._values
        return parameters

    def name(self, attribute: str) -> str:
        """Returns the placeholder of an attribute's name."""
        return self._names.setdefault(attribute, f"#{len(self._names)}")

    def value(self, value: Any) -> str:
        """Returns the placeholder of a value."""
        placeholder = f":{len(self._values)}"
        self._values[placeholder] = to_wire(value)
        return placeholder

    def condition(self, condition: Condition) -> str:
        """Returns a ConditionExpression."""
        match condition:
            case Absent(name) | Present(name):
                return f"{_WORDS[type(condition)]}({self.name(name)})"
            case Equals(name, value) | Less(name, value):
                return f"{self.name(name)} {_WORDS[type(condition)]} {self.value(value)}"
            case OneOf(name, values):
                return f"{self.name(name)} IN ({', '.join(map(self.value, values))})"
            case Every(()) | Either(()):
                raise ValueError("a condition joins no clauses")
            case Every(clauses) | Either(clauses):
                parts = map(self._clause if len(clauses) > 1 else self.condition, clauses)
                return f" {_WORDS[type(condition)]} ".join(parts)

    def _clause(self, condition: Condition) -> str:
        text = self.condition(condition)
        # DynamoDB rejects redundant parentheses.
        return f"({text})" if _joins(condition) else text

    def update(self, change: Change) -> str:
        """Returns an UpdateExpression; empty for an empty change."""
        clauses = {
            "SET": [*self._assignments(change)],
            "ADD": [f"{self.name(n)} {self.value(v)}" for n, v in change.add.items()],
            "REMOVE": [self.name(n) for n in change.remove],
        }
        return " ".join(f"{word} {', '.join(parts)}" for word, parts in clauses.items() if parts)

    def _assignments(self, change: Change) -> Iterator[str]:
        for attribute, value in change.set.items():
            yield f"{self.name(attribute)} = {self.value(value)}"
        for attribute, value in change.default.items():
            name = self.name(attribute)
            yield f"{name} = if_not_exists({name}, {self.value(value)})"


def _joins(condition: Condition) -> bool:
    match condition:
        case Every(clauses) | Either(clauses):
            return len(clauses) > 1 or _joins(clauses[0])
        case _:
            return False
