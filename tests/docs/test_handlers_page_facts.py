"""The numbers, tables and commands of docs/handlers.md are those of the code."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
import typer

from tests.docs.handlers_page import TEXT, sections
from tests.docs.pages import anchors
from tests.unit.handlers.forwarding.aws import Aws, handled
from webhook_inbox import Permanent, Transient, invoke, start_execution, to_eventbridge
from webhook_inbox.client.effects import SAFE
from webhook_inbox.destinations.circuit import Health
from webhook_inbox.destinations.circuit_breaker import DEFAULT_PAUSE, LONGEST_PAUSE, SHORTEST_PAUSE
from webhook_inbox.destinations.client import (
    client as downstream,
)
from webhook_inbox.destinations.client import (
    exchange,
    recording,
)
from webhook_inbox.destinations.propagation import DEPTH_LIMIT
from webhook_inbox.destinations.rate_limiter import SECOND, SLOW
from webhook_inbox.destinations.responses import (
    LIMIT,
    MILLISECONDS,
    ResponseVerdict,
    TransportFailure,
    classify,
    classify_no_response,
)
from webhook_inbox.domain.idempotency import KEY_LIMIT, NAME_LIMIT
from webhook_inbox.domain.manifest import BreakerSpec, DestinationSpec
from webhook_inbox.domain.secrets import LIFE
from webhook_inbox.handlers.completions import results, wait
from webhook_inbox.handlers.current_state import CATCHING_UP
from webhook_inbox.handlers.effects.journal import RESULT_LIMIT
from webhook_inbox.handlers.forwarding import aws
from webhook_inbox.handlers.ordering.gaps import BACKFILL_AFTER
from webhook_inbox.handlers.ordering.position import VERSION_LIMIT
from webhook_inbox.handlers.router import ReadyMade
from webhook_inbox.ingest.events import GENERAL_HEADERS
from webhook_inbox.ledger.pauses import CACHE_TTL
from webhook_inbox.processor.retry_policy import RETRY_AFTER_LIMIT
from webhook_inbox.processor.settlement import ROLLING
from webhookctl.app import app

NOW: Final = datetime(2026, 11, 21, tzinfo=UTC)
CRM: Final = DestinationSpec("crm", "https://crm.example")
SILENCE: Final = {
    TransportFailure.TIMED_OUT: "timeout, or an incomplete response",
    TransportFailure.CUT: "timeout, or an incomplete response",
    TransportFailure.UNREACHED: "no connection, no TLS",
    TransportFailure.TLS: "no connection, no TLS",
    TransportFailure.DNS: "its name cannot be resolved",
}


def matrix() -> dict[str, list[str]]:
    """Returns the rows of the matrix by what they are about."""
    return {cells[0]: cells[1:] for cells in sections()["ctx.http"].rows("answer")}


def row_of(status: int, *, keyed: bool, asked: bool) -> list[str]:
    """Returns the row that a reader finds for an answer: the most exact one."""
    conditions = {
        "where a key was sent": keyed,
        "without a key": not keyed,
        "with `Retry-After`": asked,
    }
    fitting = [
        name
        for name in matrix()
        if all(holds for words, holds in conditions.items() if words in name)
    ]
    for written in (str(status), f"{status // 100}xx"):
        found = [name for name in fitting if re.search(rf"\b{written}\b", name)]
        exact = [name for name in found if "with `" in name] or found
        if exact:
            [name] = exact
            return matrix()[name]
    raise AssertionError(f"{status} is not in the matrix")


def told(verdict: ResponseVerdict) -> list[str]:
    """Returns what the matrix should say: of the run, of its effect, of its destination."""
    error = None if verdict.meaning == "ok" else verdict.error("no")
    run = (
        "goes on"
        if error is None
        else "`Transient`"
        if isinstance(error, Transient)
        else "`Permanent`"
    )
    certain = (isinstance(error, Permanent) and not error.doubtful) or (
        isinstance(error, Transient) and error.refused
    )
    effect = "failed" if certain else "in doubt" if error else "committed"
    health = {Health.OK: "works", Health.FAILED: "fails", Health.LIMITED: "is paused"}
    paused = verdict.answer.kind is Health.FAILED and verdict.answer.retry_after is not None
    return [run, effect, health[verdict.answer.kind] + ", and is paused" * paused]


def assert_told(verdict: ResponseVerdict, row: list[str]) -> None:
    run, effect, health = row
    assert [re.split(",| and", run)[0], effect, health] == told(verdict)
    assert ("paged" in run) is verdict.page
    attempts = re.search(r"(\d) attempts", run)
    assert (int(attempts[1]) if attempts else None) == verdict.max_attempts


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("asked", [True, False])
def test_every_status_means_what_the_matrix_says(*, keyed: bool, asked: bool) -> None:
    headers = {"retry-after": "7"} if asked else {}
    for status in range(200, 600):
        verdict = classify(status, headers, spec=CRM, keyed=keyed, now=NOW)
        assert_told(verdict, row_of(status, keyed=keyed, asked=asked))


@pytest.mark.parametrize("failure", TransportFailure)
def test_every_silence_means_what_the_matrix_says(failure: TransportFailure) -> None:
    assert_told(classify_no_response(failure), matrix()[SILENCE[failure]])


def test_the_matrix_has_no_other_row() -> None:
    statuses = {name for name in matrix() if re.search(r"\b[2-5](\d\d|xx)\b", name)}
    assert matrix().keys() - statuses == set(SILENCE.values())


# -- numbers

BREAKER: Final = BreakerSpec()


@pytest.mark.parametrize(
    ("section", "claim"),
    [
        ("ctx", f"seen within {LIFE.total_seconds():g} s"),
        ("effects", f"up to {RESULT_LIMIT // 1024} KB as JSON"),
        ("effects", f"`{SAFE}`"),
        ("effects", f"1-{NAME_LIMIT} printable ASCII"),
        ("effects", f"at most {KEY_LIMIT} printable ASCII"),
        ("ctx.http", f"up to {downstream.ANSWER_LIMIT // 2**20} MB;"),
        ("ctx.http", f"{recording.BODY_LIMIT // 1024} KB are recorded"),
        ("ctx.http", f"its table ({CRM.timeout:g} s)"),
        ("ctx.http", f"less than {(exchange.MARGIN + exchange.SHORTEST).total_seconds():g} s left"),
        ("ctx.http", f"up to {LIMIT // timedelta(hours=1)} hours"),
        ("ctx.http", f"({CRM.key_lifetime / 3600:g} h)"),
        ("destinations", f"`failures` ({BREAKER.failures})"),
        ("destinations", f"`recovery` ({BREAKER.recovery:g} s)"),
        ("destinations", f"`drain` ({BREAKER.drain:g}/s)"),
        ("destinations", f"{SHORTEST_PAUSE.seconds} s to {LONGEST_PAUSE.seconds // 3600} h"),
        ("destinations", f"or {DEFAULT_PAUSE.seconds} s where"),
        ("destinations", f"half the rate for {SLOW[0][0] // SECOND} s"),
        ("destinations", f"for {(SLOW[1][0] - SLOW[0][0]) // SECOND} s more"),
        ("destinations", f"within {CACHE_TTL.seconds} s no run"),
        ("order", f"up to {VERSION_LIMIT} characters"),
        ("order", f"called after {BACKFILL_AFTER.seconds} s"),
        ("order", f"again after {CATCHING_UP.seconds} s"),
        ("policies and agents", f"more than {DEPTH_LIMIT} deep"),
        ("long-running jobs", f"up to {wait.NAME_LIMIT} characters"),
        ("long-running jobs", f"one second to {wait.LONGEST.days} days"),
        ("long-running jobs", f"up to {results.BODY_LIMIT // 1024} KB"),
        ("errors", "up to a day" if timedelta(days=1) == RETRY_AFTER_LIMIT else "no"),
        ("forwarding", f"up to {aws.INVOKE_LIMIT // 2**20} MB"),
        ("forwarding", f"{aws.INVOKE_LATER_LIMIT // 2**20} MB without `wait`"),
        ("forwarding", f"up to {aws.INPUT_LIMIT // 1024} KB"),
        ("forwarding", f"under {aws.ENTRY_LIMIT // 2**20} MB"),
        ("forwarding", f"for {int(aws.NAMES_KEPT[:-1]) // 24} days"),
        ("forwarding", f"needs {aws.MARGIN:g} s more"),
        ("invalid input and failures", "an hour" if timedelta(hours=1) == ROLLING else "no"),
    ],
)
def test_a_limit_is_the_codes(section: str, claim: str) -> None:
    assert claim in " ".join(sections()[section].text.split())


def test_the_headers_that_are_kept_or_heeded_are_named() -> None:
    general = {name for name in GENERAL_HEADERS if not name.startswith("x-agent")}
    assert all(f"`{name}`" in sections()["event"].text for name in general)
    agents = GENERAL_HEADERS - general
    assert all(f"`{name}`" in sections()["ctx.http"].text for name in agents)
    assert all(f"`{name}`" in sections()["ctx.http"].text for name in MILLISECONDS)


# -- rights


@pytest.mark.parametrize(
    ("service", "method", "ready"),
    [
        ("events", "put_events", lambda client: to_eventbridge("BUS", client=client)),
        ("lambda", "invoke", lambda client: invoke("NAME", client=client)),
        (
            "stepfunctions",
            "start_execution",
            lambda client: start_execution(
                "arn:aws:states:REGION:ACCOUNT:stateMachine:NAME", client=client
            ),
        ),
    ],
)
def test_a_missing_right_is_told_as_on_the_page(
    service: str, method: str, ready: Callable[[Any], ReadyMade]
) -> None:
    refusing = Aws(service).refuses(method, "AccessDeniedException", status=403)

    run = handled(ready(refusing.client), {})

    [line] = re.findall(r"allow\(.*?\)", run.error)
    assert f"`{line}`" in TEXT


# -- commands


@pytest.mark.parametrize(
    "words", sorted(set(re.findall(r"`webhookctl ([a-z]+(?: [a-z]+)?)", TEXT)))
)
def test_every_command_is_there(words: str) -> None:
    command = typer.main.get_command(app)
    for word in words.split():
        command = getattr(command, "commands", {}).get(word)
        assert command is not None, word


def test_every_section_is_linked_at_the_top() -> None:
    links = set(re.findall(r"\]\(#([^)\s]*)\)", TEXT))
    assert anchors(TEXT) - {"handlers"} <= links
