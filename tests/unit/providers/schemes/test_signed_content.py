from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook_inbox.domain.errors import ConfigurationError, Reason, Rejected
from webhook_inbox.providers.schemes.signatures.signed_content import Template


def filled(text: str, **fields: bytes) -> bytes:
    return Template.parse(text).fill(fields)


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("{body}", b"B"),
        ("v0:{timestamp}:{body}", b"v0:7:B"),
        ("{id}.{timestamp}.{body}", b"I.7.B"),
        ("{body}{timestamp}", b"B7"),
        ("<{body}>", b"<B>"),
        ("{{{body}}}", b"{B}"),
        ("\u00e9{body}", b"\xc3\xa9B"),
    ],
)
def test_literals_and_fields_are_joined_in_order(text: str, content: bytes) -> None:
    assert filled(text, id=b"I", timestamp=b"7", body=b"B") == content


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "{body} is not signed"),
        ("{timestamp}", "{body} is not signed"),
        ("{body}{body}", "signed twice"),
        ("{Body}", "{Body} is not a field; choose from {body}, {timestamp}, {id}, {method}"),
        ("{}", "{} is not a field"),
        ("{0}{body}", "{0} is not a field"),
        ("{body.real}", "{body.real} is not a field"),
        ("{body!r}", "{body} is not a field"),
        ("{body:>99}", "{body} is not a field"),
        ("{body", "write a brace itself twice"),
        ("body}", "write a brace itself twice"),
    ],
)
def test_what_is_no_template_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Template.parse(text)

    assert words in str(raised.value)


def test_it_tells_which_fields_it_has() -> None:
    template = Template.parse("{id}.{body}")

    assert "id" in template
    assert "timestamp" not in template


@pytest.mark.parametrize(
    ("text", "pinned"),
    [
        ("{id}.{body}", True),
        ("{body}.{id}", True),
        ("{timestamp}:{id}:{body}", True),
        ("id={id};{body}", True),
        ("{timestamp}{id}.{body}", True),
        ("{id}{body}", False),
        ("{body}{id}", False),
        ("{id}{timestamp}{body}", False),
        ("{url}.{id}.{body}", False),
        ("{body}", False),
    ],
)
def test_an_id_is_pinned_only_between_literals(text: str, pinned: bool) -> None:
    assert Template.parse(text).pins("id") is pinned


@pytest.mark.parametrize(
    ("text", "id_"),
    [
        ("{id}.{body}", b"a.b"),
        ("{id}.{body}", b"."),
        ("{body}.{id}", b"a.b"),
        ("{id}..{body}", b"a."),
        ("{body}..{id}", b".a"),
        ("{timestamp}:{id}.{body}", b"1:2"),
    ],
)
def test_an_id_that_holds_the_literal_beside_it_is_malformed(text: str, id_: bytes) -> None:
    with pytest.raises(Rejected) as raised:
        filled(text, id=id_, timestamp=b"7", body=b"B")

    assert raised.value.reason is Reason.MALFORMED


@pytest.mark.parametrize("name", ["body", "form"])
def test_body_and_form_may_hold_what_stands_beside_them(name: str) -> None:
    values = {name: b"a.b", "header:x-nonce": b"7"}
    assert Template.parse(f"{{{name}}}.{{header:X-Nonce}}").fill(values) == b"a.b.7"


@pytest.mark.parametrize("name", ["url", "url_with_port", "url_without_port", "decoded_url"])
def test_of_a_url_only_the_query_may_not_hold_what_stands_beside_it(name: str) -> None:
    template = Template.parse(f"{{{name}}}.{{body}}")

    assert template.fill({name: b"https://a.b?c", "body": b"B"}) == b"https://a.b?c.B"
    with pytest.raises(Rejected):
        template.fill({name: b"https://a.b?c.d", "body": b"B"})


def test_where_the_body_is_not_signed_fields_may_hold_their_separators() -> None:
    template = Template.parse("{json:a}:{json?:b}", without_body=True)

    assert template.fields == ("json:a", "json?:b")
    assert template.fill({"json:a": b"1:2", "json?:b": b""}) == b"1:2:"


def test_headers_are_named_in_any_case_and_paths_as_they_are() -> None:
    template = Template.parse("{header:X-A}{headers:X-B}{json:aB}{form:cD}{body}")

    assert template.fields == ("header:x-a", "headers:x-b", "json:aB", "form:cD", "body")


@given(
    text=st.sampled_from(["{id}.{body}", "{body}.{id}", "{id}..{body}", "{body}..{id}"]),
    one=st.tuples(st.text("a.", max_size=5), st.text("a.", max_size=5)),
    other=st.tuples(st.text("a.", max_size=5), st.text("a.", max_size=5)),
)
def test_two_deliveries_never_have_the_same_signed_bytes(
    text: str, one: tuple[str, str], other: tuple[str, str]
) -> None:
    contents = [content(text, {"id": i.encode(), "body": b.encode()}) for i, b in (one, other)]

    if None not in contents and contents[0] == contents[1]:
        assert one == other


def content(text: str, fields: Mapping[str, bytes]) -> bytes | None:
    try:
        return Template.parse(text).fill(fields)
    except Rejected:
        return None
