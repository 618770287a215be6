"""The errors of the SDK and of ingest's own clients become ours, in one place."""

import ssl
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from botocore import exceptions as boto
from urllib3.exceptions import ProtocolError

from tests.unit.adapters.aws.fake_client import refusal
from webhook_inbox.adapters.aws import errors
from webhook_inbox.adapters.aws.connection import BadReply
from webhook_inbox.domain.errors import ConditionFailed, Unavailable

LINE = {"endpoint_url": "https://x", "error": "e"}


def answered(code: str, *, status: int = 400, message: str = "no", **more: Any) -> errors.AwsError:
    """Returns the error that ingest's own clients raise for an error answer."""
    return errors.AwsError(code, message, status=status, item=more.get("Item"))


Refused = Callable[..., Exception]
both_clients = pytest.mark.parametrize("refused", [refusal, answered])


def failing(error: Exception, *, service: str = "dynamodb") -> BaseException:
    """Returns what `once` makes of an error."""

    def attempt() -> None:
        raise error

    with pytest.raises(Exception) as raised:  # noqa: PT011 - the kind is what is looked at
        errors.once(service, "Operation", attempt)
    return raised.value


def test_an_answer_is_returned() -> None:
    assert errors.once("sqs", "SendMessage", lambda: {"a": 1}) == {"a": 1}


@pytest.mark.parametrize(
    "error",
    [
        refusal("ProvisionedThroughputExceededException"),
        refusal("InternalServerError", status=500),
        refusal("AccessDeniedException"),
        refusal("ValidationException"),
        refusal("ResourceNotFoundException"),
        refusal("ExpiredTokenException"),
        boto.EndpointConnectionError(**LINE),
        boto.ConnectTimeoutError(**LINE),
        boto.ReadTimeoutError(**LINE),
        boto.ConnectionClosedError(**LINE),
        boto.SSLError(**LINE),
        boto.NoCredentialsError(),
        boto.ParamValidationError(report="r"),
        boto.ResponseStreamingError(error="e"),
        ProtocolError("broken"),
        ConnectionResetError(),
        TimeoutError("timed out"),
        ssl.SSLCertVerificationError("expired"),
        BadReply("cut off"),
        answered("ProvisionedThroughputExceededException"),
        answered("InternalServerError", status=500),
        answered("AccessDeniedException"),
        answered("ResourceNotFoundException"),
    ],
    ids=lambda error: str(error)[:50],
)
def test_whatever_fails_is_unavailable_and_chained(error: Exception) -> None:
    ours = failing(error)

    assert isinstance(ours, Unavailable)
    assert (ours.service, ours.operation) == ("dynamodb", "Operation")
    assert ours.__cause__ is error


@both_clients
def test_the_text_names_the_code_and_what_aws_says(refused: Refused) -> None:
    denied = refused("AccessDeniedException", message="not authorized to perform: dynamodb:PutItem")

    assert str(failing(denied)) == (
        "dynamodb Operation: AccessDeniedException: not authorized to perform: dynamodb:PutItem"
    )


def test_the_text_names_the_error_without_an_answer() -> None:
    assert str(failing(boto.ReadTimeoutError(**LINE))) == "dynamodb Operation: ReadTimeoutError"
    assert str(failing(TimeoutError("timed out"))) == "dynamodb Operation: TimeoutError"


@both_clients
def test_a_long_message_is_cut(refused: Refused) -> None:
    assert len(str(failing(refused("X", message="m" * 10_000)))) < 350


@both_clients
def test_a_failed_condition_carries_the_row(refused: Refused) -> None:
    ours = failing(refused("ConditionalCheckFailedException", Item={"pk": {"S": "a"}}))

    assert isinstance(ours, ConditionFailed)
    assert ours.old == {"pk": {"S": "a"}}


@pytest.mark.parametrize(
    ("service", "code"),
    [
        ("s3", "NoSuchKey"),
        ("secretsmanager", "ResourceNotFoundException"),
        ("secretsmanager", "InvalidRequestException"),
    ],
)
@both_clients
def test_what_is_not_there_is_missing(refused: Refused, service: str, code: str) -> None:
    assert isinstance(failing(refused(code), service=service), errors.Missing)


@both_clients
def test_a_taken_name_or_version_is_told_apart(refused: Refused) -> None:
    taken = failing(refused("ResourceExistsException"), service="secretsmanager")
    assert isinstance(taken, errors.Exists)


@pytest.mark.parametrize(
    ("service", "code"),
    [("dynamodb", "ResourceNotFoundException"), ("s3", "NoSuchBucket"), ("s3", "AccessDenied")],
)
@both_clients
def test_a_missing_table_or_bucket_is_a_failure(refused: Refused, service: str, code: str) -> None:
    assert isinstance(failing(refused(code), service=service), Unavailable)


def test_an_error_of_our_own_code_is_left_alone() -> None:
    assert isinstance(failing(KeyError("a bug")), KeyError)


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (refusal("ThrottlingException"), True),
        (refusal("SlowDown", status=503), True),
        (refusal("RequestTimeout"), True),
        (refusal("AnythingElse", status=500), True),
        (refusal("503", status=503), True),
        (boto.ReadTimeoutError(**LINE), True),
        (boto.EndpointConnectionError(**LINE), True),
        (boto.ConnectTimeoutError(**LINE), True),
        (boto.ConnectionClosedError(**LINE), True),
        (ProtocolError("broken"), True),
        (refusal("AccessDeniedException", status=403), False),
        (refusal("ValidationException"), False),
        (boto.NoCredentialsError(), False),
        (answered("ThrottlingException"), True),
        (answered("ExpiredTokenException"), True),
        (answered("SlowDown", status=503), True),
        (answered("503", status=503), True),
        (TimeoutError("timed out"), True),
        (ConnectionRefusedError(), True),
        (BadReply("cut off"), True),
        (answered("AccessDeniedException", status=403), False),
        (answered("ValidationException"), False),
        (answered("NoCredentials"), False),
        (None, False),
    ],
    ids=str,
)
def test_only_what_may_pass_is_worth_another_attempt(error: Exception | None, passes: bool) -> None:
    assert errors.may_pass(error) is passes


TRANSLATES_WITHOUT_THE_SDK = """
import sys
from webhook_inbox.adapters.aws.errors import AwsError, may_pass, once
from webhook_inbox.domain.errors import Unavailable

for error in (AwsError("SlowDown", status=503), TimeoutError("timed out")):
    assert may_pass(error)
    try:
        once("s3", "GetObject", lambda: (_ for _ in ()).throw(error))
    except Unavailable as ours:
        assert ours.__cause__ is error
try:
    once("s3", "GetObject", lambda: {}["a bug"])
except KeyError:
    print(sorted({"botocore", "urllib3"} & set(sys.modules)))
"""


def test_no_error_loads_the_sdk() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", TRANSLATES_WITHOUT_THE_SDK],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ended.stdout == "[]\n"
