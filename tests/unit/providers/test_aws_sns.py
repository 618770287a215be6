"""SNS alone: certificates of its own regions; the topic is checked before a fetch."""

import json
from dataclasses import replace
from typing import Any

import botocore.session
import pytest

from tests.unit.providers.cases import signed
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.provider import Verified

PATH = "/SimpleNotificationService-0.pem"
LOADED = botocore.session.get_session().get_component("data_loader").load_data("partitions")
REGIONS = [
    f"{region}.{partition['outputs']['dnsSuffix']}"
    for partition in LOADED["partitions"]
    for region in partition["regions"]
    if not region.endswith("-global")
]


def judged(**changed: Any) -> tuple[Verified | Reason, list[str]]:
    """Returns the verdict on a message with these fields instead, and what was fetched for it."""
    case = signed("aws-sns")
    message = {**json.loads(case.delivery.body), **changed}
    verdict = case.verdict(replace(case.delivery, body=json.dumps(message).encode()))
    return verdict, case.fetched


@pytest.mark.parametrize("place", REGIONS)
def test_a_certificate_of_each_region_is_fetched(place: str) -> None:
    url = f"https://sns.{place}{PATH}"

    verdict, fetched = judged(SigningCertURL=url)

    assert isinstance(verdict, Verified)
    assert fetched == [url]


@pytest.mark.parametrize("region", ["xx-southwest-12", "us-gov-central-3", "cn-south-7"])
def test_a_region_that_is_opened_later_needs_no_release(region: str) -> None:
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"

    assert isinstance(judged(SigningCertURL=f"https://sns.{region}.{suffix}{PATH}")[0], Verified)


@pytest.mark.parametrize(
    "host",
    [
        # Addresses of S3, where anyone may own the bucket `sns`.
        "sns.s3-us-west-2.amazonaws.com",
        "sns.s3-accelerate.amazonaws.com",
        "sns.s3-website-us-east-1.amazonaws.com",
        "sns.s3-fips-us-gov-west-1.amazonaws.com",
        "sns.s3.amazonaws.com",
        "sns.s3.us-west-2.amazonaws.com",
        "sns.s3.cn-north-1.amazonaws.com.cn",
        "sns.execute-api.amazonaws.com",
        "sns.us-west.amazonaws.com",
        "sns.us-west-0.amazonaws.com",
        "sns.us-west-100.amazonaws.com",
        "sns.us-west-2a.amazonaws.com",
        "sns.usx-west-2.amazonaws.com",
        # A region of another partition.
        "sns.us-west-2.amazonaws.com.cn",
        "sns.cn-north-1.amazonaws.com",
        "sns.us-iso-east-1.amazonaws.com",
        "sns.us-west-2.c2s.ic.gov",
        "sns.eusc-de-east-1.amazonaws.com",
        "SNS.us-west-2.amazonaws.com",
    ],
)
def test_nothing_is_fetched_from_a_host_that_is_no_region_of_sns(host: str) -> None:
    assert judged(SigningCertURL=f"https://{host}{PATH}") == (Reason.MALFORMED, [])


@pytest.mark.parametrize("more", ["?", "?n=1", "#", "#n", "?a#b"])
def test_a_certificates_address_has_neither_query_nor_fragment(more: str) -> None:
    """Each would be another key of the cache, and another request for the same certificate."""
    url = f"https://sns.eu-west-1.amazonaws.com{PATH}{more}"

    assert judged(SigningCertURL=url) == (Reason.MALFORMED, [])


def test_a_scheme_in_upper_case_is_no_second_address() -> None:
    url = f"HTTPS://sns.eu-west-1.amazonaws.com{PATH}"

    assert judged(SigningCertURL=url) == (Reason.MALFORMED, [])


@pytest.mark.parametrize(
    "changed",
    [
        {"TopicArn": "arn:aws:sns:eu-west-1:666666666666:orders"},
        {"SignatureVersion": "3"},
        {"Signature": "not base64"},
        {"Signature": ""},
        {"Message": None},
        {"Timestamp": 7},
    ],
)
def test_everything_else_is_checked_before_a_certificate_is_fetched(
    changed: dict[str, Any],
) -> None:
    verdict, fetched = judged(**changed)

    assert isinstance(verdict, Reason)
    assert fetched == []
