"""Replays: groups, the list's filter, the fixed selection, canary, stop and resume."""

import json
import re
import threading
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.waiting import DEADLINE
from tests.webhookctl.commands.stage import Cli, Inbox
from tests.webhookctl.console.browsing import Browser
from webhook_inbox.domain.errors import Permanent
from webhook_inbox.domain.model import Status
from webhookctl.console.filters import EventFilter
from webhookctl.console.replay_scope import scope_of

REASON = {"reason": "fixed"}
GROUP = re.compile(
    r'name="handler" value="([^"]+)"><input type="hidden" name="error_group" value="(\w+)"'
)


def fail(inbox: Inbox, *errors: BaseException, prefix: str = "evt") -> None:
    """Lets a run die, or fail, of each error."""
    inbox.script("acme.notify", *errors)
    for number, _ in enumerate(errors):
        inbox.deliver(f"{prefix}-{number}", type_="refunded")
        inbox.work()
        inbox.clock.advance(seconds=1)


def planned(browser: Browser, **fields: str) -> str:
    """Plans a replay and returns the id of its selection."""
    answer = browser.submit("/replays/plan", **fields)
    assert answer.status_code == 200, answer.text
    [selection] = parse_qs(urlsplit(str(answer.url)).query)["selection"]
    return selection


def sent(browser: Browser, selection: str, **fields: str) -> str:
    """Sends a selection, waits for its thread, and returns the text of its page."""
    form = {"selection": selection, "send": "all", "rate": "100", "first": "1", **REASON, **fields}
    answer = browser.submit("/replays", **form)
    assert answer.status_code == 200, answer.text
    return ended(browser, str(answer.url))


def ended(browser: Browser, url: str) -> str:
    for thread in threading.enumerate():
        if thread.name.startswith("replay "):
            thread.join(DEADLINE)
    return browser.text(url)


def statuses(inbox: Inbox, *ids: str) -> list[Status]:
    return [inbox.run(each, "acme.notify").status for each in ids]


def test_a_group_is_replayed_and_no_other(browser: Browser, inbox: Inbox) -> None:
    fail(inbox, *(Permanent(f"failed {n}") for n in range(3)), Permanent("failed 3 times"))
    page = browser.get("/dead-letters").text
    assert "Permanent</h2>" in page
    handler, group = GROUP.findall(page)[0]
    selection = planned(browser, handler=handler, error_group=group)
    plan = browser.text(f"/replays/plan?selection={selection}")
    assert "3 runs , and no others" in plan
    assert "failed &lt;number&gt;" in plan
    assert "Estimated cost: less than 0.01 dollars" in plan
    inbox.script("acme.notify")
    assert "3 sent" in sent(browser, selection)
    inbox.work()
    assert statuses(inbox, "evt-0", "evt-1", "evt-2") == [Status.DONE] * 3
    assert statuses(inbox, "evt-3") == [Status.DEAD_LETTER]


def test_a_run_that_dies_after_the_dry_run_is_not_sent(browser: Browser, inbox: Inbox) -> None:
    fail(inbox, Permanent("no address"))
    selection = planned(browser, status="dead_letter")
    fail(inbox, Permanent("no address"), prefix="later")
    assert "1 sent" in sent(browser, selection)
    assert statuses(inbox, "evt-0", "later-0") == [Status.PENDING, Status.DEAD_LETTER]


def test_the_filter_of_the_list_selects_beyond_the_page(browser: Browser, inbox: Inbox) -> None:
    fail(inbox, *(Permanent("no address") for _ in range(60)))
    page = browser.get("/events?status=dead_letter&type=refund*").text
    assert "Older events" in page
    assert 'name="type" value="refund*"' in page
    selection = planned(browser, status="dead_letter", type="refund*")
    assert "60 runs" in browser.text(f"/replays/plan?selection={selection}")


def test_list_and_detail_agree_after_a_replay(browser: Browser, inbox: Inbox) -> None:
    fail(inbox, Permanent("no address"))
    sent(browser, planned(browser, status="dead_letter"))
    assert "pending" in browser.text("/events?source=acme")
    assert "pending" in browser.text("/event?source=acme&id=evt-0")
    assert "No run is failing or dead" in browser.text("/dead-letters")


@pytest.mark.parametrize(
    ("query", "says", "refused"),
    [
        ({}, "every run of the last 24 hours in status dead letter", ""),
        ({"status": "dead_letter"}, "every run in status dead letter that meets", ""),
        ({"status": "done"}, "of the last 24 hours in status done", ""),
        ({"status": "failed"}, "whatever the other runs of its event have", ""),
        ({"status": "failed", "handler": "acme.notify"}, "that meets the filters, also beyond", ""),
        ({"text": "x"}, "dead letter", "clear it"),
        ({"until": "1h"}, "dead letter", "set From as well"),
    ],
)
def test_the_scope_is_said_before(query: dict[str, str], says: str, refused: str) -> None:
    scope = scope_of(EventFilter.of(query))
    assert says in scope.says
    assert refused in scope.refused
    assert bool(refused) is bool(scope.refused)


def test_a_filter_that_a_replay_cannot_express_is_refused(browser: Browser, inbox: Inbox) -> None:
    fail(inbox, Permanent("no address"))
    page = browser.text("/events?text=address")
    assert "a replay cannot select by the text filter: clear it" in page
    answer = browser.submit("/replays/plan", text="address")
    assert (answer.status_code, "clear it" in answer.text) == (400, True)


def test_finished_runs_are_repeated_by_their_filter(browser: Browser, inbox: Inbox) -> None:
    inbox.deliver("fine", type_="refunded")
    inbox.work()
    assert 'name="force" value="yes"' in browser.get("/events?status=done").text
    selection = planned(browser, status="done", force="yes")
    assert "1 of them are finished and are repeated" in browser.text(
        f"/replays/plan?selection={selection}&force=yes"
    )
    assert "1 sent" in sent(browser, selection, force="yes")
    assert statuses(inbox, "fine") == [Status.PENDING]


def test_a_canary_waits_for_its_outcome_and_the_rest_follows(
    browser: Browser, inbox: Inbox, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(inbox, *(Permanent("no address") for _ in range(3)))
    inbox.script("acme.notify")
    invoke = cli.replay.invoke

    def worked(**call: Any) -> dict[str, Any]:
        answer = invoke(**call)
        inbox.work()
        return answer

    monkeypatch.setattr(cli.replay, "invoke", worked)
    selection = planned(browser, status="dead_letter")
    assert "2 sent; since then: 2 done" in sent(browser, selection, send="canary", first="2")
    assert "1 run , and no others" in browser.text(f"/replays/plan?selection={selection}")
    assert "1 sent" in sent(browser, selection)
    assert statuses(inbox, "evt-0", "evt-1", "evt-2") == [Status.DONE] * 3


def test_a_stopped_replay_resumes_with_the_rest(
    browser: Browser, inbox: Inbox, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(inbox, *(Permanent("no address") for _ in range(12)))
    selection = planned(browser, status="dead_letter")
    invoke, arrived, goes_on = cli.replay.invoke, threading.Event(), threading.Event()

    def held(**call: Any) -> dict[str, Any]:
        answer = invoke(**call)
        if not json.loads(call["Payload"])["dry_run"]:
            arrived.set()
            assert goes_on.wait(DEADLINE)
        return answer

    monkeypatch.setattr(cli.replay, "invoke", held)
    form = {"selection": selection, "send": "all", "rate": "1", **REASON}
    answer = browser.submit("/replays", **form)
    assert arrived.wait(DEADLINE)
    # The part that replaces itself asks for its successor until the replay has ended.
    part = browser.get(f"{answer.url}&part=job").text
    assert re.search(r'data-live="/replays\?number=\d+&amp;part=job"', part)
    page = browser.text(str(answer.url))
    assert "0 of 12" in page
    assert "about 12 s left" in page
    number = parse_qs(urlsplit(str(answer.url)).query)["number"][0]
    assert "Stopping after this step" in browser.submit("/replays/stop", number=number).text
    goes_on.set()
    assert "Stopped after 5 runs" in ended(browser, str(answer.url))
    assert "data-live" not in browser.get(f"{answer.url}&part=job").text
    monkeypatch.setattr(cli.replay, "invoke", invoke)
    assert "7 runs , and no others" in browser.text(f"/replays/plan?selection={selection}")
    assert "7 sent" in sent(browser, selection)
    [first, *_] = cli("audit", "--json", "--action", "replay").objects
    assert first["counts"] == {"replayed": 7, "already_replayed": 5}


def test_a_replay_that_fails_again_stops_and_says_why(
    browser: Browser, inbox: Inbox, cli: Cli
) -> None:
    fail(inbox, *(Permanent("no address") for _ in range(60)))
    inbox.fails("acme.notify", Permanent("still no address"))
    invoke = cli.replay.invoke

    def worked(**call: Any) -> dict[str, Any]:
        answer = invoke(**call)
        inbox.work()
        return answer

    cli.replay.invoke = worked  # type: ignore[method-assign]
    text = sent(browser, planned(browser, status="dead_letter"), rate="3")
    assert "the replay stopped:" in text
    assert "Failed again" in text
    assert "still no address" in text


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"rate": "0"}, "not a number from 1 to 500"),
        ({"send": "canary", "first": "201"}, "not a number from 1 to 200"),
        ({"reason": " "}, "reason: fill it in"),
    ],
)
def test_a_refused_form_keeps_what_was_typed(
    browser: Browser, inbox: Inbox, fields: dict[str, str], error: str
) -> None:
    fail(inbox, Permanent("no address"))
    selection = planned(browser, status="dead_letter")
    form = {"selection": selection, "send": "all", "rate": "7", "first": "1", **REASON, **fields}
    answer = browser.submit("/replays", **form)
    assert answer.status_code == 409
    assert error in answer.text
    assert 'role="alert"' in answer.text
    assert f'name="rate" inputmode="numeric" value="{form["rate"]}"' in answer.text
    assert f'name="reason" value="{form["reason"]}"' in answer.text
    assert statuses(inbox, "evt-0") == [Status.DEAD_LETTER]


def test_nothing_to_replay_has_its_reason(browser: Browser, inbox: Inbox) -> None:
    inbox.deliver("fine", type_="refunded")
    inbox.work()
    answer = browser.submit("/replays/plan", source="acme", event_id="fine", handler="acme.notify")
    assert answer.status_code == 409
    assert "nothing to replay; 1 unchanged: finished" in answer.text


def test_a_group_that_is_retried_has_no_replay_yet(browser: Browser, inbox: Inbox) -> None:
    fail(inbox, KeyError("id"))
    page = browser.text("/dead-letters")
    assert "a replay selects dead runs" in page
    assert "disabled" in browser.get("/dead-letters").text
