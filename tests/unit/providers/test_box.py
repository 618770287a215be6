from dataclasses import replace

from tests.unit.providers.cases import signed
from tests.unit.providers.deliveries import with_header
from webhook_inbox.domain.errors import Reason


def test_a_retry_under_a_new_delivery_id_is_the_same_event() -> None:
    case = signed("box")
    first, again = case.delivery, with_header(case.delivery, "box-delivery-id", "another")

    assert case.provider.identify(first).event_id == "eb0c4e06-751f-442c-86f8-fd5bb404dbec"
    assert case.provider.identify(again) == case.provider.identify(first)


def test_a_body_without_an_id_is_named_by_its_delivery() -> None:
    case = signed("box")
    bare = replace(case.delivery, body=b'{"trigger":"FILE.UPLOADED"}')

    assert case.provider.identify(bare).event_id == "sample-1"


def test_another_version_is_malformed_though_its_signature_is_right() -> None:
    case = signed("box")

    for name in ("box-signature-version", "box-signature-algorithm"):
        for value in (None, "", "2", "HmacSHA1"):
            assert case.verdict(case.with_header(name, value)) is Reason.MALFORMED
