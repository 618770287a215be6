"""One call to AWS: made once, and its errors judged in one place."""

from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    IncompleteReadError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
    ResponseStreamingError,
)

from tests.unit.adapters.aws.fake_client import FakeClient, refusal
from webhook_inbox.adapters.aws import clients
from webhook_inbox.adapters.aws.operation import AwsOperation
from webhook_inbox.domain.errors import Permanent, Transient

RIGHT = 'allow("events:PutEvents", on="…")'
URL = "https://events.eu-west-1.amazonaws.com"


def target(*answers: Any) -> AwsOperation:
    return AwsOperation("events", "put_events", right=RIGHT, client=FakeClient(*answers))


class Broken:
    """An answer's body whose connection breaks while it is read."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def read(self) -> bytes:
        raise self._error


def test_a_call_is_made_with_its_parameters_and_answered() -> None:
    client = FakeClient({"n": 1})
    called = AwsOperation("events", "put_events", right=RIGHT, client=client)
    assert called.call(Entries=[]) == {"n": 1}
    assert client.calls == [("put_events", {"Entries": []})]


@pytest.mark.parametrize(
    "error",
    [
        ConnectTimeoutError(endpoint_url=URL),
        EndpointConnectionError(endpoint_url=URL),
        NoCredentialsError(),
    ],
)
def test_what_was_never_sent_was_refused(error: Exception) -> None:
    with pytest.raises(Transient) as raised:
        target(error).call()
    assert raised.value.refused
    assert str(raised.value).startswith(f"events put_events: {type(error).__name__}: ")


@pytest.mark.parametrize(
    "error",
    [
        ReadTimeoutError(endpoint_url=URL),
        ConnectionClosedError(endpoint_url=URL),
        ConnectionResetError("by peer"),
    ],
)
def test_what_was_not_answered_is_in_doubt(error: Exception) -> None:
    with pytest.raises(Transient) as raised:
        target(error).call()
    assert not raised.value.refused


@pytest.mark.parametrize(
    "error",
    [
        IncompleteReadError(actual_bytes=1, expected_bytes=2),
        ResponseStreamingError(error="cut"),
        TimeoutError("too slow"),
    ],
)
def test_an_answer_that_breaks_off_is_in_doubt(error: Exception) -> None:
    with pytest.raises(Transient) as raised:
        target({"Payload": Broken(error)}).call()
    assert not raised.value.refused


def test_a_request_that_aws_does_not_know_is_permanent() -> None:
    with pytest.raises(Permanent, match="ParamValidationError"):
        target(ParamValidationError(report="no such parameter")).call()


def test_a_region_that_is_not_set_is_permanent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    clients.session.cache_clear()
    with pytest.raises(Permanent, match="NoRegionError"):
        AwsOperation("events", "put_events", right=RIGHT).call(Entries=[])
    clients.session.cache_clear()


@pytest.mark.parametrize(
    ("code", "status", "refused"),
    [
        ("ThrottlingException", 400, True),
        ("Anything", 429, True),
        ("ResourceConflictException", 409, True),
        ("InternalException", 500, False),
        ("Anything", 503, False),
    ],
)
def test_what_may_pass_is_transient(code: str, status: int, refused: bool) -> None:
    with pytest.raises(Transient, match=f"events put_events: {code}: no") as raised:
        target(refusal(code, status=status)).call()
    assert raised.value.refused is refused


@pytest.mark.parametrize(("code", "status"), [("ValidationException", 400), ("Gone", 404)])
def test_what_will_not_pass_is_permanent(code: str, status: int) -> None:
    with pytest.raises(Permanent) as raised:
        target(refusal(code, status=status)).call()
    assert not raised.value.page


@pytest.mark.parametrize(
    ("code", "status"), [("AccessDeniedException", 400), ("AccessDenied", 403), ("Odd", 403)]
)
def test_a_missing_right_pages_and_names_the_line(code: str, status: int) -> None:
    with pytest.raises(Permanent) as raised:
        target(refusal(code, status=status)).call()
    assert raised.value.page
    assert str(raised.value).endswith(f"; add {RIGHT} to stacks/inbox_stack.py")


@pytest.mark.parametrize(
    ("header", "pause"),
    [
        ("30", timedelta(seconds=30)),
        ("999999999999999", timedelta(days=1)),
        ("", None),
        ("-1", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
    ],
)
def test_a_pause_is_taken_over(header: str, pause: timedelta | None) -> None:
    error = refusal("TooManyRequestsException", status=429)
    error.response["ResponseMetadata"]["HTTPHeaders"] = {"retry-after": header}
    with pytest.raises(Transient) as raised:
        target(error).call()
    assert raised.value.retry_after == pause


def test_a_long_text_is_cut() -> None:
    with pytest.raises(Permanent) as raised:
        target(refusal("ValidationException", message="x" * 5000)).call()
    assert len(str(raised.value)) == 301  # with the mark of the cut


def test_its_own_client_tries_once_and_waits_as_long_as_it_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A second try of botocore's would be a second, unrecorded invocation."""
    made: list[Any] = []

    class Session:
        def create_client(
            self, service: str, *, region_name: str | None, config: Any
        ) -> FakeClient:
            assert region_name is None
            made.append((service, config))
            return FakeClient({}, {})

    monkeypatch.setattr("webhook_inbox.adapters.aws.operation.session", Session)
    own = AwsOperation("lambda", "invoke", right=RIGHT, timeout=30)
    assert made == []

    own.call()
    own.call()

    [(service, config)] = made
    assert service == "lambda"
    assert config.retries == {"mode": "standard", "total_max_attempts": 1}
    assert (config.connect_timeout, config.read_timeout) == (2.0, 30)
