"""Whatever providers and handlers wrote, no command's output controls a terminal or deceives."""

import json
import shlex
import unicodedata
from pathlib import Path

import pytest

from tests.unit.support.world import SECRET
from tests.webhookctl.commands.stage import Cli, Inbox, Result
from webhook_inbox.domain.errors import Held, Permanent, Transient

# Screen and clipboard sequences in 7 and 8 bits, bidi, zero width, tags, fillers, shell syntax.
EVIL = (
    "\x1b[2J\x1b]52;c;ZXZpbA==\x07\x9b31m\x90\x7f\u202eevil\u2066\u200b\u200d\u2060\ufeff\u034f\u3164"
    "\U000e0041\u2028$(touch owned)`touch owned`'\";"
)
# Ingest refuses an id with control characters.
ID = "".join(c for c in EVIL if unicodedata.category(c) != "Cc" and c != "\u2028")
BODY = json.dumps({"note": EVIL}, ensure_ascii=False).encode() + b"\r\x1b]0;x\x07\n"
UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
WHY = ("--reason", EVIL, "--by", EVIL)


def assert_harmless(shown: Result) -> None:
    for text in (shown.out, shown.err):
        unseen = {c for c in text if unicodedata.category(c) in UNSEEN} - {"\n"}
        assert not unseen, text
        assert not {"\u034f", "\u3164"} & set(text), text


def harmless(cli: Cli, *arguments: str) -> Result:
    """Calls a command in its form for people and as JSON, and returns the former's result."""
    shown = cli(*arguments)
    assert_harmless(shown)
    return shown


@pytest.fixture
def hostile(inbox: Inbox) -> Inbox:
    """A ledger in which everything that others wrote is hostile."""
    inbox.script("acme.fulfil", Permanent(EVIL))
    inbox.deliver("dead" + ID, body=BODY)
    inbox.work()
    inbox.script("acme.notify", Transient(EVIL))
    inbox.deliver("fail" + ID, type_="refunded", body=BODY)
    inbox.work_once()
    return inbox


EVENTS = ("dead" + ID, "fail" + ID)


def test_lists_and_inspection(cli: Cli, hostile: Inbox) -> None:
    for form in ([], ["--json"]):
        assert harmless(cli, "inbox", "list", *form).code == 0
        for event_id in EVENTS:
            for body in ([], ["--body"]):
                shown = harmless(cli, "inbox", "inspect", event_id, *body, *form)
                assert shown.code == 0
    assert (
        harmless(cli, "inbox", "inspect", EVENTS[0], "--json", "--body").data["body"].encode()
        == BODY
    )


def test_replay_and_skip(cli: Cli, hostile: Inbox) -> None:
    for form in ([], ["--json"]):
        assert harmless(cli, "replay", "--source", "acme", *form).code == 0
        assert harmless(cli, "replay", EVENTS[0], "--reason", EVIL, *form).code == 0
    assert harmless(cli, "skip", EVENTS[0], "--handler", "acme.fulfil", *WHY).code == 0
    assert harmless(cli, "skip", EVENTS[0], *WHY).code == 1


def test_holds(cli: Cli, inbox: Inbox) -> None:
    inbox.script("acme.notify", Held(EVIL), Held(EVIL))
    inbox.deliver("held" + ID, type_="refunded", body=BODY)
    inbox.work()
    for form in ([], ["--json"]):
        assert harmless(cli, "hold", "list", *form).code == 0
        assert harmless(cli, "inbox", "inspect", "held" + ID, *form).code == 0
    assert harmless(cli, "hold", "approve", "held" + ID, "--hold", EVIL, *WHY).code == 1
    assert harmless(cli, "hold", "deny", "held" + ID, *WHY).code == 0
    assert harmless(cli, "hold", "deny", "held" + ID, *WHY).code == 1


def test_pauses(cli: Cli, hostile: Inbox) -> None:
    assert harmless(cli, "handlers", "pause", "acme.notify", *WHY).code == 0
    hostile.clock.advance(minutes=5)
    assert harmless(cli, "handlers", "pause", "acme.notify", *WHY).code == 1
    for form in ([], ["--json"]):
        assert harmless(cli, "handlers", "list", *form).code == 0
    assert harmless(cli, "handlers", "resume", "acme.notify", *WHY).code == 0


def test_rejected_deliveries(cli: Cli, inbox: Inbox, checkout: Path) -> None:
    inbox.deliver("rejected" + EVIL, body=BODY, secret=SECRET + "x")
    for form in ([], ["--json"]):
        listed = harmless(cli, "rejected", "list", *form)
        assert listed.code == 0
        id_ = cli("rejected", "list", "--json").objects[0]["id"]
        for body in ([], ["--body"]):
            assert harmless(cli, "rejected", "show", id_, *body, *form).code == 0
        harmless(cli, "rejected", "release", *form)


@pytest.mark.parametrize(
    "arguments",
    [
        ("inbox", "inspect", EVIL),
        ("inbox", "list", "--source", EVIL),
        ("inbox", "list", "--handler", EVIL),
        ("replay", EVIL),
        ("replay", "--handler", EVIL),
        ("skip", EVIL, *WHY),
        ("hold", "approve", EVIL, *WHY),
        ("complete", EVIL, "--result", "1"),
        ("complete", "--token", EVIL, "--result", "1"),
        ("handlers", "pause", EVIL, *WHY),
        ("handlers", "resume", EVIL),
        ("rejected", "show", EVIL),
        ("secrets", "enrol", EVIL),
        ("sources", "reconcile", EVIL, "--hook", EVIL),
        ("sources", "reconcile", "github", "--hook", EVIL),
        ("conformance", EVIL[:60].replace("/", "")),
    ],
    ids=" ".join,
)
def test_errors(cli: Cli, checkout: Path, arguments: tuple[str, ...]) -> None:
    for form in ([], ["--debug"]):
        assert harmless(cli, *arguments, *form).code != 0


def test_a_hint_is_for_that_event_and_nothing_else(cli: Cli, hostile: Inbox) -> None:
    action = cli("inbox", "inspect", EVENTS[1], "--json").data["next_action"]
    hint = action[action.index("webhookctl replay") :]
    assert "$'" in hint
    assert_harmless(Result(0, hint, ""))


def test_an_id_that_looks_like_an_option_is_an_argument(cli: Cli, inbox: Inbox) -> None:
    inbox.script("acme.notify", Held("why"))
    inbox.deliver("--help", type_="refunded")
    inbox.work()
    action = cli("inbox", "inspect", "--json", "--", "--help").data["next_action"]
    approve = action[action.index("webhookctl hold approve") :].partition(" To deny")[0]
    assert shlex.split(approve)[-2:] == ["--", "--help"]
