"""The ledger's table in DynamoDB."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from webhook_inbox.adapters.aws import errors
from webhook_inbox.adapters.aws.dynamodb_expressions import (
    Expressions,
    row_from_wire,
    row_to_wire,
    to_wire,
)
from webhook_inbox.domain.conditions import Condition
from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.ports import Change, Item, Key, Page
from webhook_inbox.domain.quotas import GET_BATCH

# How often BatchGetItem is asked again for keys of which it returned none.
PATIENT_ROUNDS: Final = 5

# The key attributes of the indexes, partition and sort, which `stacks/ledger.py` declares.
INDEX_KEYS: Final = {
    "by_received": ("received_bucket", "received_at"),
    "by_due": ("due_bucket", "due_at"),
}


class DynamoTable:
    """The port `Table` over one table.

    Args:
        client: a low-level DynamoDB client.
        name: the table's name.
        call: how calls are made; `calls.once`, or `clients.quick_caller`.
        sleep: waits so many seconds.
    """

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

    def get_many(self, keys: Sequence[Key]) -> list[Item]:
        """See the port."""
        unique = list(dict.fromkeys(keys))
        return [
            row_from_wire(wire)
            for start in range(0, len(unique), GET_BATCH)
            for wire in self._get_batch(unique[start : start + GET_BATCH])
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

    def query(self, pk: str, *, sk_prefix: str = "", consistent: bool = True) -> Iterator[Item]:
        """See the port."""
        expressions = Expressions()
        keys = f"{expressions.name('pk')} = {expressions.value(pk)}"
        if sk_prefix:
            prefix = expressions.value(sk_prefix)
            keys += f" AND begins_with({expressions.name('sk')}, {prefix})"
        parameters = {
            "KeyConditionExpression": keys,
            "ConsistentRead": consistent,
            **expressions.parameters,
        }
        while True:
            answer = self._ask("Query", **parameters)
            yield from map(row_from_wire, answer["Items"])
            if not answer.get("LastEvaluatedKey"):
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
        self,
        operation: str,
        expressions: Expressions,
        when: Condition | None,
        **parameters: Any,
    ) -> Any:
        if when is not None:
            parameters["ConditionExpression"] = expressions.condition(when)
            parameters["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        try:
            return self._ask(operation, **parameters, **expressions.parameters)
        except ConditionFailed as error:
            old = None if error.old is None else row_from_wire(error.old)
            raise ConditionFailed(old) from error

    def _get_batch(self, keys: Sequence[Key]) -> Iterator[Any]:
        waiting = [_wire_key(key) for key in keys]
        fruitless = 0
        while waiting:
            answer = self._batch_get(waiting)
            found = answer["Responses"].get(self._name, [])
            yield from found
            waiting = answer.get("UnprocessedKeys", {}).get(self._name, {}).get("Keys", [])
            # An answer ends at 16 MB: that is progress. One without rows is throttling.
            fruitless = 0 if found else fruitless + 1
            if waiting and fruitless > PATIENT_ROUNDS:
                raise Unavailable("dynamodb", "BatchGetItem", "keys stay unprocessed")
            if waiting and fruitless:
                self._sleep(0.05 * 2**fruitless)

    def _batch_get(self, keys: list[Any]) -> Any:
        return self._call(
            "dynamodb",
            "BatchGetItem",
            lambda: self._client.batch_get_item(RequestItems={self._name: {"Keys": keys}}),
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
