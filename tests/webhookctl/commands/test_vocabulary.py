"""All commands share one vocabulary of options, one form of JSON and one form of help."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.docs.test_commands import parse
from tests.webhookctl.commands.every_command import ARGUMENTS, EFFECTS, ended, leaves
from tests.webhookctl.commands.stage import Cli, Inbox, Result
from tests.webhookctl.commands.test_hostile_text import EVIL, assert_harmless
from webhook_inbox.client.connection import Selection
from webhook_inbox.client.target import Target
from webhookctl.errors import CommandError
from webhookctl.examples import EXAMPLES

LEAVES = leaves()
CALLS = {**ARGUMENTS, "check": ()}
OFFLINE = {"check", "completion", "conformance", "dev", "init", "verify"}
# It reads no inbox; its text has the target that is given.
QUOTING = {"runbook"}
# They print no JSON: one runs until it is stopped, the other prints a script.
WITHOUT_JSON = {"completion", "dev"}
SELECTING = ("--local", "--stack", "--profile", "--region")


def options(command: str) -> dict[str, Any]:
    """Returns the options of a command by their names."""
    return {name: p for p in LEAVES[command].params for name in p.opts if name.startswith("--")}


@pytest.fixture
def files(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the commands read."""
    (checkout.parent / "headers.txt").write_text("X-Acme-Id: evt-1\n")
    (checkout.parent / "body.json").write_text("[]")
    monkeypatch.setenv("SECRET", "only a test")
    return checkout


def run(cli: Cli, command: str, *more: str) -> Result:
    return cli(*command.split(), *CALLS[command], *more, stdin="only a test")


# -- options


@pytest.mark.parametrize("command", LEAVES)
def test_an_option_has_one_name_in_all_commands(command: str) -> None:
    old = {"--event-id", "--received-after", "--received-before", "--requested-by", "--fetch"}
    assert not old & options(command).keys()
    for name, metavar in {"--since": "TIME", "--until": "TIME", "--by": "NAME"}.items():
        assert name not in options(command) or options(command)[name].metavar == metavar
    # These two run until they are stopped.
    endless = command in {"inbox tail", "listen"}
    assert ("--since" in options(command)) == ("--until" in options(command) or endless)
    named = [p for p in LEAVES[command].params if p.param_type_name == "argument"]
    assert not [
        p for p in named if "event" in p.name and (p.metavar or "").strip("[]") != "EVENT_ID"
    ]


def test_every_command_has_an_effect_and_each_destructive_one_a_dry_run() -> None:
    assert EFFECTS.keys() == LEAVES.keys()
    destructive = {command for command, effect in EFFECTS.items() if effect == "destructive"}
    assert {command for command in LEAVES if "--yes" in options(command)} == destructive


@pytest.mark.parametrize("command", LEAVES)
def test_no_command_asks_a_question_that_no_option_answers(command: str) -> None:
    # `init` asks for an address that `--alarms` gives, and a secret is read from standard input.
    assert not [p.name for p in LEAVES[command].params if getattr(p, "prompt", None)]


@pytest.mark.parametrize("command", LEAVES)
def test_every_help_has_examples_that_parse(cli: Cli, command: str) -> None:
    shown = cli(*command.split(), "--help").out
    assert EXAMPLES[command]
    for example in EXAMPLES[command]:
        assert f"  {example}\n" in shown.partition("Examples:\n")[2]
        words = shlex.split(example.partition(" < ")[0].partition(" > ")[0])
        assert words[0] == "webhookctl"
        parse(["README.md" if word.endswith((".json", ".txt")) else word for word in words[1:]])


def test_no_example_is_of_a_command_that_is_gone() -> None:
    assert EXAMPLES.keys() == LEAVES.keys()


def test_every_command_that_records_a_person_takes_the_name() -> None:
    assert {command for command in LEAVES if "--by" in options(command)} == {
        *("alarms test", "audit", "complete", "erase", "handlers pause", "handlers resume"),
        *("hold approve", "hold deny", "secrets set", "sources reconcile"),
        *("destinations close", "destinations open", "rejected release", "replay"),
        *("secrets enrol", "secrets revoke", "secrets rotate", "skip", "smoke"),
        *("tenants pause", "tenants resume"),
    }


@pytest.mark.parametrize("command", CALLS)
def test_a_command_offers_a_target_exactly_if_it_uses_one(
    cli: Cli, inbox: Inbox, files: Path, command: str
) -> None:
    offers = set(SELECTING) & options(command).keys()
    assert offers == (set() if command in OFFLINE else set(SELECTING))
    run(cli, command)
    assert bool(cli.selected) == bool(offers - (set(SELECTING) if command in QUOTING else set()))


@pytest.mark.parametrize("command", sorted(OFFLINE))
@pytest.mark.parametrize("option", [["--local"], ["--stack", "a"], ["--region", "b"]])
def test_a_target_is_refused_where_it_has_no_effect(
    cli: Cli, files: Path, command: str, option: list[str]
) -> None:
    words = [*command.split(), *CALLS.get(command, ())]
    for given in ([*option, *words], [*words, *option]):
        shown = cli(*given, stdin="only a test")
        assert shown.code == 2
        assert f"no option {option[0]}" in shown.err


@pytest.mark.parametrize("command", sorted(WITHOUT_JSON))
def test_some_have_no_json(cli: Cli, command: str) -> None:
    words = [command, *CALLS.get(command, ())]
    for given in (["--json", *words], [*words, "--json"]):
        shown = cli(*given)
        assert (shown.code, shown.err) == (2, "")
        assert "no option --json" in shown.data["error"]["message"]


# -- help


@pytest.mark.parametrize("command", LEAVES)
def test_help_names_the_form_of_a_value_not_a_type(cli: Cli, command: str) -> None:
    shown = cli(*command.split(), "--help")
    assert shown.code == 0
    assert not re.search(r"<\w|x[<>]=|\b(INTEGER|RANGE|str|int|float|list\[)\b|\{", shown.out)
    for option in options(command).values():
        assert option.is_flag or re.fullmatch(r"[A-Z_=]+|[0-9.]+-[0-9]+", option.metavar)


def test_help_names_ranges_files_and_durations(cli: Cli) -> None:
    assert "--port 1-65535" in cli("dev", "--help").out
    assert "--rate 0.1-500" in cli("replay", "--help").out
    assert "--secret-file FILE" in cli("verify", "--help").out
    assert "--for DURATION" in cli("secrets", "enrol", "--help").out
    assert "--error-contains TEXT" in cli("replay", "--help").out
    assert "Usage: webhookctl send [OPTIONS] FILE...\n" in cli("send", "--help").out
    assert "Usage: webhookctl replay [OPTIONS] [EVENT_ID...]\n" in cli("replay", "--help").out


def test_a_range_is_still_checked(cli: Cli) -> None:
    assert cli("replay", "--limit", "10001").code == 2
    assert cli("inbox", "list", "--limit", "0").code == 2


# -- suggestions


@pytest.mark.parametrize(
    ("words", "guess"),
    [
        (["inbx"], "inbox"),
        (["inbox", "lst"], "list"),
        (["inbox", "list", "--sorce", "acme"], "--source"),
        (["--jsn", "inbox", "list"], "--json"),
        (["inbox", "list", "--source", "acne"], "acme"),
        (["inbox", "list", "--handler", "acme.fulfill"], "acme.fulfil"),
        (["secrets", "enrol", "githb"], "github"),
        (["send", "body.json", "--source", "strip"], "stripe"),
        (["handlers", "pause", "acme.notfy", "--reason", "why"], "acme.notify"),
    ],
)
def test_the_most_similar_name_is_suggested(
    cli: Cli, files: Path, words: list[str], guess: str
) -> None:
    shown = cli(*words)
    assert shown.code in {1, 2}
    assert f'did you mean "{guess}"?' in shown.err


# -- JSON


@pytest.mark.parametrize("command", sorted(CALLS.keys() - WITHOUT_JSON))
@pytest.mark.moto
def test_json_is_one_object_a_line(cli: Cli, inbox: Inbox, files: Path, command: str) -> None:
    inbox.deliver(type_="refunded")
    shown = run(cli, command, "--json")
    assert ended(shown.code, shown.out), shown.out
    assert all(isinstance(each, dict) for each in shown.objects)
    assert shown.code == 0 or shown.objects


def error_of(shown: Result) -> dict[str, Any]:
    error: dict[str, Any] = shown.objects[-1]["error"]
    assert error.keys() == {"message", "exit_status"}
    assert (error["exit_status"], shown.err) == (shown.code, "")
    return error


@pytest.mark.parametrize("command", LEAVES)
def test_a_wrong_call_is_json_too(cli: Cli, command: str) -> None:
    error = error_of(cli(*command.split(), "--json", "--" + EVIL))
    assert error["exit_status"] == 2
    assert_harmless(Result(2, error["message"], ""))


@pytest.mark.parametrize("command", sorted(CALLS.keys() - OFFLINE - QUOTING))
def test_a_failure_is_json_too(
    cli: Cli, files: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Selection) -> Target:
        raise CommandError(f"no target {EVIL}: use --local")

    monkeypatch.setattr(cli, "_connect", refuse)
    error = error_of(run(cli, command, "--json"))
    assert error["exit_status"] == 1
    assert error["message"].endswith(": use --local")
    assert_harmless(Result(1, error["message"], ""))


def test_a_wrong_call_shows_no_control_characters(cli: Cli) -> None:
    for words in (["inbox", "list", "--" + EVIL], [EVIL], ["inbox", "list", EVIL]):
        shown = cli(*words)
        assert (shown.code, shown.out) == (2, "")
        assert_harmless(shown)


def test_an_argument_behind_the_options_asks_for_no_json(cli: Cli) -> None:
    shown = cli("inbox", "inspect", "--", "--json")
    assert (shown.code, shown.out) == (1, "")
    assert shown.err.startswith("webhookctl: no event --json")


@pytest.mark.parametrize(
    "words",
    [
        "destinations open nope --reason test",
        "destinations close nope",
        "handlers pause nope --reason test",
        "handlers resume nope",
        "secrets set nope",
        "secrets rotate nope",
        "secrets status nope",
        "secrets enrol nope",
        "inbox list --source nope",
        "replay --handler nope",
        "replay --status dead_letter --where ((",
        "replay --selection 0123456789ab --yes",
        "inbox search ((",
        "audit --action nope",
    ],
)
def test_a_name_or_a_value_that_does_not_exist_is_a_wrong_call(cli: Cli, words: str) -> None:
    shown = cli(*words.split(), stdin="a-value")
    assert (shown.code, shown.out) == (2, ""), shown.err


def test_an_unknown_action_is_refused_with_the_known_ones(cli: Cli) -> None:
    shown = cli("audit", "--action", "nope")
    assert all(f"'{action}'" in shown.err for action in ("replay", "pause", "set secret"))
