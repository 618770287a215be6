"""The forms of actions: what they show, what they run, and what they do when refused."""

import shlex
from typing import Any

import pytest

from tests.unit.support.holding import effect, hold
from tests.webhookctl.commands.stage import Cli, Inbox
from tests.webhookctl.console.browsing import Browser
from webhook_inbox.client.suggestions import PLAIN
from webhook_inbox.domain.errors import Permanent
from webhookctl.console import actions
from webhookctl.console.actions import ACTIONS, FormAction

REASON = {"reason": "as asked"}


@pytest.mark.parametrize("action", ACTIONS, ids=lambda each: each.path)
def test_each_form_explains_itself_and_has_its_command(
    browser: Browser, action: FormAction
) -> None:
    page = browser.get(action.address(**dict.fromkeys(action.names, "x1"))).text
    assert action.explains.partition("'")[0] in page
    line = action.line(browser.shown.program, dict.fromkeys(action.names, "x1"))
    assert str(line).replace("'", "&#39;") in page
    assert [f'name="{name}"' in page for name in action.asks] == [True] * len(action.asks)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda each: each.path)
def test_the_command_of_each_form_exists(cli: Cli, action: FormAction) -> None:
    words = shlex.split(str(action.line(PLAIN, dict.fromkeys(action.names, "x1"))))[1:]
    shown = cli(*action.verb.split(), "--help").out
    assert [each for each in words if each.startswith("--") and each not in shown] == []


@pytest.mark.parametrize("action", ACTIONS, ids=lambda each: each.path)
def test_a_form_without_its_values_is_refused_beside_the_form(
    browser: Browser, action: FormAction
) -> None:
    answer = browser.submit(action.path)
    assert answer.status_code == 409
    assert "fill it in" in answer.text
    assert f'action="{action.path}"' in answer.text


def test_a_refused_form_keeps_what_was_typed(browser: Browser, inbox: Inbox) -> None:
    inbox.deliver("fine")
    inbox.work()
    form = {"event_id": "fine", "source": "acme", "handler": "acme.fulfil", **REASON}
    answer = browser.submit("/skip", **form)
    assert answer.status_code == 409
    assert "nothing to skip" in answer.text
    assert 'value="as asked"' in answer.text
    assert 'name="event_id" value="fine"' in answer.text


def test_after_an_action_the_event_s_page_shows_it(browser: Browser, inbox: Inbox) -> None:
    inbox.fails("acme.fulfil", Permanent("no address"))
    inbox.deliver("evt-1")
    inbox.work()
    form = {"event_id": "evt-1", "source": "acme", "handler": "acme.fulfil", **REASON}
    answer = browser.submit("/skip", **form)
    assert str(answer.url).split("?")[0].endswith("/event")
    assert "Close the dead run: done" in answer.text
    assert "skipped" in answer.text
    assert "skipped" in browser.text("/events")


def test_a_pause_is_listed_at_once(browser: Browser) -> None:
    answer = browser.submit("/handlers/pause", name="acme.fulfil", **REASON)
    assert "as asked" in answer.text
    assert "Resume the handler" in answer.text
    answer = browser.submit("/handlers/resume", name="acme.fulfil", **REASON)
    assert "Resume the handler</a>" not in answer.text


def test_a_tenant_is_paused_and_resumed(browser: Browser) -> None:
    assert "t-9" in browser.submit("/tenants/pause", name="t-9", **REASON).text
    assert "No tenant is paused" in browser.submit("/tenants/resume", name="t-9", **REASON).text


def held(inbox: Inbox) -> dict[str, str]:
    """Leaves a run that waits for a person since its effect is in doubt."""
    request = hold(inbox, type_="paid")
    effect(inbox, request.run, error="ReadTimeout: no answer within 10 s")
    run = request.run
    names = {"event_id": run.event_id, "source": run.source, "handler": run.handler}
    return {**names, "hold": request.id, **REASON}


@pytest.mark.parametrize(
    ("path", "more", "status"),
    [
        ("/approvals/approve", {}, "pending"),
        ("/approvals/deny", {}, "skipped"),
        ("/approvals/happened", {"result": '{"id": 7}'}, "pending"),
    ],
)
def test_a_decision_is_recorded_under_the_caller_s_name(
    browser: Browser, inbox: Inbox, cli: Cli, path: str, more: dict[str, str], status: str
) -> None:
    form = held(inbox)
    answer = browser.submit(path, **form, **more)
    assert answer.status_code == 200, answer.text
    assert "No run waits" in answer.text
    assert inbox.run("evt-1", form["handler"]).status == status
    [entry] = cli("audit", "--json").objects
    assert (entry["proof"], entry["reason"]) == ("local", "as asked")


def test_a_result_that_is_no_json_is_refused_beside_the_form(
    browser: Browser, inbox: Inbox
) -> None:
    answer = browser.submit("/approvals/happened", **held(inbox), result="{")
    assert (answer.status_code, "not JSON" in answer.text) == (409, True)
    assert 'name="result" value="{"' in answer.text


def test_what_pages_keep_is_read_anew_after_an_action(browser: Browser) -> None:
    forgotten: list[int] = []
    browser.shown.on_change(lambda: forgotten.append(1))
    browser.submit("/tenants/pause", name="t-9", **REASON)
    assert forgotten == [1]
    browser.submit("/destinations/open", name="none", **REASON)
    assert forgotten == [1, 1]


def test_a_hidden_value_is_in_no_page(browser: Browser) -> None:
    answer = browser.submit("/sources/secret", name="unknown", value="hush-hush", **REASON)
    assert answer.status_code == 409, answer.text
    assert "hush-hush" not in answer.text


def test_every_value_of_a_form_is_escaped(browser: Browser) -> None:
    hostile = '"><script>alert(1)</script>'
    for action in ACTIONS:
        form: dict[str, Any] = dict.fromkeys((*action.names, *action.asks), hostile)
        assert "<script>alert" not in browser.submit(action.path, **form).text
        assert "<script>alert" not in browser.get(action.address(**form)).text


def test_actions_have_paths_of_their_own() -> None:
    assert len({each.path for each in ACTIONS}) == len(ACTIONS)
    assert actions.RELEASE in ACTIONS
