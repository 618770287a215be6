import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any

import psutil
import pytest

from tests.waiting import DEADLINE
from webhookctl.local.deployment.synth import Project
from webhookctl.local.ports import free_port
from webhookctl.local.processes.sink import Effects, Sink
from webhookctl.local.processes.sink_page import BODY_SHOWN, SHOWN, page
from webhookctl.local.runtime import Runtime, Settings


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "state" / "sink.jsonl"


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def sink(journal: Path, told: list[str]) -> Iterator[Sink]:
    with Sink(0, journal, told.append) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def _call(
    port: int, method: str, path: str, body: bytes | None = None, key: str = ""
) -> tuple[int, Any]:
    connection = HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
    connection.request(method, path, body=body, headers={"Idempotency-Key": key} if key else {})
    answer = connection.getresponse()
    content = json.loads(answer.read())
    connection.close()
    return answer.status, content


def _post(sink: Sink, key: str, body: Any = None, path: str = "/notes") -> tuple[int, Any]:
    return _call(sink.server_port, "POST", path, json.dumps(body).encode(), key)


def test_its_process_gets_none_of_the_developers_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GITHUB_TOKEN"):
        monkeypatch.setenv(name, "the developer's")
    settings = Settings(0, free_port(), sink_log=tmp_path / "sink.log")
    runtime = Runtime(Project(tmp_path, tmp_path, tmp_path), settings, print)
    before = set(psutil.Process().children())
    try:
        runtime.start_sink()
        [sink] = set(psutil.Process().children()) - before
        assert "the developer's" not in sink.environ().values()
    finally:
        runtime.stop_sink()


@pytest.mark.parametrize(("key", "known_by"), [("", "alert-1"), ("k1", "k1")])
def test_a_key_may_stand_in_the_body_as_at_pagerduty(sink: Sink, key: str, known_by: str) -> None:
    body = {"dedup_key": "alert-1", "event_action": "trigger"}
    assert [_post(sink, key, body)[0] for _ in range(2)] == [201, 200]
    assert list(sink.effects.all()) == [known_by]


@pytest.mark.parametrize("body", [{"dedup_key": ""}, ["dedup_key"], "dedup_key"])
def test_a_request_without_a_key_is_no_effect(sink: Sink, body: Any) -> None:
    assert _post(sink, "", body)[0] == 400
    assert sink.effects.all() == {}


def test_the_first_request_is_the_effect_and_later_ones_get_its_answer(sink: Sink) -> None:
    assert _post(sink, "k1", {"n": 1}) == (
        201,
        {"id": "effect-1", "key": "k1", "replayed": False},
    )
    assert _post(sink, "k1", {"n": 2}) == (200, {"id": "effect-1", "key": "k1", "replayed": True})
    assert _post(sink, "k2", {"n": 1})[0] == 201


def test_effects_are_listed_with_how_often_they_were_asked_for(sink: Sink) -> None:
    for _ in range(3):
        _post(sink, "k1", {"n": 1}, path="/invoices/7")
    status, effects = _call(sink.server_port, "GET", "/effects")
    assert status == 200
    effect = effects["k1"]
    assert effect["path"] == "/invoices/7"
    assert effect["body"] == {"n": 1}
    assert effect["requests"] == 3
    assert effect["first_at"] <= effect["last_at"]


def test_many_at_once_with_one_key_are_one_effect(sink: Sink) -> None:
    keys = [f"k{number % 10}" for number in range(300)]
    with ThreadPoolExecutor(60) as pool:
        statuses = Counter(status for status, _ in pool.map(lambda key: _post(sink, key), keys))
    assert statuses == {201: 10, 200: 290}
    _, effects = _call(sink.server_port, "GET", "/effects")
    assert {effect["requests"] for effect in effects.values()} == {30}
    assert len({effect["id"] for effect in effects.values()}) == 10


@pytest.mark.parametrize("torn", [b"{", b'{"key": "k2", "at": "2026', b"\0\0\0"])
def test_an_unfinished_line_is_no_obstacle_to_the_next_start(journal: Path, torn: bytes) -> None:
    Effects(journal).perform("k1", "/notes", {})
    whole = journal.read_bytes()
    journal.write_bytes(whole + torn)
    after = Effects(journal)
    assert list(after.all()) == ["k1"]
    assert journal.read_bytes() == whole
    after.perform("k2", "/notes", {})
    assert list(Effects(journal).all()) == ["k1", "k2"]


@pytest.mark.parametrize("levels", [101, 3000, 200_000])
def test_a_deeply_nested_body_is_refused_and_leaves_the_lists_readable(
    sink: Sink, levels: int
) -> None:
    assert _call(sink.server_port, "POST", "/", b"[" * 100 + b"]" * 100, "k1")[0] == 201
    status, content = _call(sink.server_port, "POST", "/", b"[" * levels + b"]" * levels, "k2")
    assert (status, content) == (400, {"error": "the body must be JSON with at most 100 levels"})
    assert list(_call(sink.server_port, "GET", "/effects")[1]) == ["k1"]
    assert page(sink.effects.all()).count("<article>") == 1


def test_effects_survive_a_restart(journal: Path) -> None:
    before = Effects(journal)
    before.perform("k1", "/a", {"n": 1})
    before.perform("k1", "/a", {"n": 1})
    after = Effects(journal)
    assert after.all() == before.all()
    assert after.perform("k1", "/a", None)[0] is False
    assert after.perform("k2", "/a", None) == (
        True,
        {"id": "effect-2", "key": "k2", "replayed": False},
    )


def test_reset_forgets_for_good(sink: Sink, journal: Path) -> None:
    _post(sink, "k1")
    assert _call(sink.server_port, "DELETE", "/effects")[0] == 200
    assert _call(sink.server_port, "GET", "/effects") == (200, {})
    assert Effects(journal).all() == {}
    assert _post(sink, "k1")[0] == 201


@pytest.mark.parametrize("body", [b"", b"{", b"\xff"])
def test_a_body_that_is_no_json_is_refused_and_leaves_no_effect(sink: Sink, body: bytes) -> None:
    assert _call(sink.server_port, "POST", "/notes", body, "k1")[0] == 400
    assert _call(sink.server_port, "GET", "/effects") == (200, {})


def test_a_request_without_a_key_is_refused(sink: Sink) -> None:
    assert _call(sink.server_port, "POST", "/notes", b"{}") == (
        400,
        {"error": "Idempotency-Key is missing"},
    )


def _page(sink: Sink, path: str) -> tuple[str, str]:
    connection = HTTPConnection("127.0.0.1", sink.server_port, timeout=DEADLINE)
    connection.request("GET", path, headers={"Accept": "text/html,application/xhtml+xml"})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return text, answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize("path", ["/", "/effects"])
def test_a_browser_gets_a_page_and_others_json(sink: Sink, path: str) -> None:
    assert "No request has arrived yet." in _page(sink, path)[0]
    _post(sink, "k1", {"n": 1}, path="/older")
    for _ in range(3):
        _post(sink, "k2", {"n": 2}, path="/newer")
    text, policy = _page(sink, path)
    assert policy.startswith("default-src 'none'")
    assert text.index("POST /newer") < text.index("POST /older")
    assert "2 effects of handlers" in text
    assert text.count("201, then 200 to 2 repetitions") == 1
    assert "<dd>k1</dd><dt>status</dt><dd>201</dd>" in text
    assert _call(sink.server_port, "GET", path)[1] == sink.effects.all()


def test_nothing_of_a_request_is_markup_on_the_page(sink: Sink) -> None:
    attack = "<script>alert(1)</script>"
    _post(sink, f"k{attack}", {attack: f"{attack}\u202e\ud800"}, path=f"/{attack.replace(' ', '')}")
    text, _ = _page(sink, "/")
    assert "<script" not in text
    assert "\u202e" not in text
    assert text.count("&lt;script&gt;") == 4


def test_a_long_page_and_a_long_body_are_cut(sink: Sink) -> None:
    for number in range(SHOWN + 1):
        sink.effects.perform(f"k{number}", "/notes", None)
    sink.effects.perform("long", "/notes", "x" * BODY_SHOWN)
    text, _ = _page(sink, "/")
    assert (text.count("<article>"), f"The page shows {SHOWN}." in text) == (SHOWN, True)
    assert "(the JSON has the whole body)" in text


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_an_effect_may_have_another_method(sink: Sink, method: str) -> None:
    assert _call(sink.server_port, method, "/orders/7", b"{}", "k1")[0] == 201
    assert sink.effects.all()["k1"]["method"] == method


def test_only_effects_can_be_read_or_deleted(sink: Sink) -> None:
    assert _call(sink.server_port, "GET", "/notes")[0] == 404
    assert _call(sink.server_port, "DELETE", "/notes")[0] == 404


def test_one_line_an_effect(sink: Sink, told: list[str]) -> None:
    assert _post(sink, "k1", {"text": "x" * 500})[0] == 201
    assert _post(sink, "k1", {"text": "x" * 500})[0] == 200
    first, second = told
    assert re.fullmatch(r'\S+ sink   effect   POST /notes {"text": "x+… key=k1', first)
    assert re.fullmatch(r"\S+ sink   replayed POST /notes .* key=k1", second)


def test_a_busy_port_is_one_line_and_a_failure(sink: Sink, journal: Path) -> None:
    port = str(sink.server_port)
    command = [sys.executable, "-m", "webhookctl.local.processes.sink", "--port", port]
    done = subprocess.run(
        [*command, "--journal", str(journal)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        f"sink: port {port} for the sink is in use: stop the process that uses it,"
        " or choose another with --port\n"
    )
