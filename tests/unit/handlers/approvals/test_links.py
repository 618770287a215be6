"""Approval links: whom and which request they name, and that no other text is one."""

import hmac
import json
from base64 import urlsafe_b64decode
from dataclasses import astuple, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook_inbox.handlers.approvals import links
from webhook_inbox.handlers.approvals.links import LONGEST, ApprovalLink, link_token, read_link
from webhook_inbox.handlers.approvals.request_row import RequestAddress
from webhook_inbox.ledger.schema import ID_LIMIT

UNTIL = datetime(2026, 1, 3, tzinfo=UTC)
ADDRESS = RequestAddress("shop", "evt-1", "shop.refund", "effect:refund", "0" * 32, 1)

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=64)


@given(texts, texts, texts, texts, st.integers(0, 10**6))
def test_a_link_names_its_request_and_its_person_whatever_they_are_called(
    source: str, event_id: str, subject: str, person: str, round_: int
) -> None:
    address = RequestAddress(source, event_id, source, subject, "f" * 32, round_)

    token = link_token("k", address, person, UNTIL)

    assert read_link(["k"], token) == ApprovalLink(address, person, UNTIL)
    assert token.isascii()
    assert token.startswith("v1.")
    assert not set(token) & set("/?#%&=+ \"'<>")


def test_a_link_is_the_same_in_every_call() -> None:
    """A repeated announcement must not void the link that was sent before."""
    assert link_token("k", ADDRESS, "ann", UNTIL) == link_token("k", ADDRESS, "ann", UNTIL)


@pytest.mark.parametrize("character", ["é", '"', "\\", "\x00"])
def test_the_longest_names_make_a_link_within_the_limit(character: str) -> None:
    event_id = character * (ID_LIMIT // len(character.encode()))
    longest = RequestAddress("s" * 64, event_id, "h" * 129, f"effect:{'n' * 128}", "f" * 64, 999)

    token = link_token("k", longest, "p" * 64, UNTIL)

    assert len(token) <= LONGEST
    read = read_link(["k"], token)
    assert read is not None
    assert read.address == longest


def test_a_link_still_verifies_under_the_key_before() -> None:
    token = link_token("old", ADDRESS, "ann", UNTIL)

    assert read_link(["new", "old"], token) is not None
    assert read_link(["new"], token) is None
    assert read_link([], token) is None


@pytest.mark.parametrize(
    "other",
    [
        replace(ADDRESS, source="b"),
        replace(ADDRESS, event_id="evt-2"),
        replace(ADDRESS, handler="b"),
        replace(ADDRESS, subject="effect:pay"),
        replace(ADDRESS, fingerprint="1" * 32),
        replace(ADDRESS, round=2),
    ],
)
def test_every_part_of_the_request_is_signed(other: RequestAddress) -> None:
    token, wanted = (link_token("k", each, "ann", UNTIL) for each in (ADDRESS, other))

    forged = wanted.rpartition(".")[0] + "." + token.rpartition(".")[2]

    assert read_link(["k"], forged) is None


def test_person_and_expiry_are_signed() -> None:
    token = link_token("k", ADDRESS, "ann", UNTIL)
    for wanted in (
        link_token("k", ADDRESS, "bob", UNTIL),
        link_token("k", ADDRESS, "ann", UNTIL + timedelta(days=1)),
    ):
        forged = wanted.rpartition(".")[0] + "." + token.rpartition(".")[2]
        assert read_link(["k"], forged) is None


def test_parts_do_not_run_into_each_other() -> None:
    one = link_token("k", replace(ADDRESS, source="a", event_id='b","c'), "ann", UNTIL)
    two = link_token("k", replace(ADDRESS, source='a","b', event_id="c"), "ann", UNTIL)

    assert one != two
    assert read_link(["k"], one) != read_link(["k"], two)


def _damaged(token: str) -> list[str]:
    version, content, mac = token.split(".")
    other = "A" if mac[0] != "A" else "B"
    return [
        "",
        ".",
        "..",
        version,
        content,
        f"v2.{content}.{mac}",
        f"{content}.{mac}",
        f"{version}.{content}.",
        f"{version}.{content}",
        f"{version}..{mac}",
        f"{version}.{content}.{other}{mac[1:]}",
        f"{version}.{content}.{mac}=",
        f"{version}.{content}=.{mac}",
        f"{version}.{content}.{mac}.{mac}",
        token + "\n",
        " " + token,
        token.swapcase(),
        token.replace(".", "。"),
        f"{version}.{'A' * 10_000}.{mac}",
        f"{version}.{content}.{'é' * 43}",
        "\ud800" + token,
        "\x00",
    ]


@pytest.mark.parametrize("case", range(len(_damaged("v.c.m"))))
def test_a_damaged_link_is_none(case: int) -> None:
    token = link_token("k", ADDRESS, "ann", UNTIL)

    assert read_link(["k"], _damaged(token)[case]) is None


@given(st.text(max_size=200))
def test_no_other_text_is_a_link(text: str) -> None:
    assert read_link(["k"], text) is None


def test_the_last_digit_has_no_second_spelling() -> None:
    """Base64 ignores the last bits; the comparison is of the text."""
    token = link_token("k", ADDRESS, "ann", UNTIL)
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

    accepted = [digit for digit in digits if read_link(["k"], token[:-1] + digit)]

    assert accepted == [token[-1]]


def test_every_key_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    genuine = hmac.compare_digest

    def compare(one: str, two: str) -> bool:
        compared.append((one, two))
        return genuine(one, two)

    monkeypatch.setattr(links.hmac, "compare_digest", compare)
    token = link_token("one", ADDRESS, "ann", UNTIL)
    for keys in (["one", "two", "three"], ["x", "y", "one"], ["x", "y", "z"]):
        compared.clear()
        read_link(keys, token)
        assert len(compared) == 3


def test_a_link_has_no_secret_but_its_mac() -> None:
    key = "the-key-of-the-stack"
    token = link_token(key, ADDRESS, "ann", UNTIL)
    content = token.split(".")[1]

    told = json.loads(urlsafe_b64decode(content + "=" * (-len(content) % 4)))

    assert told == [*astuple(ADDRESS), "ann", 1767398400]
    assert key not in token


def test_a_completion_token_under_the_same_key_is_no_link() -> None:
    """The purpose is signed with the content."""
    subject = link_token("k", ADDRESS, "ann", UNTIL).rpartition(".")[0]
    mac = links._text(hmac.digest(b"k", subject.encode(), "sha256"))

    assert read_link(["k"], f"{subject}.{mac}") is None
