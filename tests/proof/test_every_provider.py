"""Whatever is made of a provider's delivery, it is rejected for a reason, or it is that delivery.

2,000 deliveries a provider, each one valid in all but what was changed: this is `make fuzz`, and no
part of `make test`.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.providers.cases import NAMES, Case, recorded, signed, valid_vectors
from tests.unit.providers.test_bad_input import assert_taken_or_refused
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.json_path import form, form_field
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Verified
from webhook_inbox.ingest.verification import PublishedKeys, is_well_formed

EXAMPLES = 2_000
# Half of a text's characters are what schemes cut texts at; lone surrogates cannot be written.
CHARACTERS = st.sampled_from("=,;:.|/+-_ %&\t\n\x000a9Zé\u0661\ud800") | st.characters(codec=None)
TEXT = st.text(CHARACTERS, max_size=40)
PLACES = st.integers(0, 1 << 20)
WORDS = [
    b"",
    b"null",
    b"{}",
    b"[]",
    b"[{}]",
    b'"',
    b"\\",
    b"\xff",
    b"\x00",
    b"=&",
    b"9" * 400,
    b"[" * 2000,
]
BYTES = st.binary(max_size=12) | st.sampled_from(WORDS)
# They sign the names and values of a form joined, so `To=1` and `To1=` have one signature; it is
# valid for one event. Twilio uses a repeated value once.
JOINED: dict[str, type] = {"plivo": list, "twilio": set}


@st.composite
def mangled_text(draw: st.DrawFn, text: str) -> str:
    """Changes a header's value: wholly, in one place, or by case."""
    place = draw(PLACES) % (len(text) + 1)
    end = min(len(text), place + draw(st.integers(0, 8)))
    return draw(
        st.sampled_from(
            [
                text[:place] + draw(TEXT) + text[end:],
                text[:place],
                text[place:],
                text[:place] + text[end:],
                f"{text},{text}",
                f"{draw(TEXT)},{text}",
                text.swapcase(),
                draw(TEXT),
            ]
        )
    )


@st.composite
def mangled_body(draw: st.DrawFn, body: bytes) -> bytes:
    """Changes a body: wholly, in one place, or by cutting it."""
    place = draw(PLACES) % (len(body) + 1)
    end = min(len(body), place + draw(st.integers(0, 40)))
    return draw(
        st.sampled_from(
            [
                body[:place] + draw(BYTES) + body[end:],
                body[:place],
                body[:place] + body[end:],
                body + body,
                draw(BYTES),
            ]
        )
    )


@st.composite
def mangled(draw: st.DrawFn, valid: Delivery) -> Delivery:
    """Changes up to four things of a delivery."""
    headers, body, query = dict(valid.headers), valid.body, valid.query
    for _ in range(draw(st.integers(1, 4))):
        what = draw(st.sampled_from(["header", "header", "body", "drop", "swap", "query"]))
        name = draw(st.sampled_from(sorted(valid.headers)))
        if what == "header":
            headers[name] = draw(mangled_text(headers.get(name, "")))
        elif what == "body":
            body = draw(mangled_body(body))
        elif what == "drop":
            headers.pop(name, None)
        elif what == "swap":
            headers[name] = valid.headers[draw(st.sampled_from(sorted(valid.headers)))]
        else:
            query = draw(mangled_text(query))
    return replace(valid, headers=headers, body=body, query=query)


@cache
def cases(provider: str) -> list[Case]:
    """Returns a provider's sample, and one of each kind of its recorded deliveries."""
    return [signed(provider)] + [recorded(v) for name, v in valid_vectors() if name == provider]


def covered(case: Case, delivery: Delivery) -> Any:
    """Returns what of a delivery is signed for sure: its body, where that is signed whole."""
    if case.provider.name == "braintree":
        # Its library takes a payload that has lost its last newline, and so do we.
        return (form_field(delivery, "bt_payload") or "").removesuffix("\n")
    facts = case.provider.facts
    if facts is not None and facts.body != "whole":
        return None
    if pairs := JOINED.get(case.provider.name, lambda _: ())(form(delivery)):
        return "".join(name + value for name, value in sorted(pairs))
    return delivery.body


def assert_rejected_or_the_signed_one(case: Case, sent: Delivery) -> None:
    verdict = case.verdict(sent)
    assert isinstance(verdict, Verified | Reason)
    keys = PublishedKeys(case)
    if isinstance(verdict, Verified):
        assert covered(case, sent) == covered(case, case.delivery)
        # Otherwise its key would not be fetched, or its share of rejected deliveries be junk's.
        case.provider.precheck(sent, ())
    else:
        assert is_well_formed(case.provider, sent, case.secrets, keys) in {True, False}


def fuzz(provider: str, check: Callable[[Case, Delivery], None]) -> None:
    @settings(
        max_examples=EXAMPLES,
        database=None,
        derandomize=True,  # what passes here passes elsewhere
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def run(data: st.DataObject) -> None:
        case = data.draw(st.sampled_from(cases(provider)))
        check(case, data.draw(mangled(case.delivery)))

    run()


def judge(case: Case, sent: Delivery) -> None:
    """Does all that is done with what anyone may send, verified or not."""
    assert_rejected_or_the_signed_one(case, sent)
    assert_taken_or_refused(case, sent)


@pytest.mark.parametrize("provider", NAMES)
def test_a_mangled_delivery_is_rejected_or_equals_the_signed_one(provider: str) -> None:
    fuzz(provider, judge)
