"""The alarms and their cost in docs/operate.md, compared with the declarations."""

import re
from collections.abc import Sequence
from pathlib import Path

from webhook_inbox_cdk.alarm_declaration import AlarmDeclaration
from webhook_inbox_cdk.alarms import declarations
from webhook_inbox_cdk.watched import Watched

from webhook_inbox.domain.manifest import SERIAL, HandlerSpec, Manifest, Order, SourceSpec

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operate.md"
ROW = re.compile(r"\| `([A-Z]\w+)` \| (notify|page) \| [^|]+ \| `([^`]+)` \|")
SERIES_PRICE = 0.10
GUARDED = SourceSpec("github", "github", "github")
OFFERING = SourceSpec("asana", "asana", "asana")


def declared(
    *lanes: str, handlers: int = 1, sources: Sequence[SourceSpec] = ()
) -> list[AlarmDeclaration]:
    """The alarms of a stack with these lanes and sources; the lane `serial` is one."""
    order = Order(SERIAL, "id")
    specs = [
        HandlerSpec(f"HANDLER{n}", module="", function="", source="", types=(), lane=lanes[0])
        for n in range(1, handlers)
    ]
    serial = order if lanes[0] == "serial" else None
    first = HandlerSpec("HANDLER", "", "", "", (), lane=lanes[0], order=serial)
    names = {lane: lane for lane in lanes}
    watched = Watched(
        namespace="WebhookInbox/Test",
        manifest=Manifest(
            stage="test",
            sources={each.name: each for each in sources},
            handlers={each.name: each for each in (first, *specs)},
        ),
        api="api",
        table="table",
        ingest="ingest",
        replay="replay",
        reconciler="reconciler",
        processors=names,
        work=names,
        dead=names,
        answer_limit=10,
    )
    return list(declarations(watched))


def price(alarms: Sequence[AlarmDeclaration]) -> str:
    """Dollars a month: an alarm on metric math costs as much as alarms on each of its metrics."""
    series = sum(len(each.series) for each in alarms)
    return f"{series * SERIES_PRICE:.2f}"


def test_the_page_has_every_alarm_with_its_severity_and_first_command() -> None:
    rows = {found[1]: (found[2], found[3]) for found in ROW.finditer(PAGE.read_text())}
    expected = {
        each.id: (str(each.severity), each.first)
        for each in declared("serial", sources=(GUARDED, OFFERING))
    }
    assert rows == expected


def test_the_page_has_the_cost_of_a_small_stack_and_of_each_addition() -> None:
    small = declared("default")
    added = {
        "each lane": declared("default", "second"),
        "an alarm on identical bodies": declared("default", sources=(GUARDED,)),
        "one on contested enrolments": declared("default", sources=(OFFERING,)),
    }
    assert price(declared("default", handlers=2)) == price(small)
    text = " ".join(PAGE.read_text().split())
    assert f"one lane and one handler costs {price(small)} dollars a month" in text
    for what, alarms in added.items():
        more = float(price(alarms)) - float(price(small))
        assert f"{more:.2f} for {what}" in text
    assert len(declared("default", sources=(GUARDED, OFFERING))) == len(
        declared("default", sources=(GUARDED, OFFERING, SourceSpec("s", "stripe", "s")))
    )
