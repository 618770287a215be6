"""`complete`: a person tells what came of a job, by its token or by its event."""

import json

import pytest

from tests.unit.handlers.completions.job_stage import Labour
from tests.webhookctl.commands.stage import CALLER, KIM, Cli, Inbox
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.ports import Change
from webhook_inbox.handlers.completions.tokens import CompletionToken
from webhook_inbox.ledger.schema import run_key

BY_NAME = ("evt-1", "--handler", "acme.fulfil", "--effect", "render")


@pytest.fixture
def labour(inbox: Inbox) -> Labour:
    """A job that is under way."""
    found = Labour(inbox)
    inbox.behaviours["acme.notify"] = lambda *_: None
    found.begin()
    return found


def done(labour: Labour) -> bool:
    labour.world.work()
    return labour.world.run().status is Status.DONE


def test_a_token_completes_its_job(cli: Cli, labour: Labour) -> None:
    shown = cli("complete", "--token", labour.token, "--result", '{"pages": 7}')

    assert (shown.code, shown.out) == (0, "render of acme.fulfil: recorded; its run continues\n")
    assert "webhookctl inbox inspect evt-1 --source acme" in shown.err
    assert done(labour)
    assert labour.returned == [{"pages": 7}]


@pytest.mark.moto
def test_a_name_completes_it_as_well_and_is_audited(cli: Cli, labour: Labour) -> None:
    shown = cli("complete", *BY_NAME, "--result", "[1]", "--by", "kim", "--json")

    assert shown.data == {
        "source": "acme",
        "event_id": "evt-1",
        "handler": "acme.fulfil",
        "effect": "render",
        "outcome": "recorded",
    }
    assert done(labour)
    assert labour.returned == [[1]]
    [entry] = labour.world.table.query(f"audit#{labour.world.now:%Y-%m-%d}")
    assert (entry["action"], entry["by"], entry["event_ids"]) == ("complete", CALLER, ["evt-1"])
    assert (entry["on_behalf_of"], entry["counts"]) == ("kim", {"recorded": 1})
    assert labour.row["ended_by"] == f"hand: {KIM}"


def test_the_event_alone_is_enough_where_one_run_waits(cli: Cli, labour: Labour) -> None:
    assert cli("complete", "evt-1", "--result", "null", "--by", "kim").code == 0
    assert done(labour)
    assert labour.returned == [None]


def test_a_job_that_failed_starts_anew_with_retry(cli: Cli, labour: Labour) -> None:
    cli("complete", "--token", labour.token, "--error", "out of paper", "--retry")
    labour.world.work()

    run = labour.world.run()
    assert (run.status, run.last_error) == (Status.FAILED, "render failed: out of paper")
    labour.world.clock.advance(minutes=10)
    labour.world.work()
    assert [key for key, _ in labour.started] == [
        "render:acme.fulfil:acme:evt-1",
        "render:2:acme.fulfil:acme:evt-1",
    ]


def test_a_name_means_its_newest_job(cli: Cli, labour: Labour) -> None:
    cli("complete", "--token", labour.token, "--error", "out of paper", "--retry")
    labour.world.work()
    labour.world.clock.advance(minutes=10)
    labour.world.work()
    labour.world.clock.advance(hours=25)
    labour.world.work()
    assert labour.world.run().status is Status.DEAD_LETTER

    shown = cli("complete", "evt-1", "--result", "7")

    assert shown.out.startswith("render of acme.fulfil: recorded too late")
    assert "result" not in labour.row
    assert "result" in labour.job(2)


def test_another_result_is_refused(cli: Cli, labour: Labour) -> None:
    cli("complete", "--token", labour.token, "--result", "1")
    shown = cli("complete", *BY_NAME, "--result", "2", "--by", "kim")

    assert shown.code == 1
    assert "the job has completed with a different end" in shown.err


def test_another_error_is_refused_in_words_where_the_job_is_to_be_started_anew(
    cli: Cli, labour: Labour
) -> None:
    cli("complete", *BY_NAME, "--error", "out of paper", "--retry")
    labour.world.work()
    shown = cli("complete", *BY_NAME, "--error", "on fire")
    assert "the job has failed with a different end" in shown.err


def test_a_dead_run_keeps_the_result_for_a_replay(cli: Cli, labour: Labour) -> None:
    change = Change(set={"status": "dead_letter", "dead_at": 1})
    labour.world.table.update(run_key("acme", "evt-1", "acme.fulfil"), change)

    shown = cli("complete", *BY_NAME, "--result", "1", "--by", "kim")

    assert shown.out == ("render of acme.fulfil: recorded too late; replay the run to use it\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--token", "evil", "--result", "1"), "no such token, or its event has expired"),
        (("evt-9", "--result", "1"), "no run waits for a job of event evt-9"),
        (
            (*BY_NAME[:3], "--effect", "bind", "--result", "1"),
            "acme.fulfil of acme for render: waiting: choose one",
        ),
        (
            ("evt-9", "--source", "acne", "--result", "1"),
            "no source acne; known sources: acme, github, stripe",
        ),
        (("evt-1", "--error", " "), 'send {"result": …}, or {"error": "why"}'),
    ],
)
def test_what_cannot_be_completed_is_said(
    cli: Cli, labour: Labour, arguments: tuple[str, ...], said: str
) -> None:
    shown = cli("complete", *arguments)
    wrong_call = "--source" in arguments
    assert (shown.code, labour.row["status"]) == (2 if wrong_call else 1, "waiting")
    assert said in shown.err


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("TOKEN",),
        ("--result", "1"),
        ("TOKEN", "evt-1", "--result", "1"),
        ("TOKEN", "--result", "1", "--error", "x"),
        ("TOKEN", "--result", "1", "--retry"),
        ("TOKEN", "--result", "{"),
    ],
)
def test_a_command_that_makes_no_sense_is_refused(
    cli: Cli, labour: Labour, arguments: tuple[str, ...]
) -> None:
    assert cli("complete", *arguments).code == 2
    assert labour.row["status"] == "waiting"


def test_no_output_holds_the_token(cli: Cli, labour: Labour) -> None:
    token: CompletionToken = labour.token
    shown = [
        cli("complete", "--token", token, "--result", json.dumps(f"by {token}")),
        cli("complete", "--token", token, "--result", "2"),
        cli("inbox", "inspect", "evt-1"),
        cli("inbox", "inspect", "evt-1", "--json"),
    ]
    assert all(token not in each.out + each.err for each in shown)


def test_a_token_is_read_from_standard_input(cli: Cli) -> None:
    shown = cli("complete", "--token", "-", "--result", "1", stdin="no-token-of-ours\n")
    assert shown.code == 1
    assert shown.err == cli("complete", "--token", "no-token-of-ours", "--result", "1").err


def test_a_token_in_place_of_an_event_is_refused_and_not_printed(cli: Cli, labour: Labour) -> None:
    shown = cli("complete", labour.token, "--result", "1")
    assert shown.code == 2
    assert "give it with --token" in shown.err
    assert labour.token not in shown.out + shown.err
