"""Botocore's errors, and those of urllib3 below it, are told apart from all others."""

import pytest
from botocore import exceptions as boto
from urllib3.exceptions import ProtocolError

from tests.unit.adapters.aws.fake_client import refusal
from webhook_inbox.adapters.aws import sdk_errors

LINE = {"endpoint_url": "https://x", "error": "e"}


@pytest.mark.parametrize(
    ("error", "of_sdk", "of_line"),
    [
        (boto.ReadTimeoutError(**LINE), True, True),
        (boto.EndpointConnectionError(**LINE), True, True),
        (boto.SSLError(**LINE), True, True),
        (ProtocolError("broken"), True, True),
        (refusal("SlowDown", status=503), True, False),
        (boto.NoCredentialsError(), True, False),
        (boto.ParamValidationError(report="r"), True, False),
        (KeyError("a bug"), False, False),
        (TimeoutError(), False, False),
    ],
    ids=repr,
)
def test_an_error_is_of_the_sdk_or_of_the_connection(
    error: BaseException, *, of_sdk: bool, of_line: bool
) -> None:
    assert sdk_errors.is_error(error) is of_sdk
    assert sdk_errors.is_of_line(error) is of_line


def test_an_answer_is_read() -> None:
    error = refusal("C", status=503, message="m", Item={"pk": {"S": "a"}})
    answer = sdk_errors.answer_of(error)

    assert answer is not None
    assert (answer.code, str(answer), answer.status) == ("C", "C: m", 503)
    assert answer.item == {"pk": {"S": "a"}}


def test_an_answer_with_nothing_in_it_is_still_one() -> None:
    answer = sdk_errors.answer_of(boto.ClientError({}, "Operation"))

    assert answer is not None
    assert (answer.code, answer.status, answer.item) == ("unknown", 0, None)


@pytest.mark.parametrize("error", [None, boto.NoCredentialsError(), KeyError("a bug")])
def test_any_other_error_is_no_answer(error: BaseException | None) -> None:
    assert sdk_errors.answer_of(error) is None
