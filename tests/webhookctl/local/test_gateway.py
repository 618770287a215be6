import base64
import json
from typing import Any

import pytest

from webhookctl.local.http.gateway import EVENT_LIMIT, SURELY_FITS, event, from_function, joined
from webhookctl.local.http.messages import Request, Response, end_to_end

JSON = (b"Content-Type", b"application/json; charset=utf-8")


def _request(
    body: bytes = b"{}",
    *headers: tuple[bytes, bytes],
    target: bytes = b"/webhooks/acme?a=1&b=x%20y&a=2",
) -> Request:
    return Request(b"POST", target, headers or (JSON,), body)


def _event(request: Request) -> dict[str, Any]:
    return event(request, api_id="abc123")


def test_an_event_has_what_the_payload_format_has() -> None:
    made = _event(_request(b'{"a":1}', JSON, (b"Host", b"in.example"), (b"User-Agent", b"ua")))
    assert made["version"] == "2.0"
    assert made["rawPath"] == "/webhooks/acme"
    assert made["rawQueryString"] == "a=1&b=x%20y&a=2"
    assert made["queryStringParameters"] == {"a": "1,2", "b": "x y"}
    assert made["pathParameters"] == {"source": "acme"}
    assert made["body"] == '{"a":1}'
    assert made["isBase64Encoded"] is False
    http = made["requestContext"]["http"]
    assert (http["method"], http["path"], http["userAgent"]) == ("POST", "/webhooks/acme", "ua")
    assert made["requestContext"]["apiId"] == "abc123"
    assert made["requestContext"]["domainName"] == "in.example"
    assert made["headers"]["content-length"] == "7"


def test_a_tenant_in_the_path_is_a_parameter() -> None:
    made = _event(_request(b"", target=b"/webhooks/acme/acct%207"))
    assert (made["rawPath"], made["pathParameters"]) == (
        "/webhooks/acme/acct 7",
        {"tenant": "acct 7"},
    )


def test_what_is_not_there_is_left_out_rather_than_empty() -> None:
    made = _event(_request(b"", target=b"/webhooks/acme"))
    assert not {"body", "queryStringParameters"} & set(made)
    assert made["isBase64Encoded"] is False
    assert "content-length" not in made["headers"]


@pytest.mark.parametrize(
    ("kind", "body", "encoded"),
    [
        (b"application/json", b"{}", False),
        (b"APPLICATION/JSON ;charset=utf-8", b"{}", False),
        (b"text/plain", "Zoë".encode(), False),
        (b"application/xml", b"<a/>", False),
        (b"application/json", b"\xff", True),
        (b"application/x-www-form-urlencoded", b"a=1", True),
        (b"application/vnd.github+json", b"{}", True),
        (b"", b"{}", True),
    ],
)
def test_a_body_is_text_or_base64_and_always_whole(kind: bytes, body: bytes, encoded: bool) -> None:
    made = _event(_request(body, (b"content-type", kind)))
    assert made["isBase64Encoded"] is encoded
    read = base64.b64decode(made["body"]) if encoded else made["body"].encode()
    assert read == body


def test_headers_are_lower_case_joined_and_end_to_end() -> None:
    request = _request(
        b"",
        (b"X-Sig", b"a"),
        (b"x-sIG", b"b"),
        (b"Connection", b"close, X-Hop"),
        (b"X-Hop", b"1"),
        (b"Transfer-Encoding", b"chunked"),
    )
    assert joined(request) == {"x-sig": "a,b"}


def test_a_header_of_other_bytes_than_ascii_survives() -> None:
    assert joined(_request(b"", (b"X-Name", "Zoë".encode("latin-1")))) == {"x-name": "Zoë"}


def test_no_escaping_carries_what_surely_fits_over_the_limit() -> None:
    worst = _event(_request(b"\x00" * SURELY_FITS, JSON))
    assert len(json.dumps(worst)) <= EVENT_LIMIT


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (
            {"statusCode": 201, "headers": {"X-A": 1, "Content-Type": "text/plain"}, "body": "ok"},
            Response(201, ((b"content-type", b"text/plain"), (b"x-a", b"1")), b"ok"),
        ),
        (
            {"statusCode": 204},
            Response(204, ((b"content-type", b"application/json"),), b""),
        ),
        (
            {"statusCode": "200", "body": "/w==", "isBase64Encoded": True, "cookies": ["a", "b"]},
            Response(
                200,
                (
                    (b"content-type", b"application/json"),
                    (b"set-cookie", b"a"),
                    (b"set-cookie", b"b"),
                ),
                b"\xff",
            ),
        ),
        ({"a": 1}, Response(200, ((b"Content-Type", b"application/json"),), b'{"a": 1}')),
        (None, Response(200, ((b"Content-Type", b"application/json"),), b"null")),
    ],
)
def test_a_result_becomes_the_response_that_api_gateway_makes(
    result: Any, expected: Response
) -> None:
    assert from_function(result) == expected


def test_end_to_end_keeps_order_spelling_and_repetitions() -> None:
    kept = ((b"X-B", b"2"), (b"x-a", b"1"), (b"X-B", b"3"))
    hops = ((b"Connection", b"keep-alive"), (b"Keep-Alive", b"timeout=5"), (b"TE", b"trailers"))
    assert end_to_end((*hops, *kept, (b"Content-Length", b"2"))) == kept


def test_a_path_is_known_without_its_query() -> None:
    assert _request(target=b"/webhooks/a?token=secret").path == b"/webhooks/a"
    assert _request(target=b"*").path == b"*"
