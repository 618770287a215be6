"""The W3C trace context: read strictly, derived where there is none, continued by attempts."""

import re

import pytest

from webhook_inbox.domain.trace import Trace

ID = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"


def trace(traceparent: str = "", *, event_id: str = "evt-1", source: str = "acme") -> Trace:
    return Trace.of({"traceparent": traceparent}, source=source, event_id=event_id)


@pytest.mark.parametrize(
    ("given", "sampled"),
    [
        (f"00-{ID}-{SPAN}-01", True),
        (f"00-{ID}-{SPAN}-00", False),
        (f"00-{ID}-{SPAN}-03", True),
        (f" \t00-{ID}-{SPAN}-01 ", True),
        (f"01-{ID}-{SPAN}-01", True),
        (f"cc-{ID}-{SPAN}-fe-more-later", False),
    ],
)
def test_a_valid_context_is_continued_in_version_00(given: str, sampled: bool) -> None:
    found = trace(given)
    assert (found.id, found.span, found.sampled) == (ID, SPAN, sampled)
    assert found.traceparent == f"00-{ID}-{SPAN}-{'01' if sampled else '00'}"


@pytest.mark.parametrize(
    "given",
    [
        "",
        "00",
        "00-1-2-03",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{ID}-{'0' * 16}-01",
        f"ff-{ID}-{SPAN}-01",
        f"00-{ID}-{SPAN}-01-more",
        f"00-{ID}-{SPAN}-01-",
        f"00-{ID}-{SPAN}-011",
        f"01-{ID}-{SPAN}-01.more",
        f"00-{ID.upper()}-{SPAN}-01",
        f"00-{ID}-{SPAN}-0x",
        f"00-{ID}-{SPAN}",
        f"00-{ID}-{SPAN}-01,00-{ID}-{SPAN}-01",
        f"00-{ID}-{SPAN}-01\r\nX-Injected: 1",
        f"00-{ID}-{SPAN}-\u0660\u0661",
        f"{'00-' * 100_000}",
    ],
)
def test_an_invalid_context_is_replaced_by_one_of_the_event(given: str) -> None:
    found = trace(given)
    assert found == trace()
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", found.traceparent)
    assert ID not in found.traceparent


def test_events_have_traces_of_their_own() -> None:
    made = {trace().id, trace(event_id="evt-2").id, trace(source="other").id}
    assert len(made) == 3
    assert trace(event_id="\ud800").id


def test_attempts_share_the_trace_and_have_spans_of_their_own() -> None:
    given = trace(f"00-{ID}-{SPAN}-00")
    attempts = [
        given.attempt("acme", "evt-1", "a.b", 1),
        given.attempt("acme", "evt-1", "a.b", 2),
        given.attempt("acme", "evt-1", "c.d", 1),
        given.attempt("acme", "evt-2", "a.b", 1),
    ]
    assert {each.id for each in attempts} == {ID}
    assert len({SPAN, *(each.span for each in attempts)}) == 5
    assert not any(each.sampled for each in attempts)
    assert given.attempt("acme", "evt-1", "a.b", 1) == attempts[0]
