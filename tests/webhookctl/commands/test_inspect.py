"""`inbox inspect`: what became of one event, and what to do next."""

import base64
import json
import re
import shlex
from pathlib import Path

import pytest

from tests.unit.handlers.completions.job_stage import Labour
from tests.unit.support.holding import committed, effect, shared_effect
from tests.webhookctl.commands.stage import Cli, Inbox
from webhook_inbox.client.evidence import Logs, attempt_evidence
from webhook_inbox.domain.errors import Deferred, Permanent, Transient
from webhook_inbox.domain.internal_errors import Postponed
from webhook_inbox.domain.model import Overview, Run
from webhook_inbox.domain.ports import Change
from webhook_inbox.ledger.schema import key_of_run
from webhook_inbox.queue.line import TURN, Line

ANSI = re.compile(r"\x1b")


@pytest.mark.moto
def test_a_done_event_as_json_has_exactly_these_fields(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver(type_="refunded")
    inbox.work()
    assert cli("inbox", "inspect", "evt-1", "--json").data == {
        "source": "acme",
        "event_id": "evt-1",
        "type": "refunded",
        "agent": None,
        "received_at": "2026-01-01T00:00:00.000Z",
        "status": "done",
        "fingerprint": inbox.overview().event.fingerprint,
        "next_action": "Nothing to do: every run is done.",
        "runs": [
            {
                "handler": "acme.notify",
                "status": "done",
                "attempt_count": 1,
                "generation": 0,
                "claimed_by": "worker-1",
                "claimed_until": None,
                "next_attempt_at": None,
                "done_at": "2026-01-01T00:00:00.001Z",
                "last_error": None,
                "attempts": [
                    {
                        "number": 1,
                        "started_at": "2026-01-01T00:00:00.001Z",
                        "ended_at": "2026-01-01T00:00:00.001Z",
                        "outcome": "done",
                        "error": None,
                        "worker": "worker-1",
                        "code_version": "v1",
                        "request_id": None,
                        "trace_id": "d10c38c795417acbdb22a684230658db",
                        "span_id": "27b05fc2ffd07e5d",
                        "logs": None,
                    }
                ],
                "effects": [],
            }
        ],
        "history": [
            {
                "at": "2026-01-01T00:00:00.001Z",
                "handler": "acme.notify",
                "kind": "attempt",
                "number": 1,
                "outcome": "done",
                "error": None,
            }
        ],
    }


REGION = "eu-west-1"
GROUPS = {"Inbox-Processor-1": "Inbox-Processor$Logs/1"}


def at_work(inbox: Inbox, event_id: str = "evt-1") -> tuple[Logs, Overview]:
    """Returns the logs of a stack, and an event that a function of it has processed."""
    inbox.deliver(event_id, type_="refunded")
    inbox.work_once(by="Inbox-Processor-1/8f5b7a52-0c1d-4c1e-9d5f-6a1c2b3d4e5f")
    return Logs(GROUPS, REGION), inbox.overview(event_id)


def test_an_attempt_names_its_invocation_its_code_and_where_its_log_lines_are(
    inbox: Inbox,
) -> None:
    logs, overview = at_work(inbox)
    [run] = overview.runs
    found = attempt_evidence(logs, overview.event, run, run.attempts[0])
    assert found.request_id == "8f5b7a52-0c1d-4c1e-9d5f-6a1c2b3d4e5f"
    assert found.code_version == run.code_version
    assert found.logs is not None
    assert found.logs.command == (
        "aws logs filter-log-events --region eu-west-1"
        " --log-group-name 'Inbox-Processor$Logs/1'"
        " --start-time 1767225300001 --end-time 1767225900001"
        """ --filter-pattern '{ $.event_id = "evt-1" }'"""
        " --query 'events[].message' --output text"
    )
    assert found.logs.url == (
        "https://eu-west-1.console.aws.amazon.com/cloudwatch/home?region=eu-west-1"
        "#logsV2:log-groups/log-group/Inbox-Processor$2524Logs$252F1"
        "/log-events$253Fstart$253D1767225300001$2526end$253D1767225900001"
        "$2526filterPattern$253D$25257B$252520$252524.event_id$252520$25253D$252520"
        "$252522evt-1$252522$252520$25257D"
    )
    assert list(logs.commands(overview.event, overview.runs)) == [found.logs.command]


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("cn-north-1", "cn-north-1.console.amazonaws.cn"),
        ("us-gov-west-1", "us-gov-west-1.console.amazonaws-us-gov.com"),
    ],
)
def test_the_console_is_that_of_the_partition(inbox: Inbox, region: str, host: str) -> None:
    _, overview = at_work(inbox)
    found = Logs(GROUPS, region).of(overview.event, overview.runs[0].attempts[0])
    assert found is not None
    assert found.url.startswith(f"https://{host}/")


def test_a_hostile_id_stays_within_the_filter_and_the_shells_word(inbox: Inbox) -> None:
    hostile = """a'"; $(x) \\ }"""
    logs, overview = at_work(inbox, hostile)
    [command] = logs.commands(overview.event, overview.runs)
    words = shlex.split(command)
    pattern = words[words.index("--filter-pattern") + 1]
    assert json.loads(pattern.removeprefix("{ $.event_id = ").removesuffix(" }")) == hostile


def test_an_unknown_function_or_an_inbox_on_this_machine_has_no_log_group(inbox: Inbox) -> None:
    _, overview = at_work(inbox)
    attempt = overview.runs[0].attempts[0]
    for logs in (Logs({}, REGION), Logs(GROUPS), Logs({})):
        assert logs.of(overview.event, attempt) is None
        assert list(logs.commands(overview.event, overview.runs)) == []


def test_a_run_that_has_not_begun_is_shown_as_accepted(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver(type_="refunded")
    shown = cli("inbox", "inspect", "evt-1", "--json").data
    assert shown["status"] == "accepted"
    assert shown["runs"] == [
        {
            "handler": "acme.notify",
            "status": "accepted",
            "attempt_count": 0,
            "generation": 0,
            "claimed_by": None,
            "claimed_until": None,
            "next_attempt_at": None,
            "done_at": None,
            "last_error": None,
            "attempts": [],
            "effects": [],
        }
    ]


def test_a_failing_run_shows_every_attempt_and_when_the_next_one_is_due(
    cli: Cli, inbox: Inbox
) -> None:
    inbox.script("acme.notify", Transient("the CRM answered 503"), Transient("and again"))
    inbox.deliver(type_="refunded")
    inbox.work()
    inbox.pass_minutes(1)
    [run] = cli("inbox", "inspect", "evt-1", "--json").data["runs"]
    assert [(a["number"], a["outcome"], a["error"]) for a in run["attempts"][:2]] == [
        (1, "failed", "the CRM answered 503"),
        (2, "failed", "and again"),
    ]
    assert run["last_error"] == "and again"


def test_an_attempt_that_died_shows_while_the_next_one_is_on(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver(type_="refunded")
    inbox.begin()
    inbox.clock.advance(minutes=10)
    inbox.begin()
    [run] = cli("inbox", "inspect", "evt-1", "--json").data["runs"]
    assert run["attempt_count"] == 2
    assert [(a["number"], a["outcome"], a["error"]) for a in run["attempts"]] == [
        (1, "lost", "its worker stopped silently")
    ]


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (Transient("503"), "failed", "Wait: attempt 2 of acme.notify (7 of 8 left) begins in"),
        (Permanent("422"), "dead_letter", "Fix acme.notify: retrying will not help"),
    ],
)
def test_the_next_action_is_told_in_words(
    cli: Cli, inbox: Inbox, error: Exception, status: str, words: str
) -> None:
    inbox.fails("acme.notify", error)
    inbox.deliver(type_="refunded")
    inbox.work_once()
    shown = cli("inbox", "inspect", "evt-1", "--json").data
    assert shown["status"] == status
    assert shown["next_action"].startswith(words)


def test_a_deferred_run_shows_when_it_goes_on(cli: Cli, inbox: Inbox) -> None:
    until = inbox.now.replace(hour=3)
    inbox.fails("acme.notify", Deferred(until, "the breaker is open"))
    inbox.deliver(type_="refunded")
    inbox.work_once()
    shown = cli("inbox", "inspect", "evt-1", "--json").data
    assert shown["status"] == "deferred"
    assert shown["runs"][0]["next_attempt_at"] == "2026-01-01T03:00:00.000Z"
    assert shown["runs"][0]["attempt_count"] == 0
    assert "sent by the reconciler" in shown["next_action"]


def test_what_a_run_waits_for_is_named_with_why(cli: Cli, inbox: Inbox) -> None:
    until = inbox.now.replace(hour=3)
    inbox.fails("acme.notify", Postponed(until, "its circuit is open", waits_for="destination crm"))
    inbox.deliver(type_="refunded")
    inbox.work_once()
    shown = cli("inbox", "inspect", "evt-1", "--json").data
    assert shown["runs"][0]["waits_for"] == "destination crm"
    assert shown["next_action"].endswith("It waits for destination crm: its circuit is open")
    people = cli("inbox", "inspect", "evt-1").out
    assert "\nwhy       destination crm: its circuit is open\n" in people


# -- effects


def failing(inbox: Inbox) -> Run:
    """Returns the failed run of an event, whose effects are then written by hand."""
    inbox.script("acme.notify", Transient("503"))
    inbox.deliver(type_="refunded")
    inbox.work_once()
    return inbox.run(handler="acme.notify")


@pytest.mark.moto
def test_an_effect_in_doubt_is_shown_with_its_key_and_for_how_long_that_is_honoured(
    cli: Cli, inbox: Inbox
) -> None:
    effect(inbox, failing(inbox), "create-order", in_doubt="retry")
    shown = cli("inbox", "inspect", "evt-1", "--json").data
    assert shown["runs"][0]["effects"] == [
        {
            "name": "create-order",
            "state": "in doubt",
            "key": "create-order:acme.notify:acme:evt-1",
            "attempt": 1,
            "started_at": "2026-01-01T00:00:00.001Z",
            "committed_at": None,
            "failed_at": None,
            "key_honoured_until": "2026-01-02T00:00:00.001Z",
            "in_doubt": "retry",
            "in_doubt_since": "2026-01-01T00:00:00.001Z",
            "error": None,
            "result": None,
            "shared": None,
            "found_by": None,
            "told_by": None,
            "reason": None,
        }
    ]
    assert shown["next_action"].endswith(
        "Effects: in doubt since 2026-01-01T00:00:00Z: create-order started and did not commit; its"
        " key is honoured until 2026-01-02T00:00:00Z: a retry that ends before then repeats it"
        " under the same key, a later one asks its probe, or holds the run."
    )
    assert "in doubt  key create-order:acme.notify:acme:evt-1" in (
        people := cli("inbox", "inspect", "evt-1").out
    )
    assert "since 2026-01-01T00:00:00.001Z" in people


def test_a_committed_effect_shows_its_result(cli: Cli, inbox: Inbox) -> None:
    effect(inbox, failing(inbox), "create-order", **committed({"id": "Zoë"}))
    shown = cli("inbox", "inspect", "evt-1", "--json").data
    [told] = shown["runs"][0]["effects"]
    assert (told["state"], told["result"]) == ("committed", {"id": "Zoë"})
    assert shown["next_action"].endswith(
        "Effects: retry-safe: create-order is committed and will not be repeated."
    )
    people = cli("inbox", "inspect", "evt-1").out
    assert "    create-order  committed  key create-order:acme.notify:acme:evt-1" in people
    assert 'result {"id": "Zoë"}' in people


def test_people_are_shown_a_long_result_in_short_and_programs_all_of_it(
    cli: Cli, inbox: Inbox
) -> None:
    effect(inbox, failing(inbox), "create-order", **committed("x" * 5000))
    [told] = cli("inbox", "inspect", "evt-1", "--json").data["runs"][0]["effects"]
    assert told["result"] == "x" * 5000
    line = next(x for x in cli("inbox", "inspect", "evt-1").out.splitlines() if "result" in x)
    assert line.endswith("xxx…")
    assert len(line) < 400


def test_a_result_that_was_not_recorded_is_none(cli: Cli, inbox: Inbox) -> None:
    effect(inbox, failing(inbox), **committed(None), unrecorded="its result has 400 KB")
    [told] = cli("inbox", "inspect", "evt-1", "--json").data["runs"][0]["effects"]
    assert (told["state"], told["error"]) == ("committed", "its result has 400 KB")
    assert "result null" not in cli("inbox", "inspect", "evt-1").out


def test_a_failed_effect_shows_why_and_is_retry_safe(cli: Cli, inbox: Inbox) -> None:
    effect(inbox, failing(inbox), status="failed", failed_at=1_767_225_600_001, error="422")
    shown = cli("inbox", "inspect", "evt-1", "--json").data
    [told] = shown["runs"][0]["effects"]
    assert (told["state"], told["failed_at"], told["error"]) == (
        "failed",
        "2026-01-01T00:00:00.001Z",
        "422",
    )
    assert shown["next_action"].endswith("Effects: retry-safe, side effect not committed.")


def test_an_effect_that_several_events_share_is_followed(cli: Cli, inbox: Inbox) -> None:
    shared = shared_effect(inbox, failing(inbox), "charge", "pay-7")
    [told] = cli("inbox", "inspect", "evt-1", "--json").data["runs"][0]["effects"]
    assert (told["name"], told["state"], told["shared"]) == ("charge", "in doubt", shared.pk)
    assert told["key"] == "charge:acme.notify:acme:evt-1"


def test_a_shared_effect_whose_row_has_expired_was_not_started(cli: Cli, inbox: Inbox) -> None:
    inbox.table.delete(shared_effect(inbox, failing(inbox), "charge", "pay-7"))
    [told] = cli("inbox", "inspect", "evt-1", "--json").data["runs"][0]["effects"]
    assert (told["state"], told["key_honoured_until"]) == ("not started", None)


def test_effects_come_in_the_order_in_which_they_were_started(cli: Cli, inbox: Inbox) -> None:
    run = failing(inbox)
    effect(inbox, run, "z-first", **committed(1))
    inbox.clock.advance(seconds=1)
    effect(inbox, run, "a-second")
    effects = cli("inbox", "inspect", "evt-1", "--json").data["runs"][0]["effects"]
    assert [told["name"] for told in effects] == ["z-first", "a-second"]


# -- for people


def test_a_live_lease_says_how_long_it_lasts(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver(type_="refunded")
    inbox.begin(by="lambda/stream-1", seconds=65)
    inbox.clock.advance(seconds=53)
    assert "lambda/stream-1" not in cli("inbox", "inspect", "evt-1").out
    shown = cli("inbox", "inspect", "evt-1", "-v").out
    assert "claimed_until    2026-01-01T00:01:05.001Z (in 12 s)" in shown
    assert "claimed_by       lambda/stream-1" in shown


def test_an_expired_lease_says_since_when(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver(type_="refunded")
    inbox.begin(seconds=60)
    inbox.clock.advance(seconds=101)
    shown = cli("inbox", "inspect", "evt-1", "--verbose").out
    assert "(expired 41 s ago)" in shown
    assert (
        "next      Wait: the worker of acme.notify stopped without a result in attempt 1" in shown
    )


def test_the_page_for_people_is_whole_and_plain(cli: Cli, inbox: Inbox) -> None:
    error = "a long error " * 70
    inbox.fails("acme.notify", Permanent(error))
    inbox.deliver(type_="refunded")
    inbox.work_once()
    shown = cli("inbox", "inspect", "evt-1")
    assert shown.code == 0
    assert shown.out.count(error.strip()) == 1
    assert not ANSI.search(shown.out)
    labels = [
        line.split()[0] for line in shown.out.partition("\n\n")[0].splitlines() if line[0] != " "
    ]
    assert labels == ["status", "event", "received", "happened", "why", "next", "body"]
    assert re.search(r"^    1  0 s ago  dead after 0.000 s  permanent: a long", shown.out, re.M)
    for hidden in ("fingerprint", "generation", "worker-1"):
        assert hidden not in shown.out


def test_verbose_adds_what_only_a_diagnosis_needs(cli: Cli, inbox: Inbox) -> None:
    error = "a long error " * 70
    inbox.fails("acme.notify", Permanent(error))
    inbox.deliver(type_="refunded")
    inbox.work_once()
    shown = cli("inbox", "inspect", "evt-1", "-v").out
    assert shown.count(error.strip()) == 2  # the last error, and its attempt
    for label in ("dedupe_key", "fingerprint"):
        assert re.search(rf"^{label} +\S", shown, re.MULTILINE), label
    for label in ("generation", "claimed_until", "next_attempt_at"):
        assert re.search(rf"^  {label} +\S", shown, re.MULTILINE), label
    assert re.search(
        r"^    1  2026-01-01T00:00:00.001Z  dead after 0.000 s  by worker-1", shown, re.M
    )


def test_a_replay_is_shown_with_who_and_why(cli: Cli, inbox: Inbox) -> None:
    inbox.fails("acme.notify", Permanent("422"))
    inbox.deliver(type_="refunded")
    inbox.work_once()
    inbox.replay(reason="the CRM is back", requested_by="ada")
    shown = cli("inbox", "inspect", "evt-1").out
    assert "    -  0 s ago  replay by ada (unverified): the CRM is back\n" in shown
    assert "status    pending\n" in shown


def test_a_handlers_error_cannot_speak_to_the_terminal(cli: Cli, inbox: Inbox) -> None:
    inbox.fails("acme.notify", Permanent("\x1b[2Jgone\nnext_action  all is well"))
    inbox.deliver(type_="refunded")
    inbox.work_once()
    shown = cli("inbox", "inspect", "evt-1")
    assert "\x1b" not in shown.out
    assert "\\x1b[2Jgone\\nnext_action" in shown.out
    assert cli("inbox", "inspect", "evt-1", "--json").data["runs"][0]["last_error"].endswith("well")


def test_the_provider_comes_from_the_deployed_manifest(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver()
    assert " from acme (provider hmac), type paid\n" in cli("inbox", "inspect", "evt-1").out


def test_without_a_manifest_the_source_stands_for_the_provider(cli: Cli, inbox: Inbox) -> None:
    cli.manifest = None
    inbox.deliver()
    assert " from acme, type paid\n" in cli("inbox", "inspect", "evt-1").out


def test_the_working_directory_decides_nothing(cli: Cli, inbox: Inbox, checkout: Path) -> None:
    (checkout / "inbox.toml").write_text("[sources.acme\n")
    mark = checkout / "imported"
    (checkout / "handlers" / "orders.py").write_text(f"open({str(mark)!r}, 'w')\n")
    inbox.fails("acme.notify", Transient("503"))
    inbox.deliver(type_="refunded")
    inbox.work_once()
    shown = cli("inbox", "inspect", "evt-1")
    assert shown.code == 0
    assert "(provider hmac)" in shown.out
    assert not mark.exists()


def test_how_many_attempts_are_left_comes_from_the_deployed_manifest(
    cli: Cli, inbox: Inbox
) -> None:
    inbox.script("acme.fulfil", Transient("503"))
    inbox.deliver()
    inbox.work_once()
    assert "(2 of 3 left)" in cli("inbox", "inspect", "evt-1", "--json").data["next_action"]


# -- bodies


def test_a_body_is_shown_when_it_is_asked_for(cli: Cli, inbox: Inbox) -> None:
    body = '{"name": "Zoë"}'
    inbox.deliver(body=body.encode())
    assert "Zoë" not in cli("inbox", "inspect", "evt-1").out
    assert cli("inbox", "inspect", "evt-1", "--body").out.endswith(f"\n{body}\n")
    assert "body" not in cli("inbox", "inspect", "evt-1", "--json").data
    assert cli("inbox", "inspect", "evt-1", "--json", "--body").data["body"] == body


def test_a_body_that_is_no_text_is_shown_in_base64(cli: Cli, inbox: Inbox) -> None:
    body = b"\xff\x00\xfe"
    inbox.deliver(body=body)
    shown = cli("inbox", "inspect", "evt-1", "--json", "--body").data
    assert base64.b64decode(shown["body_base64"]) == body


@pytest.mark.moto
def test_a_large_body_is_fetched_from_the_bucket(cli: Cli, inbox: Inbox) -> None:
    body = bytes(range(256)) * 100
    inbox.deliver(body=body)
    shown = cli("inbox", "inspect", "evt-1", "--json", "--body").data
    assert base64.b64decode(shown["body_base64"]) == body


# -- which event


def test_an_unknown_event_says_where_to_look(cli: Cli) -> None:
    shown = cli("inbox", "inspect", "evt-9")
    assert (shown.code, shown.out) == (1, "")
    assert shown.err.startswith(
        "webhookctl: no event evt-9 of acme, github, stripe: check the id at the provider,"
    )
    assert shown.err.count("\n") == 1


def test_an_id_that_two_sources_know_asks_for_the_source(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver("same")
    inbox.deliver("same", source="github")
    shown = cli("inbox", "inspect", "same")
    assert shown.code == 1
    assert shown.err == ("webhookctl: same exists in acme, github: choose one with --source\n")
    assert cli("inbox", "inspect", "same", "--source", "github", "--json").data["type"] == "issues"


@pytest.mark.moto
def test_an_id_too_long_for_a_key_is_found_all_the_same(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver("x" * 600)
    shown = cli("inbox", "inspect", "x" * 600, "--json").data
    assert shown["event_id"].startswith("sha256:")


def test_an_expired_event_is_unknown(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver()
    inbox.clock.advance(days=36)
    assert cli("inbox", "inspect", "evt-1").code == 1


def test_refused_deliveries_of_the_id_are_told(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver()
    inbox.deliver(body=b'{"other": true}')
    shown = cli("inbox", "inspect", "evt-1").out
    assert "acme: a delivery with this id and different content was rejected as a conflict" in shown
    assert "kept for 35 days in the table ledger, pk conflict#acme#evt-1, sk " in shown


def test_an_id_known_only_from_a_refusal_says_so(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver()
    inbox.clock.advance(days=30)
    inbox.deliver(body=b'{"other": true}')
    inbox.clock.advance(days=6)
    shown = cli("inbox", "inspect", "evt-1")
    assert shown.code == 1
    assert "the event has expired; acme: a delivery with this id and different" in shown.err


def test_an_empty_id_is_told_as_one(cli: Cli) -> None:
    shown = cli("inbox", "inspect", "")
    assert (shown.code, shown.out) == (1, "")
    assert shown.err.startswith("webhookctl: EVENT_ID is empty: use an id from `webhookctl ")


def test_an_unknown_source_is_told_instead_of_an_unknown_event(cli: Cli) -> None:
    shown = cli("inbox", "inspect", "evt-9", "--source", "acne")
    assert (shown.code, shown.out) == (2, "")
    assert (
        shown.err
        == 'webhookctl: no source acne; known sources: acme, github, stripe; did you mean "acme"?\n'
    )


# -- jobs


def test_a_job_that_is_waited_for_is_shown_with_its_times_and_without_its_token(
    cli: Cli, inbox: Inbox
) -> None:
    labour = Labour(inbox)
    labour.begin()
    shown = cli("inbox", "inspect", "evt-1")
    assert "why       completion of render: started 2026-01-01T00:00:00Z" in shown.out
    assert (
        "waits\n    render  waiting  job 1  since 2026-01-01T00:00:00.001Z"
        "  until 2026-01-02T00:00:00.001Z\n"
    ) in shown.out
    assert "webhookctl complete evt-1 --source acme" in shown.out
    runs = cli("inbox", "inspect", "evt-1", "--json").data["runs"]
    [run] = [run for run in runs if "waits" in run]
    assert run["waits"] == [
        {
            "name": "render",
            "status": "waiting",
            "job": 1,
            "since": "2026-01-01T00:00:00.001Z",
            "until": "2026-01-02T00:00:00.001Z",
            "ended_at": None,
            "ended_by": None,
            "late": False,
            "error": None,
            "result": None,
        }
    ]


@pytest.mark.parametrize(
    ("told", "line"),
    [
        ({"result": "x" * 500}, f'render  completed  job 1 .*  by token  result "{"x" * 118}…$'),
        ({"error": "out of paper"}, "render  failed  job 1 .*  by token  error out of paper$"),
    ],
)
def test_a_job_that_ended_is_shown_with_what_came_of_it(
    cli: Cli, inbox: Inbox, told: dict[str, str], line: str
) -> None:
    labour = Labour(inbox)
    labour.begin()
    labour.complete(body=told)
    assert re.search(line, cli("inbox", "inspect", "evt-1").out, re.MULTILINE)


def test_a_run_that_waits_for_its_turn_shows_its_place(cli: Cli, inbox: Inbox) -> None:
    run = inbox.dead()
    line = Line(inbox.table, run.handler, "cus_1", blocks=True)
    assert run.expires_at is not None
    for event_id in ("evt-0", "evt-0", "evt-1", "evt-2"):
        line.enter("acme", event_id, place=0, run_expires_at=run.expires_at, now=inbox.now)
    turn = {"status": "deferred", "parked": True, "waits_for": TURN, "ordering_key": "cus_1"}
    inbox.table.update(key_of_run(run), Change(set={**turn, "last_error": "behind evt-z"}))

    shown = cli("inbox", "inspect", "evt-1")

    assert "it is number 2 of 3 in the line of cus_1; the first is evt-0" in shown.out


def test_the_next_action_in_json_selects_the_same_target(cli: Cli, inbox: Inbox) -> None:
    inbox.fails("acme.notify", Permanent("422"))
    inbox.deliver("evt-1", type_="refunded")
    inbox.work()
    cli.local = True
    for words in (["inbox", "inspect", "evt-1"], ["inbox", "list"]):
        shown = cli("--local", *words, "--json")
        assert "webhookctl --local replay " in shown.data["next_action"]
