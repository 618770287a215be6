from dataclasses import replace

import pytest

from tests.unit.providers.cases import signed
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.provider import Answer, Verified
from webhook_inbox.providers import load

CASE = signed("trello")


def test_a_webhooks_url_is_tried_with_head_before_it_is_made() -> None:
    greet = CASE.provider.greet
    assert greet is not None

    assert greet(replace(CASE.delivery, method="HEAD", body=b""), ()) == Answer(200)
    assert greet(CASE.delivery, ()) is None
    assert greet(replace(CASE.delivery, method="GET"), ()) is None


@pytest.mark.parametrize("query", ["a=1", "memberID=14&mainModel=true", "%20"])
def test_a_query_that_was_not_signed_is_refused(query: str) -> None:
    assert CASE.verdict(replace(CASE.delivery, query=query)) is Reason.INVALID_SIGNATURE


def test_the_configured_url_counts_not_the_host_it_came_to() -> None:
    assert isinstance(CASE.verdict(CASE.with_header("host", "internal.example")), Verified)
    elsewhere = replace(
        CASE,
        provider=load(
            SourceSpec("it", "trello", "it", settings={"url": "https://other.example/webhooks/it"})
        ),
    )
    assert elsewhere.verdict() is Reason.INVALID_SIGNATURE
