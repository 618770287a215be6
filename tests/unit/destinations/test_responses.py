"""The meaning of every status of an answer, and of a missing answer."""

from datetime import timedelta
from typing import Any

import pytest

from tests.unit.destinations.client.calling import NOW
from webhook_inbox.destinations.circuit import CallOutcome
from webhook_inbox.destinations.responses import (
    ResponseClass,
    ResponseVerdict,
    TransportFailure,
    classify,
    classify_no_response,
    says_key_used,
)
from webhook_inbox.domain.errors import Permanent, Transient
from webhook_inbox.domain.manifest import DestinationSpec

OK, TRANSIENT, PERMANENT = ResponseClass.OK, ResponseClass.TRANSIENT, ResponseClass.PERMANENT
STATUSES = range(100, 600)


def verdict(
    status: int,
    headers: dict[str, str] | None = None,
    *,
    keyed: bool = True,
    responses: dict[str, str] | None = None,
    **more: Any,
) -> ResponseVerdict:
    spec = DestinationSpec("crm", "https://crm.example", responses=responses or {}, **more)
    return classify(status, headers or {}, spec=spec, keyed=keyed, now=NOW)


def expected(status: int, *, keyed: bool) -> ResponseClass:
    """The matrix as it is promised, line by line."""
    if 200 <= status <= 299:
        return OK
    if status in {408, 425, 429} or status >= 500 or (status == 409 and keyed):
        return TRANSIENT
    return PERMANENT


@pytest.mark.parametrize("keyed", [True, False])
def test_every_status_means_what_the_matrix_says(keyed: bool) -> None:
    judged = {status: verdict(status, keyed=keyed) for status in STATUSES}

    assert {s: v.meaning for s, v in judged.items()} == {
        s: expected(s, keyed=keyed) for s in STATUSES
    }
    assert {s for s, v in judged.items() if v.page} == {401, 403}
    assert {s for s, v in judged.items() if v.refused} == {425, 429}
    assert {(v.retry_after, v.max_attempts) for v in judged.values()} == {(None, None)}


def test_every_status_but_a_failure_is_a_sign_of_life() -> None:
    answers = {status: verdict(status).answer for status in STATUSES}

    assert answers.pop(429) == CallOutcome.limited()
    assert {s for s, answer in answers.items() if answer == CallOutcome.failed()} == {
        *range(500, 600)
    }
    assert {s for s, answer in answers.items() if answer == CallOutcome.ok()} == {
        *range(100, 500)
    } - {429}


@pytest.mark.parametrize(
    ("status", "meaning"),
    [
        (302, PERMANENT),
        (400, PERMANENT),
        (404, PERMANENT),
        (410, PERMANENT),
        (422, PERMANENT),
        (401, PERMANENT),
        (403, PERMANENT),
        (408, TRANSIENT),
        (425, TRANSIENT),
        (429, TRANSIENT),
        (500, TRANSIENT),
        (503, TRANSIENT),
        (599, TRANSIENT),
    ],
)
def test_the_named_statuses_are_as_they_are_named(status: int, meaning: ResponseClass) -> None:
    assert verdict(status).meaning is meaning


@pytest.mark.parametrize("word", list(ResponseClass))
def test_any_status_may_mean_something_else(word: ResponseClass) -> None:
    judged = [verdict(status, responses={str(status): word}) for status in STATUSES]

    assert {v.meaning for v in judged} == {word}
    assert not any(v.page for v in judged)
    assert any(v.refused for v in judged) is (word is TRANSIENT)


def test_a_class_of_statuses_is_overridden_at_once_and_one_of_them_again() -> None:
    responses = {"5xx": "permanent", "503": "transient", "4xx": "ok"}

    assert [verdict(s, responses=responses).meaning for s in (500, 503, 418, 302)] == [
        PERMANENT,
        TRANSIENT,
        OK,
        PERMANENT,
    ]


def test_a_refusal_that_may_pass_leaves_nothing_in_doubt() -> None:
    """A destination without keys can be asked again after a 404, 423 or 477 that will pass."""
    responses = {"4xx": "transient"}
    refused = {s: verdict(s, responses=responses).refused for s in (404, 423, 477, 408, 409)}

    assert refused == {404: True, 423: True, 477: True, 408: False, 409: False}


def test_a_failure_that_is_an_answer_here_is_a_sign_of_life() -> None:
    assert verdict(500, responses={"500": "permanent"}).answer == CallOutcome.ok()
    assert verdict(500, responses={"5xx": "ok"}).answer == CallOutcome.ok()


def test_a_limit_is_one_whatever_it_means_for_the_run() -> None:
    headers = {"retry-after": "30"}

    judged = verdict(429, headers, responses={"429": "permanent"})

    assert judged.answer == CallOutcome.limited(timedelta(seconds=30))
    assert judged.retry_after is None


def test_a_destination_that_is_unavailable_for_a_while_fails_and_asks_for_a_pause() -> None:
    assert verdict(503).answer == CallOutcome.failed()
    assert verdict(503, {"retry-after": "9"}).answer == CallOutcome.failed(timedelta(seconds=9))
    assert verdict(500, {"retry-after": "9"}).answer == CallOutcome.failed()


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 503])
def test_whatever_passes_tells_when(status: int) -> None:
    assert verdict(status, {"retry-after": "30"}).retry_after == timedelta(seconds=30)


@pytest.mark.parametrize("status", [200, 301, 403, 422])
def test_what_does_not_pass_does_not_tell_when(status: int) -> None:
    assert verdict(status, {"retry-after": "30"}).retry_after is None


def test_numbers_are_milliseconds_where_the_destination_counts_so() -> None:
    judged = verdict(429, {"retry-after": "1500"}, retry_after="milliseconds")

    assert judged.retry_after == timedelta(seconds=1.5)


@pytest.mark.parametrize(
    ("failure", "refused"),
    [
        (TransportFailure.DNS, True),
        (TransportFailure.UNREACHED, True),
        (TransportFailure.TLS, True),
        (TransportFailure.TIMED_OUT, False),
        (TransportFailure.CUT, False),
    ],
)
def test_silence_is_transient_and_certain_only_where_nothing_was_sent(
    failure: TransportFailure, refused: bool
) -> None:
    judged = classify_no_response(failure)

    assert (judged.meaning, judged.refused) == (TRANSIENT, refused)
    assert judged.answer == CallOutcome.failed()


def test_every_transport_failure_is_classified() -> None:
    assert {
        failure: classify_no_response(failure).meaning for failure in TransportFailure
    } == dict.fromkeys(TransportFailure, TRANSIENT)


def test_a_name_that_cannot_be_resolved_is_given_up_soon_and_paged() -> None:
    error = classify_no_response(TransportFailure.DNS).error("crm: POST /notes: no such name")

    assert isinstance(error, Transient)
    assert (error.max_attempts, error.page, error.refused) == (3, True, True)
    assert [
        classify_no_response(t).max_attempts
        for t in TransportFailure
        if t is not TransportFailure.DNS
    ] == [None] * 4


def test_a_verdict_becomes_the_error_that_says_what_happens_next() -> None:
    limited = verdict(429, {"retry-after": "5"}).error("crm: GET /: 429")
    forbidden = verdict(403).error("crm: GET /: 403")
    failing = verdict(500).error("crm: GET /: 500")

    assert isinstance(limited, Transient)
    assert (str(limited), limited.retry_after, limited.refused) == (
        "crm: GET /: 429",
        timedelta(seconds=5),
        True,
    )
    assert isinstance(forbidden, Permanent)
    assert forbidden.page
    assert isinstance(failing, Transient)
    assert not failing.refused
    assert not failing.page


# -- what it says of the effect


@pytest.mark.parametrize("keyed", [True, False])
def test_only_a_rejection_says_that_nothing_was_done(keyed: bool) -> None:
    doubtful = {s for s in STATUSES if verdict(s, keyed=keyed).doubtful}

    assert doubtful == {*range(100, 200), *range(300, 400)}


@pytest.mark.parametrize("keyed", [True, False])
def test_a_class_that_inbox_toml_gives_does_not_say_so_either(keyed: bool) -> None:
    responses = dict.fromkeys(("3xx", "4xx", "5xx"), "permanent")
    doubtful = {s for s in STATUSES if verdict(s, keyed=keyed, responses=responses).doubtful}

    assert doubtful == {*range(100, 200), *range(300, 400), 408, *range(500, 600)} | (
        {409} if keyed else set()
    )


def test_a_call_that_changes_nothing_leaves_no_doubt() -> None:
    spec = DestinationSpec("crm", "https://crm.example")

    judged = [classify(s, {}, spec=spec, keyed=False, now=NOW, safe=True) for s in STATUSES]

    assert not any(each.doubtful for each in judged)


@pytest.mark.parametrize(
    "body",
    [
        '{"error": {"type": "idempotency_error"}}',
        '{"errors": [{"code": "IDEMPOTENCY_KEY_REUSED"}]}',
        '{"title": "Idempotency-Key is already used"}',
        '{"title": "A request is outstanding for this Idempotency-Key"}',
        '{"message": "Keys for idempotent requests can only be used with the same parameters"}',
        '{"error": {"errors": [{"reason": "idempotent_creation_conflict"}]}}',
        '{"name": "DUPLICATE_REQUEST_ID"}',
        '{"error": "this key was used with another request"}',
        '{"error": "the key is already in use"}',
    ],
)
def test_an_answer_that_the_key_was_used_is_recognised(body: str) -> None:
    assert says_key_used(body)
    rejected, passing = verdict(422), verdict(422, responses={"422": "transient"})
    assert getattr(rejected.error("no", key_used=True), "doubtful", None) is True
    assert passing.refused
    assert passing.error("no", key_used=True).refused is False


@pytest.mark.parametrize(
    "body",
    [
        "",
        "no such order",
        '{"error": "amount: keyed twice"}',
        '{"error": "no such order", "idempotency_key": "note:shop.fulfil:shop:evt-1"}',
        '{"title": "Idempotency-Key is missing"}',
    ],
)
def test_any_other_answer_does_not_say_that_the_key_was_used(body: str) -> None:
    assert not says_key_used(body)
