import pytest

from tests.unit.providers.cases import signed
from webhook_inbox.domain.provider import Answer


def test_a_test_notification_is_answered_and_no_event() -> None:
    case = signed("wise")
    assert case.provider.handshake is not None

    assert case.provider.handshake(case.with_header("x-test-notification", "true"), "") == Answer(
        200
    )


@pytest.mark.parametrize("value", [None, "false", ""])
def test_any_other_notification_is_an_event(value: str | None) -> None:
    case = signed("wise")
    assert case.provider.handshake is not None

    assert case.provider.handshake(case.with_header("x-test-notification", value), "") is None
