"""The tools that the server offers to an agent, and the results of its calls."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client

from tests.waiting import DEADLINE
from tests.webhookctl.commands.every_command import leaves
from tests.webhookctl.commands.stage import CALLER, Cli, Inbox
from webhook_inbox.adapters.system import SystemClock
from webhook_inbox.client.client import InboxClient
from webhook_inbox.client.connection import Selection
from webhook_inbox.client.errors import NotFound, WrongArgument
from webhook_inbox.client.replays import ReplayFilter, ReplayPlan
from webhook_inbox.client.suggestions import Program
from webhook_inbox.domain.errors import Permanent, Unavailable
from webhook_inbox.domain.model import EventStatus, Status
from webhookctl.agents import server as agents
from webhookctl.agents.server import ERROR_LIMIT, RESULT_LIMIT, AgentServer
from webhookctl.agents.tools import MEANINGS, TOOLS, AgentTool, ToolCall

HOSTILE = ("--yes", "x --yes", "-h", "$(id)", "a\nb", "\u202e", "--force=1")
READING = {tool.name for tool in TOOLS if not tool.writes}
PROGRAM = Program(("webhookctl", "--stack", "WebhookInbox-prod"))


@pytest.fixture
def client(cli: Cli, inbox: Inbox) -> InboxClient:
    """A client that may change the inbox."""
    return InboxClient(cli._connect(Selection()), write=True, clock=inbox.clock)


def server(
    client: InboxClient | None = None, *, write: bool = False, approval: bool = False
) -> AgentServer:
    def connect() -> InboxClient:
        assert client is not None, "no operation is expected"
        return client

    clock = client._scope.clock if client else SystemClock()
    return AgentServer(connect, clock, PROGRAM, write, approval)


def called(
    of: AgentServer, name: str, given: dict[str, Any] | None = None
) -> tuple[dict[str, Any], bool]:
    """Calls a tool as a client does; returns the result, and whether it is an error."""

    async def call() -> types.CallToolResult:
        info = types.Implementation(name="night-shift", version="1")
        async with Client(of.server(), client_info=info) as client:
            return await client.call_tool(name, given or {})

    result = anyio.run(call)
    [text] = result.content
    assert isinstance(text, types.TextContent)
    assert json.loads(text.text) == result.structured_content
    return result.structured_content, result.is_error


def listed(*, write: bool = False) -> dict[str, types.Tool]:
    async def tools() -> list[types.Tool]:
        async with Client(server(write=write).server()) as client:
            return (await client.list_tools()).tools

    return {tool.name: tool for tool in anyio.run(tools)}


def test_without_write_only_reading_tools_are_offered() -> None:
    tools = listed()
    assert set(tools) == READING
    assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools.values())
    result, failed = called(server(), "skip_run", {"event_id": "e", "reason": "r"})
    assert failed
    assert result == {"error": "skip_run changes the inbox: start `webhookctl mcp` with --write"}


def actions(inbox: Inbox) -> list[tuple[str, str, str]]:
    rows = inbox.rows("audit#")
    return [(row["action"], row["by"], row["on_behalf_of"]) for row in rows]


def test_with_write_the_agent_is_named_and_acts(client: InboxClient, inbox: Inbox) -> None:
    assert set(listed(write=True)) == {tool.name for tool in TOOLS}
    inbox.dead()
    writing = server(client, write=True)
    planned, failed = called(writing, "plan_replay", {"status": "dead_letter"})
    assert not failed
    [plan] = planned["untrusted"]
    assert (plan["dry_run"], plan["counts"], actions(inbox)) == (True, {"would_replay": 1}, [])
    given = {"selection": plan["selection"], "reason": "the ERP is back"}
    result, failed = called(writing, "replay_selection", given)
    assert not failed
    assert result["untrusted"][0]["counts"] == {"replayed": 1}
    assert inbox.run().status is Status.PENDING
    assert actions(inbox) == [("replay", CALLER, "agent night-shift")]


def test_a_result_is_the_object_that_the_command_prints(
    client: InboxClient, inbox: Inbox, cli: Cli
) -> None:
    inbox.dead()
    client.handlers.pause("acme.notify", reason="down", by=client.actor())
    for name, words in {
        "list_events": ("inbox", "list"),
        "list_errors": ("inbox", "errors"),
        "list_holds": ("hold", "list"),
        "list_destinations": ("destinations", "list"),
        "list_handlers": ("handlers", "list"),
        "read_audit": ("audit",),
    }.items():
        result, failed = called(server(client), name)
        assert not failed
        assert result == {"untrusted": cli(*words, "--json").objects}


def test_the_checks_of_an_inbox_that_cannot_be_read_are_an_error(
    client: InboxClient, cli: Cli
) -> None:
    result, failed = called(server(client), "check_inbox")
    told = cli("doctor", "--json").data["error"]["message"]
    assert (failed, result["untrusted_message"]) == (True, told)


def test_an_event_is_inspected_and_found_by_its_body(
    client: InboxClient, inbox: Inbox, cli: Cli
) -> None:
    inbox.dead()
    inbox.clock.advance(seconds=1)
    result, failed = called(server(client), "inspect_event", {"event_id": "evt-1"})
    assert not failed
    assert result["untrusted"] == cli("inbox", "inspect", "evt-1", "--json").objects
    found, failed = called(server(client), "search_events", {"expression": "id", "since": "1h"})
    assert not failed
    words = ("inbox", "search", "id", "--since", "1h", "--json")
    assert found["untrusted"] == cli(*words).objects
    assert [each["event_id"] for each in found["untrusted"]] == ["evt-1"]


def test_the_other_changes_name_the_agent(client: InboxClient, inbox: Inbox) -> None:
    inbox.dead()
    writing, name = server(client, write=True), {"name": "acme.notify", "reason": "down"}
    for tool, given in (
        ("pause_handler", name),
        ("resume_handler", name),
        ("skip_run", {"event_id": "evt-1", "reason": "obsolete"}),
    ):
        assert not called(writing, tool, given)[1]
    expected = [(name, CALLER, "agent night-shift") for name in ("pause", "resume", "skip")]
    assert actions(inbox) == expected


def test_with_approval_a_person_gets_the_command_and_nothing_happens() -> None:
    given = {"name": "acme.fulfil", "reason": "it's down"}
    result, failed = called(server(write=True, approval=True), "pause_handler", given)
    assert not failed
    assert result["waits_for_approval"]
    assert result["a_person_runs"] == (
        "webhookctl --stack WebhookInbox-prod handlers pause '--by=agent night-shift'"
        " '--reason=it'\"'\"'s down' -- acme.fulfil"
    )


def test_a_reading_tool_has_a_client_that_only_reads(
    client: InboxClient, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pause(call: ToolCall) -> list[object]:
        return [call.client.handlers.pause("acme.notify", reason="why", by=call.by)]

    result, failed = called(with_tool(monkeypatch, server(client), pause), "list_handlers")
    assert (failed, result["error"], actions(inbox)) == (True, "Refused", [])


def with_tool(monkeypatch: pytest.MonkeyPatch, of: AgentServer, perform: Any) -> AgentServer:
    """Lets `list_handlers` perform something else."""
    tools = [replace(t, perform=perform) if t.name == "list_handlers" else t for t in TOOLS]
    monkeypatch.setattr(agents, "TOOLS", tools)
    return of


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (NotFound("no event evt-1"), "NotFound"),
        (WrongArgument("no handler x"), "WrongArgument"),
        (Unavailable("dynamodb", "Query", "Throttled"), "Unavailable"),
        (KeyError("x"), "InternalError"),
    ],
)
def test_an_error_has_its_kind_and_its_message(
    client: InboxClient, monkeypatch: pytest.MonkeyPatch, error: Exception, kind: str
) -> None:
    def perform(_: ToolCall) -> Iterator[object]:
        yield {"event_id": "evt-1"}
        raise error

    result, failed = called(with_tool(monkeypatch, server(client), perform), "list_handlers")
    assert failed
    assert (result["error"], result["untrusted"]) == (kind, [{"event_id": "evt-1"}])
    assert str(error) in result["untrusted_message"]


def test_a_replay_that_stopped_is_an_error_with_its_report(
    client: InboxClient, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox.dead()
    writing = server(client, write=True)
    [plan] = called(writing, "plan_replay", {"status": "dead_letter"})[0]["untrusted"]
    inbox.fails("acme.fulfil", Permanent("still no such order"))
    monkeypatch.setattr(inbox.clock, "sleep", lambda _: inbox.work())
    given = {"selection": plan["selection"], "reason": "fixed", "first": 1}
    result, failed = called(writing, "replay_selection", given)
    assert (failed, result["error"]) == (True, "EndedEarly")
    assert result["untrusted"][0]["outcomes"] == {"dead_letter": 1}
    assert "1 of the first 1 failed again" in result["untrusted_message"]


def test_a_tool_that_takes_too_long_is_stopped(
    client: InboxClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents, "TIMEOUT", 0.05)
    stopped = threading.Event()

    def perform(call: ToolCall) -> list[object]:
        call.stop = stopped.set
        assert stopped.wait(DEADLINE)
        return []

    result, failed = called(with_tool(monkeypatch, server(client), perform), "list_handlers")
    assert (failed, "did not end within" in result["error"]) == (True, True)
    assert stopped.is_set()


@pytest.mark.parametrize("slow", ["connect", "resume"])
def test_a_change_that_is_stopped_before_it_begins_does_not_begin(
    client: InboxClient, inbox: Inbox, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    inbox.dead()
    plan = client.replays.plan(ReplayFilter(status=(EventStatus.DEAD_LETTER,)), by=client.actor())
    told, ended = threading.Event(), threading.Event()
    resume, writing = client.replays.resume, server(client, write=True)

    def late(*given: Any, **more: Any) -> ReplayPlan:
        assert told.wait(DEADLINE)
        return resume(*given, **more)

    def connect() -> InboxClient:
        assert told.wait(DEADLINE)
        return client

    def answered(*results: Any) -> types.CallToolResult:
        try:
            return answer(*results)
        finally:
            ended.set()

    answer = agents._answer
    monkeypatch.setattr(agents, "_answer", answered)
    monkeypatch.setattr(agents, "TIMEOUT", 0.05)
    if slow == "connect":
        writing = replace(writing, connect=connect)
    else:
        monkeypatch.setattr(client.replays, "resume", late)
    given = {"selection": plan.selection, "reason": "fixed"}

    async def call() -> types.CallToolResult:
        result = await writing.call("replay_selection", given, agent="a")
        told.set()
        assert await anyio.to_thread.run_sync(ended.wait, DEADLINE)
        return result

    result = anyio.run(call)
    assert "did not end within" in result.structured_content["error"]
    assert inbox.run().status is Status.DEAD_LETTER
    assert inbox.rows("audit#") == []


def test_a_replay_ends_where_its_agent_cancels_the_call(
    client: InboxClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, stopped = threading.Event(), threading.Event()

    def perform(call: ToolCall) -> list[object]:
        call.stop = stopped.set
        begun.set()
        assert stopped.wait(DEADLINE)
        return []

    of = with_tool(monkeypatch, server(client), perform)

    async def cancel() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(partial(of.call, "list_handlers", {}, agent="a"))
            assert await anyio.to_thread.run_sync(begun.wait, DEADLINE)
            group.cancel_scope.cancel()

    anyio.run(cancel)
    assert stopped.is_set()


def test_a_limit_may_be_an_integer_and_a_list_says_that_it_is_reached(
    client: InboxClient, inbox: Inbox
) -> None:
    for number in range(3):
        inbox.deliver(f"evt-{number}")
        inbox.clock.advance(seconds=1)
    for limit in (2, "2"):
        result, _ = called(server(client), "list_events", {"limit": limit})
        assert [each["event_id"] for each in result["untrusted"]] == ["evt-2", "evt-1"]
        assert "limit" in result["cut_off"]


def test_a_search_and_the_groups_of_errors_say_that_results_are_missing(
    client: InboxClient, inbox: Inbox
) -> None:
    for number in range(3):
        inbox.dead(f"evt-{number}", error=Permanent(f"no {'order' * (number + 1)}"))
    search = {"expression": "@", "since": "1h"}
    assert "cut_off" not in called(server(client), "search_events", search)[0]
    result, failed = called(server(client), "search_events", search | {"limit": 2})
    assert (failed, len(result["untrusted"])) == (False, 2)
    assert "events were searched" in result["cut_off"]
    assert "cut_off" not in called(server(client), "list_errors")[0]
    for number in range(3, 24):
        inbox.dead(f"evt-{number}", error=Permanent(f"no {'order' * (number + 1)}"))
    result, failed = called(server(client), "list_errors")
    assert (failed, len(result["untrusted"])) == (False, 20)
    assert "the largest of 24 groups" in result["cut_off"]


def test_a_long_result_is_cut_between_objects(
    client: InboxClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []

    def perform(_: ToolCall) -> Iterator[object]:
        for number in range(200):
            read.append(number)
            yield {"event_id": "e" * 1000}

    result, failed = called(with_tool(monkeypatch, server(client), perform), "list_handlers")
    assert not failed
    assert 0 < len(json.dumps(result["untrusted"])) <= RESULT_LIMIT
    assert "64 KB" in result["cut_off"]
    # The rest is not read.
    assert len(read) == len(result["untrusted"]) + 1


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"limit": "many"}, "is not a number"),
        ({"limit": 10_001}, "is not from 1 to 10000"),
        ({"status": "gone"}, "use one of dead_letter, held"),
        ({"since": "yesterday"}, "is not a time"),
    ],
)
def test_a_value_that_an_operation_cannot_take_is_a_wrong_argument(
    client: InboxClient, given: dict[str, Any], why: str
) -> None:
    result, failed = called(server(client), "plan_replay", given)
    assert (failed, result["error"]) == (True, "WrongArgument")
    assert why in result["untrusted_message"]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_tool_is_a_command_with_these_options(tool: AgentTool) -> None:
    command = leaves()[tool.command]
    options = {name for param in command.params for name in param.opts}
    given = dict.fromkeys((*tool.options, *filter(None, [tool.argument])), "v")
    used = {word.partition("=")[0] for word in tool.words(given, "--by=agent") if "--" in word}
    assert used - {"--", "--by"} <= options
    assert not tool.writes or "--by" in options
    assert set(given) <= MEANINGS.keys()


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_no_value_becomes_an_option(tool: AgentTool, value: str) -> None:
    given = dict.fromkeys((*tool.options, *filter(None, [tool.argument])), value)
    words = tool.words(given)
    own = [word for word in words if word == value]
    assert len(own) <= 1 + (value in tool.fixed)
    if tool.argument:
        assert words[-2:] == ["--", value]


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("no_such", {}, "no tool no_such"),
        ("inspect_event", {}, "needs event_id"),
        ("list_events", {"yes": "1"}, "has no parameter yes"),
        ("list_events", {"limit": True}, "limit is not a text"),
        ("list_events", {"since": 5}, "since is not a text"),
        ("inspect_event", {"event_id": "a\0b"}, "event_id is not a text"),
        ("inspect_event", {"event_id": "a\ud800b"}, "event_id is not a text"),
        ("list_events", {"a\ud800b": "1"}, "has no parameter a\\ud800b"),
        ("a\ud800b", {}, "no tool a\\ud800b"),
        ("list_events", {"x" * 100_000: "1"}, "has no parameter xxx"),
        ("x" * 100_000, {}, "no tool xxx"),
    ],
)
def test_a_wrong_call_is_refused_before_it_runs(
    name: str, given: dict[str, Any], told: str
) -> None:
    result = anyio.run(lambda: server().call(name, given, agent="a"))
    assert result.is_error
    assert told in result.structured_content["error"]
    assert len(result.model_dump_json()) < 10_000


def test_the_text_of_an_error_has_a_limit(client: InboxClient) -> None:
    result, failed = called(server(client), "plan_replay", {"since": "x" * 100_000})
    assert (failed, result["error"]) == (True, "WrongArgument")
    assert len(result["untrusted_message"]) == ERROR_LIMIT
