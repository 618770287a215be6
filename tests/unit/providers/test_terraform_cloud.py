import json
from typing import Any

import pytest

from tests.unit.providers.deliveries import NOW, SECRET, delivery, verdict
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.provider import Answer, Sample, Verified
from webhook_inbox.providers.terraform_cloud import PROVIDER

VERIFICATION = {"run_id": None, "notifications": [{"trigger": "verification"}]}
SIGNED = {"x-tfe-notification-signature": "0" * 128}


def written(body: Any) -> bytes:
    return json.dumps(body).encode()


def greeted(body: Any, headers: dict[str, str] | None = None) -> Answer | None:
    assert PROVIDER.greet is not None
    return PROVIDER.greet(delivery(headers or {}, written(body)), (SECRET,))


def named(**body: Any) -> tuple[str, str]:
    identity = PROVIDER.identify(delivery({}, written(body)))
    return identity.event_id, identity.type


def test_a_verification_is_answered_unsigned_as_signed() -> None:
    assert PROVIDER.handshake is not None

    assert greeted(VERIFICATION) == Answer(200)
    assert PROVIDER.handshake(delivery(SIGNED, written(VERIFICATION)), SECRET) == Answer(200)


def test_a_verification_that_is_signed_wrongly_is_refused() -> None:
    sent = delivery(SIGNED, written(VERIFICATION))

    assert greeted(VERIFICATION, SIGNED) is None
    assert verdict(PROVIDER, sent) is Reason.INVALID_SIGNATURE


@pytest.mark.parametrize(
    "body",
    [
        [],
        {"run_id": "run-1", "notifications": [{"trigger": "verification"}]},
        {"run_id": None, "notifications": [{"trigger": "run:created"}]},
        {"run_id": None, "notifications": []},
    ],
)
def test_nothing_else_passes_unsigned(body: Any) -> None:
    assert greeted(body) is None
    assert verdict(PROVIDER, delivery({}, written(body))) is Reason.MISSING_SIGNATURE


def test_one_run_needs_attention_more_than_once() -> None:
    def at(time: str) -> tuple[str, str]:
        told = {"trigger": "run:needs_attention", "run_updated_at": time}
        return named(run_id="run-1", notifications=[told])

    first, second = at("2026-11-21T08:00:00Z"), at("2026-11-21T08:09:00Z")

    assert first[1] == second[1] == "run:needs_attention"
    assert first[0] != second[0]
    assert named(run_id="run-1", notifications=[{"trigger": "run:created"}])[0] == (
        "run-1|run:created"
    )


def test_a_run_task_is_signed_under_its_own_header_and_named_by_its_result() -> None:
    body = written({"run_id": "run-1", "stage": "post_plan", "task_result_id": "taskrs-1"})
    made = PROVIDER.sign(Sample("", "", body), SECRET, NOW)["x-tfe-notification-signature"]
    sent = delivery({"x-tfc-task-signature": made}, body)

    assert isinstance(verdict(PROVIDER, sent), Verified)
    assert PROVIDER.identify(sent).event_id == "taskrs-1"
    assert PROVIDER.identify(sent).type == "post_plan"
    assert PROVIDER.accepted_status == 200
