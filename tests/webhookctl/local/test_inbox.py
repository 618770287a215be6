import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from tests.waiting import eventually
from tests.webhookctl.local.projects import (
    NOTES,
    call,
    deliver,
    effects,
    post,
    write_functions,
)
from tests.webhookctl.local.test_web_pages import OF_A_PAGE, answer
from webhook_inbox.client import local_session
from webhook_inbox.domain.errors import ConfigurationError
from webhookctl.errors import CommandError
from webhookctl.local.deployment.functions import Deployed, Fleet
from webhookctl.local.inbox import LocalInbox
from webhookctl.local.processes.process_group import members
from webhookctl.local.processes.sink import Effects

ACCEPTED = {200, 202}
OLD = "of an earlier session"
NEW_SOURCE = '\n[sources.partner]\nprovider = "standard-webhooks"\n'


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_functions(tmp_path_factory.mktemp("given"))


@pytest.fixture(scope="module")
def told() -> list[str]:
    return []


@pytest.fixture(scope="module")
def inbox(
    given: Path, told: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalInbox]:
    directory = tmp_path_factory.mktemp("state")
    Effects(directory / "sink.jsonl").perform(OLD, "/notes", {"title": OLD})
    with LocalInbox(given, state=directory, tell=told.append) as running:
        yield running
    assert members(running.group) == []


def _deliver(inbox: LocalInbox, title: str, *, delivery: str | None = None) -> int:
    return deliver(inbox.front_url, inbox.secrets["github"], title, delivery=delivery)[0]


def _titles(inbox: LocalInbox) -> list[str]:
    return [effect["title"] for effect in effects(inbox.sink_url)]


def test_a_delivery_becomes_an_effect_once_however_often_it_comes(inbox: LocalInbox) -> None:
    with ThreadPoolExecutor(8) as pool:
        statuses = set(
            pool.map(lambda n: _deliver(inbox, f"often{n % 3}", delivery=f"d{n % 3}"), range(12))
        )
    assert statuses <= ACCEPTED
    assert eventually(lambda: {"often0", "often1", "often2"} <= set(_titles(inbox)))
    assert len(_titles(inbox)) == len(set(_titles(inbox)))


def test_a_forged_delivery_is_refused(inbox: LocalInbox) -> None:
    assert deliver(inbox.front_url, "another secret", "forged")[0] == 401


def test_its_state_file_leads_to_everything(inbox: LocalInbox) -> None:
    found = local_session.read(inbox.functions.parent)
    assert found is not None
    assert found.endpoint == inbox.endpoint
    assert found.outputs == inbox.outputs
    assert found.credentials == inbox.credentials
    assert set(found.manifest["handlers"]) == {"github.note"}
    assert call(f"{found.sink}/effects")[0] == 200


def test_every_port_of_a_session_is_for_this_machine_and_refuses_web_pages(
    inbox: LocalInbox,
) -> None:
    own = psutil.Process()
    listening = {
        connection.laddr
        for process in (own, *own.children(recursive=True))
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    ports = {address.port for address in listening}
    urls = (inbox.front_url, inbox.sink_url, inbox.endpoint)
    assert ports >= {urlsplit(url).port for url in urls}
    assert {address.ip for address in listening} == {"127.0.0.1"}
    for port in ports:
        for header in OF_A_PAGE.values():
            assert answer(port, "POST", "/effects", header, b"{}")[0] == 403, (port, header)


def test_a_new_session_knows_no_effects_of_the_one_before(inbox: LocalInbox) -> None:
    assert OLD not in _titles(inbox)
    assert OLD not in (inbox.functions.parent / "sink.jsonl").read_text()


def test_killed_workers_are_replaced_and_the_next_event_is_handled(inbox: LocalInbox) -> None:
    assert eventually(lambda: bool(inbox.workers()))
    before, ingest = set(inbox.workers()), set(inbox.workers("ingest"))
    assert inbox.kill_workers() >= len(before)
    assert not before & set(inbox.workers())
    assert _deliver(inbox, "after the kill") in ACCEPTED
    assert eventually(lambda: "after the kill" in _titles(inbox))
    assert inbox.workers()
    assert ingest <= set(inbox.workers("ingest"))


def test_a_sink_that_was_away_knows_what_it_did(inbox: LocalInbox) -> None:
    _deliver(inbox, "before the stop")
    assert eventually(lambda: "before the stop" in _titles(inbox))
    before = _titles(inbox)
    inbox.stop_sink()
    with pytest.raises(ConnectionRefusedError):
        call(f"{inbox.sink_url}/effects")
    inbox.start_sink()
    # Requests of an earlier test may still arrive; the known ones come first, unchanged.
    assert _titles(inbox)[: len(before)] == before


def test_hurry_shortens_what_a_killed_worker_costs(inbox: LocalInbox) -> None:
    inbox.hurry(timeout=7, visibility=21)
    (url,) = json.loads(inbox.outputs["QueueUrls"]).values()
    queue = inbox.client("sqs").get_queue_attributes(
        QueueUrl=url, AttributeNames=["VisibilityTimeout"]
    )
    assert queue["Attributes"]["VisibilityTimeout"] == "21"
    (name,) = json.loads(inbox.outputs["ProcessorFunctionNames"]).values()
    function = inbox.client("lambda").get_function_configuration(FunctionName=name)
    assert function["Timeout"] == 7
    assert function["Environment"]["Variables"]["VISIBILITY_TIMEOUT"] == "21"
    assert function["Environment"]["Variables"]["TABLE_NAME"] == inbox.outputs["TableName"]


def _of_reloads(lines: list[str]) -> list[str]:
    """Returns what reloads say; the functions and the front may say something at any time."""
    return [line for line in lines if line.startswith("reloaded: ") or "changed: updating" in line]


def test_a_reload_brings_new_code_to_the_processor_alone(
    inbox: LocalInbox, told: list[str]
) -> None:
    ingest = set(inbox.workers("ingest"))
    notes = inbox.functions / "handlers" / "notes.py"
    notes.write_text(NOTES.replace('"first"', '"second"'))
    before = len(told)
    inbox.reload()
    assert _of_reloads(told[before:]) == ["reloaded: processor"]
    assert ingest <= set(inbox.workers("ingest"))
    _deliver(inbox, "reloaded")
    expected = {"title": "reloaded", "version": "second"}
    assert eventually(lambda: expected in effects(inbox.sink_url))


def test_a_reload_without_edits_does_nothing(inbox: LocalInbox, told: list[str]) -> None:
    before = len(told)
    assert inbox.reload() is False
    assert _of_reloads(told[before:]) == []


def test_a_broken_edit_is_refused_and_the_old_version_runs_on(inbox: LocalInbox) -> None:
    notes = inbox.functions / "handlers" / "notes.py"
    good = notes.read_text()
    notes.write_text("import absent_library")
    with pytest.raises(ConfigurationError, match=r"notes\.py"):
        inbox.reload()
    _deliver(inbox, "after a broken edit")
    assert eventually(lambda: "after a broken edit" in _titles(inbox))
    notes.write_text(good)


def test_a_new_source_is_deployed_with_a_secret_of_its_own(
    inbox: LocalInbox, told: list[str]
) -> None:
    url = f"{inbox.front_url}/webhooks/partner"
    assert post(url, b"{}")[0] == 404
    toml = inbox.functions / "inbox.toml"
    toml.write_text(toml.read_text() + NEW_SOURCE)
    before = len(told)
    inbox.reload()
    assert _of_reloads(told[before:]) == [
        "inbox.toml changed: updating the stack …",
        "reloaded: the stack",
    ]
    assert post(url, b"{}")[0] in {400, 401}
    secret = inbox.secrets["partner"]
    assert f"new source: {url} (standard-webhooks), secret: {secret}" in told
    found = local_session.read(inbox.functions.parent)
    assert found is not None
    assert "WebhookUrlPartner" in found.outputs
    _deliver(inbox, "after a new source")
    assert eventually(lambda: "after a new source" in _titles(inbox))


def test_a_lane_has_the_workers_of_inbox_toml(inbox: LocalInbox) -> None:
    def workers() -> list[int]:
        mappings = inbox.client("lambda").list_event_source_mappings()["EventSourceMappings"]
        return [mapping["ScalingConfig"]["MaximumConcurrency"] for mapping in mappings]

    assert workers() == [2]
    toml = inbox.functions / "inbox.toml"
    toml.write_text(toml.read_text() + "\n[stages.local.lanes.default]\nworkers = 4\n")
    inbox.reload()
    assert workers() == [4]
    _deliver(inbox, "with more workers")
    assert eventually(lambda: "with more workers" in _titles(inbox))


def test_code_that_cannot_be_imported_is_named_with_its_reason(inbox: LocalInbox) -> None:
    function = Deployed("ingest", inbox.outputs["IngestFunctionName"], "ingest")
    client = inbox.client("lambda")
    before = client.get_function_configuration(FunctionName=function.name)["Handler"]
    client.update_function_configuration(FunctionName=function.name, Handler="absent.handler")
    try:
        with pytest.raises(CommandError, match=r"^ingest cannot run: .*No module named 'absent'"):
            Fleet(inbox.client).warm({function: 2})
    finally:
        client.update_function_configuration(FunctionName=function.name, Handler=before)
    Fleet(inbox.client).warm({function: 2})


def test_a_start_that_fails_leaves_nothing(given: Path, tmp_path: Path) -> None:
    functions = tmp_path / "functions"
    write_functions(functions)
    (functions / "inbox.toml").write_text("[sources.x]\n")
    failing = LocalInbox(functions, state=tmp_path / "state")
    with pytest.raises(ConfigurationError), failing:
        pass
    assert not (tmp_path / "state" / local_session.FILE).exists()
