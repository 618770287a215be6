"""The table's requests, where no backend shows them or can be made to answer so."""

from typing import Any

import pytest

from tests.unit.adapters.aws.fake_client import FakeClient, refusal
from webhook_inbox.adapters.aws.dynamodb import PATIENT_ROUNDS, DynamoTable
from webhook_inbox.domain.conditions import Absent
from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.ports import Change, Key

KEY = Key("a", "b")
WIRE_KEY = {"pk": {"S": "a"}, "sk": {"S": "b"}}


def table(client: FakeClient, slept: list[float] | None = None) -> DynamoTable:
    return DynamoTable(client, "ledger", sleep=(slept if slept is not None else []).append)


def batch(*numbers: int, unprocessed: tuple[int, ...] = ()) -> dict[str, Any]:
    keys = [{"pk": {"S": str(n)}, "sk": {"S": "x"}} for n in unprocessed]
    return {
        "Responses": {"ledger": [{"pk": {"S": str(n)}, "sk": {"S": "x"}} for n in numbers]},
        "UnprocessedKeys": {"ledger": {"Keys": keys}} if keys else {},
    }


def keys(amount: int) -> list[Key]:
    return [Key(str(number), "x") for number in range(amount)]


def test_a_conditional_write_asks_for_the_row_in_the_way() -> None:
    client = FakeClient({}, {"Attributes": WIRE_KEY})
    table(client).put({"pk": "a", "sk": "b"}, when=Absent("pk"))
    table(client).update(KEY, Change(set={"n": 1}), when=Absent("pk"))

    assert [method for method, _ in client.calls] == ["put_item", "update_item"]
    for _, parameters in client.calls:
        assert parameters["ReturnValuesOnConditionCheckFailure"] == "ALL_OLD"
        assert parameters["TableName"] == "ledger"
    assert client.calls[1][1]["ReturnValues"] == "ALL_NEW"


def test_an_unconditional_put_has_no_expression() -> None:
    client = FakeClient({})
    table(client).put({"pk": "a", "sk": "b", "n": 1})

    assert client.calls == [
        ("put_item", {"TableName": "ledger", "Item": {**WIRE_KEY, "n": {"N": "1"}}})
    ]


def test_the_row_in_the_way_is_read_and_the_cause_is_kept() -> None:
    client = FakeClient(refusal("ConditionalCheckFailedException", Item={"n": {"N": "7"}}))

    with pytest.raises(ConditionFailed) as failed:
        table(client).put({"pk": "a", "sk": "b"}, when=Absent("pk"))

    assert failed.value.old == {"n": 7}
    assert failed.value.__cause__ is not None


def test_a_throttled_write_is_unavailable() -> None:
    client = FakeClient(refusal("ProvisionedThroughputExceededException"))

    with pytest.raises(Unavailable, match="dynamodb UpdateItem: Provisioned"):
        table(client).update(KEY, Change(set={"n": 1}))


def test_keys_are_asked_for_by_the_hundred_and_once_each() -> None:
    client = FakeClient(batch(), batch(), batch())

    table(client).get_many([*keys(250), *keys(250)])

    sizes = [len(p["RequestItems"]["ledger"]["Keys"]) for _, p in client.calls]
    assert sizes == [100, 100, 50]


def test_unprocessed_keys_are_asked_for_again() -> None:
    slept: list[float] = []
    client = FakeClient(batch(0, unprocessed=(1, 2)), batch(unprocessed=(1, 2)), batch(1, 2))

    found = table(client, slept).get_many(keys(3))

    assert [row["pk"] for row in found] == ["0", "1", "2"]
    assert len(client.calls) == 3
    assert len(slept) == 1  # the first answer made progress; only the second was a refusal


def test_keys_that_stay_unprocessed_are_given_up() -> None:
    slept: list[float] = []
    client = FakeClient(*[batch(unprocessed=(0,))] * (PATIENT_ROUNDS + 1))

    with pytest.raises(Unavailable, match="unprocessed"):
        table(client, slept).get_many(keys(1))

    assert slept == sorted(slept)
    assert len(slept) == PATIENT_ROUNDS
    assert sum(slept) < 4


def test_a_query_follows_its_pages_even_empty_ones() -> None:
    client = FakeClient(
        {"Items": [{"n": {"N": "1"}}], "LastEvaluatedKey": WIRE_KEY},
        {"Items": [], "LastEvaluatedKey": WIRE_KEY},
        {"Items": [{"n": {"N": "2"}}]},
    )

    found = list(table(client).query("a", sk_prefix="run#", consistent=False))

    assert found == [{"n": 1}, {"n": 2}]
    assert [p.get("ExclusiveStartKey") for _, p in client.calls] == [None, WIRE_KEY, WIRE_KEY]
    assert all(p["ConsistentRead"] is False for _, p in client.calls)


def test_a_page_that_fails_fails_the_query() -> None:
    client = FakeClient(
        {"Items": [{"n": {"N": "1"}}], "LastEvaluatedKey": WIRE_KEY},
        refusal("InternalServerError", status=500),
    )
    rows = table(client).query("a")

    assert next(rows) == {"n": 1}
    with pytest.raises(Unavailable):
        next(rows)


def test_reads_are_consistent_unless_told_otherwise() -> None:
    client = FakeClient({}, {}, {"Items": []})
    table(client).get(KEY)
    table(client).get(KEY, consistent=False)
    list(table(client).query("a"))

    assert [p["ConsistentRead"] for _, p in client.calls] == [True, False, True]


def test_an_index_that_no_ledger_has_is_an_error_of_the_code() -> None:
    with pytest.raises(KeyError):
        table(FakeClient()).query_index("by_colour", "x", low=0, high=1)
