"""Callbacks between agents: loops end, depth is bounded, and calls say on whose behalf."""

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook_inbox.destinations.propagation import CHAIN, DEPTH, DEPTH_LIMIT, TRACE, CallChain
from webhook_inbox.domain.errors import Skipped
from webhook_inbox.ingest.events import HEADER_LIMIT


def chain(names: str = "", depth: str = "", trace: str = "") -> CallChain:
    return CallChain.read({CHAIN: names, DEPTH: depth, TRACE: trace})


def test_without_headers_the_call_chain_is_empty() -> None:
    assert CallChain.read({}) == CallChain((), 0, "")
    CallChain.read({}).check("shop.fulfil")


def test_the_chain_is_read_in_order() -> None:
    found = chain(" planner , buyer", "2", "t-1")
    assert found == CallChain(("planner", "buyer"), 2, "t-1")


@pytest.mark.parametrize("names", ["shop.fulfil", "planner,shop.fulfil", "shop.fulfil, buyer"])
def test_a_handler_that_was_here_before_is_a_loop(names: str) -> None:
    with pytest.raises(Skipped, match=r"agent loop: .*shop\.fulfil$"):
        chain(names).check("shop.fulfil")
    chain(names).check("shop.notify")


@pytest.mark.parametrize(("depth", "stops"), [(DEPTH_LIMIT, False), (DEPTH_LIMIT + 1, True)])
def test_depth_is_bounded_however_it_is_told(depth: int, stops: bool) -> None:
    by_names = ",".join(f"agent-{n}" for n in range(depth))
    for found in (chain(by_names), chain("planner", str(depth)), chain(by_names, "1")):
        if stops:
            with pytest.raises(Skipped, match=f"depth {depth} exceeds the limit of 8"):
                found.check("shop.fulfil")
        else:
            found.check("shop.fulfil")


def test_a_chain_that_was_cut_is_too_deep() -> None:
    """The handler's own name may stand in what is missing."""
    cut = ("a" * 300 + "," + "b" * 300 + "," + "c" * 1000)[:HEADER_LIMIT]
    with pytest.raises(Skipped, match="exceeds the limit"):
        chain(cut).check("shop.fulfil")
    chain(cut[: HEADER_LIMIT - 1]).check("shop.fulfil")


@pytest.mark.parametrize("depth", ["", "-1", "x", "1.5", "٣", "NaN"])
def test_a_depth_that_is_none_says_nothing(depth: str) -> None:
    assert chain("planner", depth).depth == 1


@pytest.mark.parametrize("depth", ["9", "1000000", "9" * 400, "000000009"])
def test_a_depth_of_any_length_counts(depth: str) -> None:
    with pytest.raises(Skipped):
        chain("planner", depth).check("shop.fulfil")
    chain("planner", "0" * 400 + "8").check("shop.fulfil")


@pytest.mark.parametrize("trace", ["", "a b", "a\nb", "ä", "t" * 129])
def test_a_trace_id_that_fits_no_header_is_replaced(trace: str) -> None:
    onward = chain("planner", "1", trace).onward("shop.fulfil", source="a", event_id="e")
    assert onward[TRACE] == chain().onward("x", source="a", event_id="e")[TRACE]


def test_calls_go_on_with_the_chain() -> None:
    onward = chain("planner", "1", "t-1").onward("shop.fulfil", source="a", event_id="e")
    assert onward == {CHAIN: "planner,shop.fulfil", DEPTH: "2", TRACE: "t-1"}
    assert CallChain.read(onward).depth == 2


@given(st.text(), st.text(), st.text())
def test_whatever_is_sent_is_read_and_what_goes_on_can_be_sent(a: str, b: str, c: str) -> None:
    found = chain(a, b, c)
    onward = found.onward("shop.fulfil", source="a", event_id="e")
    assert int(onward[DEPTH]) == found.depth + 1
    for value in onward.values():
        httpx.Request("GET", "https://a.example", headers={"x": value})
        assert value.isascii()
        assert value.isprintable()
