import pytest

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.providers.schemes.signatures.header_formats import (
    Claim,
    Layout,
    Pairs,
    Several,
    VersionedSignatures,
    Whole,
)

STRIPE = Pairs(signature="v1", timestamp="t")
PADDLE = Pairs(signature="h1", timestamp="ts", separator=";")
WORKOS = Pairs(signature="v1", timestamp="t", separator=", ", sole=True)
SVIX = VersionedSignatures("v1")
PAGERDUTY = VersionedSignatures("v1", separator=",", mark="=")


@pytest.mark.parametrize(
    ("layout", "value", "claim"),
    [
        (Whole(), "abc", Claim(("abc",))),
        (Whole("sha256="), "sha256=abc", Claim(("abc",))),
        (Whole("sha256="), "sha256=sha256=", Claim(("sha256=",))),
        (STRIPE, "t=1,v1=a,v1=b,v0=c", Claim(("a", "b"), "1")),
        (STRIPE, "v1=a=,t=1=", Claim(("a=",), "1=")),
        (STRIPE, "t=1,v1=a,", Claim(("a",), "1")),
        (PADDLE, "ts=1;h1=a;h1=b", Claim(("a", "b"), "1")),
        (WORKOS, "t=1, v1=a", Claim(("a",), "1")),
        (Several(), "a", Claim(("a",))),
        (Several(), "a,,b=, c", Claim(("a", "b=", " c"))),
        (SVIX, "v1,a v2,b v1,c", Claim(("a", "c"))),
        (SVIX, "v1,a,v1,b", Claim(("a,v1,b",))),
        (PAGERDUTY, "v1=a,v1=b,v2=c", Claim(("a", "b"))),
    ],
)
def test_a_header_claims_its_signatures_and_time(layout: Layout, value: str, claim: Claim) -> None:
    assert layout.read(value) == claim


@pytest.mark.parametrize(
    ("layout", "value"),
    [
        (Whole("sha256="), "abc"),
        (Whole("sha256="), "sha256="),
        (Whole("sha256="), " sha256=abc"),
        (Whole("sha256="), "SHA256=abc"),
        (STRIPE, "t=1"),
        (STRIPE, "v1=a"),
        (STRIPE, "t=1,t=1,v1=a"),
        (STRIPE, "t=1,v0=a"),
        (STRIPE, "t=1;v1=a"),
        (STRIPE, "\ud800"),
        (STRIPE, "t=1,v1="),
        (STRIPE, "t=1,v1"),
        (STRIPE, "t=1,v1=a,v1"),
        (STRIPE, "t,t=1,v1=a"),
        (STRIPE, "t=1,v1=a,beside"),
        (STRIPE, "t=1, ,v1=a"),
        (PADDLE, "ts=1;h1=a;h1"),
        (WORKOS, "t=1, v1=a, "),
        (WORKOS, "t=1,v1=a"),
        (WORKOS, "v1=a, t=1"),
        (WORKOS, "t=1, v1=a, v1=b"),
        (WORKOS, "t=1, v1=a, v0=b"),
        (WORKOS, "t=1, v1="),
        (Several(), ",,"),
        (SVIX, "v2,a"),
        (SVIX, "v1,"),
        (SVIX, "a"),
        (PAGERDUTY, "v2=a"),
    ],
)
def test_a_header_that_claims_nothing_is_malformed(layout: Layout, value: str) -> None:
    with pytest.raises(Rejected) as raised:
        layout.read(value)

    assert raised.value.reason is Reason.MALFORMED


@pytest.mark.parametrize(
    "layout", [Whole(), Whole("v0="), STRIPE, PADDLE, WORKOS, SVIX, PAGERDUTY, Several()]
)
def test_what_is_written_is_read_again(layout: Layout) -> None:
    claim = layout.read(layout.write("abc", "17"))

    assert claim.signatures == ("abc",)
    assert claim.timestamp in {None, "17"}
