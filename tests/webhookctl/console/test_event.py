"""The page of an event: next action, offers by state, verification, copies."""

import json
import re
from datetime import timedelta
from html import unescape

import pytest

from scripts import screens
from tests.unit.support.holding import effect, hold
from tests.webhookctl.commands.stage import Cli, Inbox
from tests.webhookctl.console.browsing import Browser
from webhook_inbox.client.event_state import EventState
from webhook_inbox.client.suggestions import PLAIN, Command
from webhook_inbox.domain.errors import Permanent, Transient
from webhookctl.console.event_offers import EventOffers, next_steps_of, offers_of
from webhookctl.console.timeline import WIDTH, timeline_of

PAGE = "/event?source=acme&id=evt-1"
HANDLER = "acme.fulfil"
HELD = ("Approve", "Record that it happened", "Deny")


def allowed(offers: EventOffers, handler: str = HANDLER) -> set[str]:
    return {each.label for each in offers.runs[handler] if not each.refused}


def offers_now(inbox: Inbox) -> EventOffers:
    return offers_of(state(inbox), inbox.now)


def state(inbox: Inbox) -> EventState:
    return EventState.of(inbox.overview("evt-1"), now=inbox.now)


def died(inbox: Inbox) -> EventState:
    inbox.fails(HANDLER, Permanent("no address"))
    inbox.deliver("evt-1")
    inbox.work()
    return state(inbox)


def test_a_dead_run_can_be_replayed_or_closed(inbox: Inbox) -> None:
    offers = offers_of(died(inbox), inbox.now)
    assert allowed(offers) == {"Replay the run", "Close the dead run"}
    refused = {each.label: each.refused for each in offers.runs[HANDLER] if each.refused}
    assert refused["Approve"] == "it is dead letter, and waits for no decision"
    assert (
        refused["Repeat the finished run"] == "it is dead letter, not finished: replay it instead"
    )


def test_a_finished_run_can_only_be_repeated(inbox: Inbox) -> None:
    inbox.deliver("evt-1")
    inbox.work()
    assert allowed(offers_now(inbox)) == {"Repeat the finished run"}


def test_a_run_without_a_row_can_be_sent(inbox: Inbox) -> None:
    inbox.deliver("evt-1")
    assert allowed(offers_now(inbox)) == {"Replay the run"}


def test_a_leased_run_cannot_be_replayed(inbox: Inbox) -> None:
    inbox.deliver("evt-1")
    inbox.begin()
    offers = offers_now(inbox)
    assert allowed(offers) == set()
    assert offers.runs[HANDLER][0].refused == "attempt 1 is in progress"


def test_a_run_in_doubt_is_decided(inbox: Inbox) -> None:
    request = hold(inbox, type_="paid")
    effect(inbox, request.run, error="ReadTimeout")
    offers = offers_now(inbox)
    assert allowed(offers) == set(HELD)
    assert offers.runs[HANDLER][3].href.endswith(f"hold={request.id}")


def test_without_a_doubt_nothing_can_have_happened(inbox: Inbox) -> None:
    hold(inbox, type_="paid", subject="policy")
    assert allowed(offers_now(inbox)) == {"Approve", "Deny"}


def test_an_expired_event_cannot_be_replayed(inbox: Inbox) -> None:
    overview = died(inbox)
    offers = offers_of(overview, inbox.now + timedelta(days=36))
    assert "Replay the run" not in allowed(offers)


@pytest.mark.parametrize("event_id", ["DONE", "RETRYING", "DEAD", "IN_DOUBT"])
def test_each_command_of_the_next_action_has_its_button(event_id: str) -> None:
    """The stage of the screenshots has an event in each of these states."""
    world, name = screens.Stage().world, getattr(screens, event_id)
    overview = next(
        found
        for source in ("shop", "github")
        if (found := world.ledger.overview(source, name, now=world.now)) is not None
    )
    state = EventState.of(overview, now=world.now)
    found = next_steps_of(state, offers_of(state, world.now), PLAIN)
    commands = [isinstance(each, Command) for each in state.next_action]
    assert [each.command for each in found] == commands
    assert [each.text for each in found if each.command and each.offer is None] == []
    assert all(each.offer is None or not each.offer.refused for each in found)


def test_the_button_and_its_command_are_on_the_page(browser: Browser, inbox: Inbox) -> None:
    died(inbox)
    page = browser.get(PAGE).text
    assert "webhookctl --local replay evt-1 --source acme --handler acme.fulfil --yes" in page
    form = re.findall(r'name="(event_id|source|handler)" value="([^"]+)"', page)
    form = form[:3]
    assert dict(form) == {"event_id": "evt-1", "source": "acme", "handler": HANDLER}
    answer = browser.submit("/replays/plan", **dict(form))
    assert "1 run</b>, and no others" in answer.text


def test_finished_runs_are_repeated_with_a_reason(browser: Browser, inbox: Inbox) -> None:
    inbox.deliver("evt-1")
    inbox.work()
    fields = {"event_id": "evt-1", "source": "acme", "handler": HANDLER, "force": "yes"}
    answer = browser.submit("/replays/plan", **fields)
    assert "1 of them are finished and are repeated" in answer.text
    assert 'name="force" value="yes"' in answer.text


def test_a_waiting_run_names_what_resumes_it(browser: Browser, inbox: Inbox) -> None:
    browser.submit("/handlers/pause", name=HANDLER, reason="a migration")
    inbox.clock.advance(minutes=1)
    inbox.deliver("evt-1")
    inbox.work()
    page = browser.get(PAGE).text
    assert f"/handlers/resume?name={HANDLER}" in page
    browser.submit("/handlers/resume", name=HANDLER, reason="done")
    assert "was resumed by" in browser.text(PAGE)


def test_how_it_was_verified(browser: Browser, inbox: Inbox) -> None:
    inbox.deliver("evt-1")
    text = browser.text(PAGE)
    assert "Verified with the current secret" in text
    assert "Signed time checked, at most 5 min old" in text
    assert "Replay guard none; its id is signed" in text
    inbox.deliver("gh-1", source="github", type_="issues.opened")
    assert "the body is recognised under other ids" in browser.text("/event?source=github&id=gh-1")


def test_the_copies_are_those_of_export(browser: Browser, inbox: Inbox, cli: Cli) -> None:
    inbox.fails(HANDLER, Permanent("no address"))
    inbox.deliver("evt-1", body=b'{"id": "evt-1", "name": "<b>Ada</b>"}')
    inbox.work()
    assert "Ada" not in browser.get(PAGE).text
    for part in ("curl", "test", "json"):
        shown = browser.get(f"{PAGE}&part={part}").text
        copied = re.search(r'data-copy="([^"]*)"', shown)
        assert copied is not None
        text = unescape(copied[1])
        printed = cli("inbox", "export", "evt-1", "--as", part).out.rstrip("\n")
        if part == "json":
            # The console's commands have --local.
            found, expected = (json.loads(each) for each in (text, printed))
            assert found | {"next_action": ""} == expected | {"next_action": ""}
        else:
            assert text.rstrip("\n") == printed


def test_a_test_of_a_run_that_is_done(browser: Browser, inbox: Inbox) -> None:
    inbox.deliver("evt-1")
    inbox.work()
    assert "In the inbox: done" in browser.get(f"{PAGE}&part=test").text


def test_a_copy_that_is_not_possible_has_its_reason(browser: Browser, inbox: Inbox) -> None:
    inbox.fails(HANDLER, Permanent("no address"))
    inbox.deliver("evt-1", body=json.dumps({"id": "evt-1", "a": "x" * 20_000}).encode())
    inbox.work()
    answer = browser.get(f"{PAGE}&part=test")
    assert (answer.status_code, "use --output FILE" in answer.text) == (200, True)


def test_an_erased_event_has_no_copies(browser: Browser, inbox: Inbox) -> None:
    inbox.deliver("evt-1")
    inbox.work()
    fields = {"event_id": "evt-1", "source": "acme", "reason": "asked"}
    answer = browser.submit("/erase", **fields)
    assert "The payload is erased" in answer.text
    assert "its payload is erased already" in answer.text
    assert "Copy as curl" not in answer.text


def test_attempts_have_their_code_version_and_effects_their_key(
    browser: Browser, inbox: Inbox
) -> None:
    inbox.behaviours[HANDLER] = lambda event, ctx: ctx.effect("book", lambda _: {"id": 7})
    inbox.deliver("evt-1")
    inbox.work()
    text = browser.text(PAGE)
    assert "in the terminal of webhookctl dev" in text
    assert "book committed" in text
    assert '{"id": 7}' in unescape(text)


def test_every_span_is_on_the_axis(inbox: Inbox) -> None:
    inbox.script(HANDLER, Transient("503"), Transient("503"))
    inbox.deliver("evt-1")
    for _ in range(4):
        inbox.work()
        inbox.clock.advance(minutes=3)
    line = timeline_of(state(inbox), inbox.now)
    placed = [each for _, lane in line.lanes for each in lane]
    assert len(placed) >= 4
    assert all(0 <= each.x <= each.x + each.width <= WIDTH for each in placed)
    assert [each.start for each in line.spans] == sorted(each.start for each in line.spans)


def test_a_held_run_is_on_the_timeline_until_now(inbox: Inbox) -> None:
    hold(inbox, type_="paid")
    inbox.clock.advance(hours=2)
    line = timeline_of(state(inbox), inbox.now)
    [held] = [each for each in line.spans if each.kind == "held"]
    assert (held.end - held.start, held.outcome) == (timedelta(hours=2), "held")
    assert line.length >= timedelta(hours=2)


def test_an_unknown_event_and_one_of_an_unknown_source_have_an_error(browser: Browser) -> None:
    for source in ("acme", "acne"):
        answer = browser.get(f"/event?source={source}&id=evt-9")
        assert answer.status_code == 409
        assert f"no event evt-9 of {source}: it has expired" in unescape(answer.text)
