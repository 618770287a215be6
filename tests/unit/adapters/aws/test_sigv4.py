"""Requests are signed as AWS's published suite says, and as botocore signs them.

`sigv4_suite.json` holds AWS's cases, with the licence of the suite. The client sends no query and
each header once, without blanks around its value; it encodes a path once and does not normalise it.
Cases about the rest of Signature Version 4 are listed there by their reason.
"""

import json
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

import botocore.auth
import pytest
from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials
from hypothesis import given
from hypothesis import strategies as st

from webhook_inbox.adapters.aws.sigv4 import Credentials, authorization

SUITE = json.loads((Path(__file__).parent / "sigv4_suite.json").read_text(encoding="utf-8"))
# The key that the suite publishes.
KEYS = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
SECOND = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
TIME = "20260203T040506Z"


@pytest.mark.parametrize("case", SUITE["cases"], ids=lambda case: str(case["name"]))
def test_a_request_of_awss_suite_is_signed_as_published(case: dict[str, Any]) -> None:
    signed = authorization(
        KEYS,
        case["headers"],
        region="us-east-1",
        service="service",
        method=case["method"],
        path=quote(case["target"]),
        payload=sha256(case["body"].encode()).hexdigest(),
    )

    assert signed == case["authorization"]


def test_every_case_of_awss_suite_is_used_or_excluded_for_a_reason() -> None:
    used = [case["name"] for case in SUITE["cases"]]
    left_out = [name for names in SUITE["excluded"].values() for name in names]

    assert (len(used), len(left_out)) == (15, 19)
    assert set(used).isdisjoint(left_out)


TEXT = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=40)
SAFE = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/=", min_size=1)
# Any character at all: a key of an object may hold each.
PATHS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
# Botocore does not sign these: proxies change them.
UNSIGNED = {"user-agent", "x-amzn-trace-id", "expect", "transfer-encoding", "connection"}
NAMES = st.from_regex(r"x-[a-z0-9-]{1,20}", fullmatch=True).filter(lambda n: n not in UNSIGNED)


def signed_by_botocore(
    signer: type[SigV4Auth], keys: Credentials, request: AWSRequest, region: str, service: str
) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.auth, "get_current_datetime", lambda **_: SECOND)
        theirs = BotoCredentials(keys.access_key, keys.secret_key, keys.token or None)
        signer(theirs, service, region).add_auth(request)
    return str(request.headers["Authorization"])


@given(
    keys=st.builds(Credentials, SAFE, SAFE, st.just("") | SAFE),
    host=st.from_regex(r"[a-z0-9.-]{1,30}\.amazonaws\.com(\.cn)?", fullmatch=True),
    more=st.dictionaries(NAMES, TEXT, max_size=5),
    body=st.binary(max_size=200),
    region=st.sampled_from(["us-east-1", "us-gov-west-1", "cn-north-1", "eu-central-2"]),
    service=st.sampled_from(["dynamodb", "sqs", "secretsmanager"]),
    method=st.sampled_from(["POST", "GET"]),
)
def test_a_random_request_is_signed_as_botocore_signs_it(
    keys: Credentials,
    host: str,
    more: dict[str, str],
    body: bytes,
    region: str,
    service: str,
    method: str,
) -> None:
    headers = {**more, "x-amz-date": TIME, "content-type": "application/x-amz-json-1.0"}
    if keys.token:
        headers["x-amz-security-token"] = keys.token
    request = AWSRequest(method, f"https://{host}/", data=body)
    for name, value in headers.items():
        request.headers[name] = value

    ours = authorization(
        keys,
        {**headers, "host": host},
        region=region,
        service=service,
        method=method,
        path="/",
        payload=sha256(body).hexdigest(),
    )

    assert ours == signed_by_botocore(SigV4Auth, keys, request, region, service)


@given(
    keys=st.builds(Credentials, SAFE, SAFE, st.just("") | SAFE),
    key=PATHS,
    body=st.binary(max_size=200),
    method=st.sampled_from(["PUT", "GET", "DELETE"]),
)
def test_a_request_for_any_object_is_signed_as_botocore_signs_it(
    keys: Credentials, key: str, body: bytes, method: str
) -> None:
    host, path, payload = "bodies.s3.us-east-1.amazonaws.com", f"/{quote(key)}", sha256(body)
    headers = {"x-amz-date": TIME, "x-amz-content-sha256": payload.hexdigest()}
    if keys.token:
        headers["x-amz-security-token"] = keys.token
    request = AWSRequest(method, f"https://{host}{path}", data=body)

    ours = authorization(
        keys,
        {**headers, "host": host},
        region="us-east-1",
        service="s3",
        method=method,
        path=path,
        payload=payload.hexdigest(),
    )

    assert ours == signed_by_botocore(S3SigV4Auth, keys, request, "us-east-1", "s3")
