"""Valid and invalid results of a job."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook_inbox.handlers.completions.results import (
    BODY_LIMIT,
    Ending,
    TooLarge,
    Unreadable,
    read,
)
from webhook_inbox.handlers.effects.journal import decode

texts = st.text(st.characters(exclude_categories=["Cs"]))
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
results = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=20,
)


@given(results)
def test_every_json_is_a_result(result: Any) -> None:
    ending = read(json.dumps({"result": result}).encode())
    assert ending.result is not None
    assert decode(ending.result) == result
    assert ending == Ending.of(result)


def test_the_same_result_is_known_however_it_is_spelled() -> None:
    spellings = [
        b'{"result": {"a": 1, "b": [2]}}',
        b'{"result":{"b":[2],"a":1}}',
        '{"result": {"b": [2], "a": 1}}'.encode("utf-16"),
    ]
    assert len({read(spelling).digest for spelling in spellings}) == 1
    others = [b'{"result": {"a": 1}}', b'{"error": "a"}', b'{"error": "a", "retry": true}']
    assert len({read(other).digest for other in (*others, spellings[0])}) == 4


@pytest.mark.parametrize(
    ("body", "retry"),
    [
        (b'{"error": "out of paper"}', False),
        (b'{"error": "out of paper", "retry": false}', False),
        (b'{"error": "out of paper", "retry": true}', True),
    ],
)
def test_a_failure_says_why_and_whether_it_may_be_retried(body: bytes, retry: bool) -> None:
    ending = read(body)
    assert (ending.result, ending.error, ending.retry) == (None, "out of paper", retry)


def test_a_long_error_is_cut() -> None:
    ending = read(json.dumps({"error": "é" * 5000}).encode())
    assert len(ending.error.encode()) <= 1024


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no",
        b"\xff",
        b"null",
        b"[]",
        b"{}",
        b'"result"',
        b'{"result": 1, "error": "x"}',
        b'{"result": 1, "more": 2}',
        b'{"error": 1}',
        b'{"error": ""}',
        b'{"error": " "}',
        b'{"error": "x", "retry": "yes"}',
        b'{"error": "x", "retry": 1}',
        b'{"error": "x", "code": 1}',
        b'{"retry": true}',
        b'{"result": NaN}',
        b'{"result": Infinity}',
        b'{"result": 1e999}',
        b'{"result": "\\ud83d"}',
        b'{"result": ' + b"1" * 5000 + b"}",
        b'{"result": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_what_says_nothing_is_refused(body: bytes) -> None:
    with pytest.raises(Unreadable):
        read(body)


@given(st.binary())
def test_no_bytes_are_more_than_refused(body: bytes) -> None:
    try:
        read(body)
    except Unreadable:
        return


def test_so_much_is_kept_and_no_more() -> None:
    frame = len(b'{"result":""}')
    assert read(b'{"result":"' + b"x" * (BODY_LIMIT - frame) + b'"}').result is not None
    with pytest.raises(TooLarge):
        read(b'{"result":"' + b"x" * (BODY_LIMIT - frame + 1) + b'"}')
