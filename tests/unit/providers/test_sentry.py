from dataclasses import replace

from tests.unit.providers.cases import signed
from webhook_inbox.domain.provider import Verified

CASE = signed("sentry")


def test_it_is_named_by_headers_that_are_not_signed_and_timed_by_none() -> None:
    identity = CASE.provider.identify(CASE.delivery)

    assert (identity.event_id, identity.type) == ("sample-1", "issue.created")
    assert CASE.delivery.headers["sentry-hook-timestamp"]
    assert identity.occurred_at is None


def test_a_captured_body_under_another_id_or_none_has_the_same_guard() -> None:
    assert CASE.provider.guard is not None
    for id_ in ("another", None):
        again = CASE.with_header("request-id", id_)
        verified = CASE.verdict(again)
        assert isinstance(verified, Verified)
        identity = CASE.provider.identify(again)
        assert identity.event_id != "sample-1"
        assert CASE.provider.guard(verified, ()) == CASE.delivery.body


def test_a_resource_of_no_action_is_the_type() -> None:
    sent = replace(CASE.delivery, body=b"{}")

    assert CASE.provider.identify(sent).type == "issue"
