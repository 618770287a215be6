"""The kit's errors name the user's line and the remedy."""

import inspect
import traceback
from pathlib import Path

import pytest

from tests.unit.testing.shop import shop
from webhook_inbox import Context, Event, Router
from webhook_inbox.testing import Fake, Inbox, KitError

HERE = Path(__file__).name
FUNCTIONS = Path(__file__).parents[3] / "functions"
strict = Router("strict")


@strict.on("go")
def go(event: Event, ctx: Context) -> None:
    ctx.http("crm").post("/here", json={})  # the line of the handler


def line_of(text: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, start=1) if text in line)


def test_a_request_that_no_rule_expects_ends_the_test_at_the_handlers_line() -> None:
    inbox = Inbox(strict, destinations={"crm": Fake(strict=True)})

    with pytest.raises(KitError) as caught:
        inbox.run(go, {})

    line = line_of("# the line of the handler")
    assert f"{HERE}:{line}: crm expects no POST /here: add answers(…)" in str(caught.value)
    inbox.destinations["crm"].answers(201)
    assert inbox.run(go, {}).status == "done"


def test_a_response_that_was_not_used_is_named_with_its_line() -> None:
    inbox = Inbox(strict, destinations={"crm": Fake().answers(201).answers(500, times=2)})
    inbox.run(go, {})

    with pytest.raises(KitError) as caught:
        inbox.verify()

    line = line_of("answers(500, times=2)")
    assert str(caught.value).endswith(f"{HERE}:{line}: answers(500) of 'crm' was not used")
    inbox.run(go, {}).settle()
    inbox.verify()


def test_responses_that_last_and_those_that_were_ended_are_not_missed() -> None:
    crm = Fake().stalls(times=None)
    Inbox(strict, destinations={"crm": crm}).verify()
    crm.answers(500).recovers()
    assert crm.unused == []


def test_a_wrong_name_of_a_destination_is_corrected() -> None:
    inbox = Inbox(shop, destinations={"crm": Fake(), "old": Fake()})
    with pytest.raises(KitError, match=r"no destination 'cmr' \(did you mean \"crm\"\?\)"):
        _ = inbox.destinations["cmr"]
    with pytest.raises(KitError, match=r"destination in inbox.toml 'sinc' \(did you mean \"sink\""):
        Inbox(FUNCTIONS, destinations={"sinc": Fake()})
    with pytest.raises(KitError, match=r"no destination 'x'; there are: crm, old"):
        _ = inbox.destinations["x"]


@pytest.mark.parametrize(
    "name", ["fake", "inbox", "project", "runs", "runtime", "samples", "worker"]
)
def test_pytest_shows_no_frame_of_the_kit(name: str) -> None:
    module = __import__(f"webhook_inbox.testing.{name}", fromlist=["_"])
    assert module.__tracebackhide__.__name__ == "hidden"


def test_the_traceback_of_a_kit_error_ends_at_the_tests_line() -> None:
    with pytest.raises(KitError) as caught:
        Fake().answers(500, times=0)
    shown = [entry for entry in caught.traceback if not entry.ishidden(caught)]
    assert [Path(str(entry.path)).name for entry in shown] == [HERE]
    assert len(traceback.extract_tb(caught.tb)) > len(shown)
    assert inspect.getmodule(KitError)


def test_a_crash_that_is_not_reached_is_reported_at_the_tests_line() -> None:
    inbox = Inbox(strict, destinations={"crm": Fake()})
    with pytest.raises(KitError) as caught:
        inbox.run(go, {}, crash_after="nothing")
    shown = [entry for entry in caught.traceback if not entry.ishidden(caught)]
    assert [Path(str(entry.path)).name for entry in shown] == [HERE]


def test_other_errors_keep_their_traceback() -> None:
    with pytest.raises(TypeError) as caught:
        Fake().handles(lambda _: None).answers("x", times=1)  # type: ignore[arg-type]
    assert [entry for entry in caught.traceback if not entry.ishidden(caught)][1:]
