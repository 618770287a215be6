import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.waiting import DEADLINE, eventually
from tests.webhookctl.local.projects import (
    NOTES,
    SENT_AGAIN,
    accepted,
    deliver,
    effects,
    write_project,
)
from webhook_inbox.adapters.aws.account import loopback_client
from webhook_inbox.client import local_session
from webhook_inbox.client.secret_documents import SecretDocuments
from webhook_inbox.domain.manifest import Manifest, SourceSpec
from webhookctl.local import dev_secrets
from webhookctl.local.http.server import Front
from webhookctl.local.ports import accepts, free_port
from webhookctl.local.processes.process_group import members
from webhookctl.local.runtime import Settings, links_url

READY = "Press Ctrl-C to stop."
REPLACED = "whsec_" + "QUJD" * 8
GITHUB = Manifest(sources={"github": SourceSpec("github", "github", "github")})

LATE = Manifest(sources={"late": SourceSpec("late", "github", "late")})


class Session:
    """A `webhookctl dev` of its own, with what it printed."""

    def __init__(
        self,
        root: Path,
        *more: str,
        sink_port: int | None = None,
        env: dict[str, str] | None = None,
    ) -> None:
        self.root = root
        self.port = free_port()
        self.sink_port = free_port()
        self.log = root / "terminal.txt"
        ports = ["--port", str(self.port), "--sink-port", str(self.sink_port), *more]
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "webhookctl", "dev", *ports],
                cwd=root,
                env={**os.environ, **(env or {})},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def front(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def sink(self) -> str:
        return f"http://127.0.0.1:{self.sink_port}"

    @property
    def text(self) -> str:
        return self.log.read_text()

    def says(self, text: str) -> bool:
        return eventually(lambda: text in self.text or self.process.poll() is not None) and (
            text in self.text
        )

    def stop(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(DEADLINE)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_project(tmp_path)


@pytest.fixture
def started(project: Path) -> Iterator[list[Session]]:
    sessions: list[Session] = []
    yield sessions
    for session in sessions:
        if session.process.poll() is None:
            session.stop(signal.SIGTERM)


def _ended(session: Session) -> tuple[int, str]:
    """Returns the exit status and the one line that a failed start leaves."""
    status = session.process.wait(DEADLINE)
    lines = [line for line in session.text.splitlines() if line != "Starting …"]
    assert len(lines) == 1, session.text
    return status, lines[0]


def _save(project: Path, text: str) -> None:
    """Puts other handlers in place at once, so that no look finds half of them."""
    draft = project / "draft.py"
    draft.write_text(text)
    draft.replace(project / "functions" / "handlers" / "notes.py")


def test_a_session_from_its_banner_to_ctrl_c(project: Path, started: list[Session]) -> None:
    session = Session(project)
    started.append(session)
    assert session.says(READY), session.text
    front, sink = session.front, session.sink
    assert f"{front}/webhooks/github  (github)" in session.text
    secret = re.search(r"github +(dev-only-\S+)", session.text)
    assert secret is not None

    running = local_session.read(project / ".local")
    assert running is not None
    assert (running.pid, running.front, running.sink) == (session.process.pid, front, sink)
    groups = dict(running.children)
    assert all(members(group) for group in groups.values())

    assert accepted(front, secret[1], "one")
    assert eventually(lambda: {"title": "one", "version": "first"} in effects(sink))
    # A duplicate where the first sending took too long.
    answered = r"^\S+ (accepted |duplicate) github \S+ \(20[02], \d+ ms\)$"
    assert re.search(answered, session.text, re.MULTILINE)
    assert session.says("processor: taking one")
    assert session.says("done      github.")

    assert accepted(front, secret[1], "broken")
    assert session.says("RuntimeError: the handler's own words")
    assert re.search(r"functions/handlers/notes.py:\d+: RuntimeError: the handler", session.text)

    _save(project, NOTES.replace('"first"', '"second"'))
    assert session.says("reloaded: processor")
    assert accepted(front, secret[1], "two")
    assert eventually(lambda: {"title": "two", "version": "second"} in effects(sink))

    _save(project, "this is no Python")
    assert session.says("handlers/notes.py:1: cannot be imported: SyntaxError")
    assert "not reloaded, the previous version keeps running: " in session.text
    assert accepted(front, secret[1], "three")
    assert eventually(lambda: {"title": "three", "version": "second"} in effects(sink))

    _save(project, NOTES.replace('"first"', '"second"'))
    assert session.says("functions/ is valid again and matches the running version")
    assert session.text.count("reloaded: processor") == 1

    assert accepted(front, secret[1], "refund")
    _two_people_approve(session)

    before = _ids(project)
    assert _smoke(project) == {"ok"}
    # Their states may differ: a retry may be due meanwhile.
    assert _ids(project) == before

    assert session.stop() == 0
    assert session.text.splitlines()[-1] == "Stopped"
    assert [members(group) for group in groups.values()] == [[], []]
    assert members(session.process.pid) == []
    assert not accepts(session.port)
    assert local_session.read(project / ".local") is None
    assert not (project / ".local" / local_session.FILE).exists()


def _two_people_approve(session: Session) -> None:
    """Lets the people of a request decide by their links, as browsers open and send them."""

    def links() -> dict[str, str]:
        return {each["person"]: each["link"] for each in effects(session.sink) if "link" in each}

    assert eventually(lambda: len(links()) == 2)
    found, refunded = links(), {"refunded": "refund"}
    own = {"Origin": session.front, "Sec-Fetch-Site": "same-origin"}
    other = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    for person, link in found.items():
        assert link.startswith(f"{session.front}/approvals/")
        for _ in range(2):
            # From the page of a mail client.
            status, page = _page(link, headers={"Sec-Fetch-Site": "cross-site"})
            assert (status, f"This link is for <bdi>{person}</bdi>" in page) == (200, True)
        assert _page(link + "x")[0] == 404
        assert _page(link, DECISION, other)[0] == 403
        assert refunded not in effects(session.sink)
        for _ in range(2):
            assert _page(link, DECISION, own)[0] == 200
    assert eventually(lambda: refunded in effects(session.sink))
    assert [_page(link)[0] for link in found.values()] == [410, 410]
    assert effects(session.sink).count(refunded) == 1
    # The session's log has each request, and no token.
    assert " POST /approvals/{token} 200 " in session.text
    assert not [link for link in found.values() if link.rpartition(".")[2] in session.text]


DECISION = "decision=approve&confirm=yes&reason=seen"


def _page(link: str, form: str = "", headers: dict[str, str] | None = None) -> tuple[int, str]:
    """Opens a link, or sends its form; again while the inbox has too little time."""

    def answer() -> tuple[int, str] | None:
        status, page = _opened(link, form, headers or {})
        return None if status in SENT_AGAIN else (status, page)

    return eventually(answer, what="an answer to a link")


def _opened(link: str, form: str, headers: dict[str, str]) -> tuple[int, str]:
    parts = urlsplit(link)
    connection = HTTPConnection(str(parts.hostname), parts.port, timeout=DEADLINE)
    kind = {"Content-Type": "application/x-www-form-urlencoded"} if form else {}
    connection.request("POST" if form else "GET", parts.path, form or None, {**kind, **headers})
    answer = connection.getresponse()
    page = answer.read().decode()
    connection.close()
    return answer.status, page


def test_links_of_approvers_begin_with_the_tunnel_that_other_machines_reach() -> None:
    tunnels = frozenset({"b.example", "a.example"})

    assert links_url(Settings(8787, 8788)) == "http://127.0.0.1:8787"
    assert links_url(Settings(8787, 8788, hosts=tunnels)) == "https://a.example"


def _smoke(root: Path) -> set[str]:
    """Returns the results of the steps of `webhookctl --local smoke` in a directory."""
    command = [sys.executable, "-m", "webhookctl", "--local", "smoke", "--json"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return {json.loads(line)["result"] for line in done.stdout.splitlines()}


def _inbox(root: Path, *arguments: str) -> list[dict[str, Any]]:
    """Returns the events that `webhookctl --local inbox list` in a directory lists."""
    command = [sys.executable, "-m", "webhookctl", "--local", "inbox", "list", "--json"]
    done = subprocess.run(
        [*command, *arguments], cwd=root, capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def _ids(root: Path) -> list[str]:
    return [event["event_id"] for event in _inbox(root)]


def test_two_checkouts_side_by_side_never_meet(tmp_path: Path, started: list[Session]) -> None:
    one, two = (Session(write_project(tmp_path / name)) for name in ("one", "two"))
    started.extend([one, two])
    assert all(session.says(READY) for session in (one, two)), one.text + two.text
    states = [local_session.read(session.root / ".local") for session in (one, two)]
    assert states[0] is not None
    assert states[1] is not None
    assert not states[0].ports & states[1].ports
    assert states[0].credentials != states[1].credentials
    secrets = [dev_secrets.choose(GITHUB, {}, s.root / ".local")["github"] for s in (one, two)]
    assert secrets[0] != secrets[1]

    for session, secret, title in zip((one, two), secrets, ("first", "second"), strict=True):
        assert accepted(session.front, secret, title)
        assert eventually(lambda s=session: bool(effects(s.sink)))  # type: ignore[misc]
    assert [effect["title"] for effect in effects(one.sink)] == ["first"]
    assert [effect["title"] for effect in effects(two.sink)] == ["second"]
    # A secret of the other session is no secret here.
    assert deliver(one.front, secrets[1], "forged")[0] == 401
    listed = [set(_ids(session.root)) for session in (one, two)]
    assert [len(ids) for ids in listed] == [1, 1]
    assert not listed[0] & listed[1]

    third = Session(write_project(tmp_path / "three"), "--port", str(one.port))
    started.append(third)
    status, line = _ended(third)
    assert status == 1
    assert line == (
        f"webhookctl dev: port {one.port} for the local API is in use by the session in {one.root}"
        f" (process {one.process.pid}): choose another with --port, or stop that session"
    )
    # Below a running inbox, but an inbox of its own.
    inner = write_project(one.root / "inner")
    with pytest.raises(subprocess.CalledProcessError) as failed:
        _inbox(inner)
    assert "no inbox runs on this machine" in failed.value.stdout  # an error as JSON


# Fails until the flag is there. Its message is in the queue, and not with a worker, when a session
# ends.
LATER = NOTES.replace("import Approval, Router", "import Approval, Router, Transient").replace(
    '    if title == "broken":',
    """    if title == "later" and not __import__("pathlib").Path({flag!r}).exists():
        raise Transient("too early", retry_after=20)
    if title == "broken":""",
)


def test_what_is_kept_is_there_after_the_next_start(
    project: Path, tmp_path_factory: pytest.TempPathFactory, started: list[Session]
) -> None:
    flag, keep = project / "flag", tmp_path_factory.mktemp("kept") / "of-session"
    notes = project / "functions" / "handlers" / "notes.py"
    notes.write_text(LATER.replace("{flag!r}", repr(str(flag))))
    first = Session(project, "--keep", str(keep))
    started.append(first)
    assert first.says(READY), first.text
    assert "after kill -9" in first.text
    secret = dev_secrets.choose(GITHUB, {}, project / ".local")["github"]
    for title in ("now", "later"):
        assert accepted(first.front, secret, title, delivery=f"evt-{title}")
    assert eventually(lambda: bool(effects(first.sink)))
    assert first.says("failed    github.note evt-later: retry in ")
    # While it runs, no other session may keep its events there.
    other = Session(write_project(project / "other"), "--keep", str(keep))
    started.append(other)
    assert "is in use by another session" in _ended(other)[1]
    command = [sys.executable, "-m", "webhookctl", "--local", "secrets", "set", "billing"]
    subprocess.run(command, input=REPLACED, cwd=project, text=True, check=True)
    assert first.stop() == 0
    assert keep.stat().st_mode & 0o077 == 0

    flag.touch()
    second = Session(project, "--keep", str(keep))
    started.append(second)
    assert second.says(READY), second.text
    assert set(_ids(project)) == {"evt-now", "evt-later"}
    # The pending run completes, and the finished one does not run again.
    assert eventually(lambda: len(effects(second.sink)) == 2), second.text
    assert [effect["title"] for effect in effects(second.sink)] == ["now", "later"]
    assert eventually(lambda: {e["status"] for e in _inbox(project)} == {"done"})
    assert "billing  (as given)" in second.text
    assert deliver(second.front, secret, "now", delivery="evt-now")[0] == 200
    assert second.stop() == 0

    third = Session(project, "--keep", str(keep), "--fresh")
    started.append(third)
    assert third.says(READY), third.text
    assert _inbox(project) == []
    assert effects(third.sink) == []


def _add_source(session: Session, name: str) -> None:
    file = session.root / "functions" / "inbox.toml"
    file.write_text(f'{file.read_text()}\n[sources.{name}]\nprovider = "github"\n')
    assert session.says(f"new source: {session.front}/webhooks/{name}"), session.text


def _vault(session: Session, *names: str) -> dict[str, str]:
    running = local_session.read(session.root / ".local")
    assert running is not None
    vault = loopback_client(
        "secretsmanager", endpoint=running.endpoint, credentials=running.credentials
    )
    found = dev_secrets.stored(SecretDocuments(vault, running.outputs["SecretPrefix"]))
    return {name: found[name] for name in names}


def test_secrets_survive_a_deployment_and_a_session_that_was_killed(
    project: Path, tmp_path_factory: pytest.TempPathFactory, started: list[Session]
) -> None:
    keep = ("--keep", str(tmp_path_factory.mktemp("kept")))
    first = Session(project, *keep)
    started.append(first)
    assert first.says(READY), first.text
    command = [sys.executable, "-m", "webhookctl", "--local", "secrets", "set", "billing"]
    subprocess.run(command, input=REPLACED, cwd=project, text=True, check=True)
    _add_source(first, "acme")
    assert _vault(first, "billing") == {"billing": REPLACED}
    assert first.stop() == 0

    second = Session(project, *keep)
    started.append(second)
    assert second.says(READY), second.text
    _add_source(second, "late")
    assert second.stop(signal.SIGKILL) == -signal.SIGKILL

    third = Session(project, *keep)
    started.append(third)
    assert third.says(READY), third.text
    fake = dev_secrets.choose(LATE, {}, project / ".local")["late"]
    assert _vault(third, "billing", "late") == {"billing": REPLACED, "late": fake}
    assert f"late  {fake}" in third.text


def test_a_busy_port_is_one_line_that_names_it_and_the_remedy(
    project: Path, started: list[Session]
) -> None:
    front = Front(0, print).start()
    try:
        command = [sys.executable, "-m", "webhookctl", "dev", "--port", str(front.port)]
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    finally:
        front.stop()
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        f"webhookctl dev: port {front.port} for the local API is in use: stop the process that"
        " uses it, or choose another with --port\n"
    )


def test_one_port_for_two_things_is_one_line(project: Path) -> None:
    command = [sys.executable, "-m", "webhookctl", "dev"]
    done = subprocess.run(
        [*command, "--port", "9000", "--sink-port", "9000"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "webhookctl dev: --port and --sink-port are both 9000: use different ports\n"
    )


def test_missing_node_is_one_line(project: Path, started: list[Session]) -> None:
    session = Session(project, env={"JSII_NODE": "/absent/node"})
    started.append(session)
    status, line = _ended(session)
    assert status == 1
    assert line.startswith("webhookctl dev: Node is missing (/absent/node is not on the PATH)")


BROKEN = {
    "toml that is none": ("inbox.toml", "[sources.github\n", "inbox.toml"),
    "an unknown provider": ("inbox.toml", '[sources.x]\nprovider = "none"\n', "sources.x"),
    "a handler with a syntax error": ("handlers/notes.py", "def note(:\n", "handlers/notes.py:1"),
    "a handler that raises": ("handlers/notes.py", "1 / 0\n", "ZeroDivisionError"),
    "a handler of an unknown source": (
        "handlers/notes.py",
        NOTES.replace('Router("github")', 'Router("gitlab")'),
        "gitlab",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_used_is_one_line_that_names_it(
    project: Path, started: list[Session], name: str
) -> None:
    file, text, said = BROKEN[name]
    (project / "functions" / file).write_text(text)
    session = Session(project)
    started.append(session)
    status, line = _ended(session)
    assert status == 1
    assert line.startswith("webhookctl dev: ")
    assert said in line
    assert not accepts(session.port)


def test_outside_of_a_repository_it_says_where_to_go(
    tmp_path_factory: pytest.TempPathFactory, started: list[Session]
) -> None:
    session = Session(tmp_path_factory.mktemp("elsewhere"))
    started.append(session)
    status, line = _ended(session)
    assert status == 1
    assert line.endswith("change to your inbox's repository")


def test_a_second_session_is_sent_to_the_first(project: Path, started: list[Session]) -> None:
    running = local_session.State(
        pid=os.getpid(),
        started=local_session.started(),
        endpoint="http://127.0.0.1:4566",
        credentials={},
        front="http://127.0.0.1:8787",
        sink="http://127.0.0.1:8788",
        outputs={},
        manifest={},
        children={},
    )
    local_session.write(project / ".local", running)
    session = Session(project)
    started.append(session)
    status, line = _ended(session)
    assert status == 1
    assert f"already running (process {os.getpid()}, http://127.0.0.1:8787)" in line


def test_a_stale_state_file_is_no_obstacle(project: Path, started: list[Session]) -> None:
    (project / ".local").mkdir()
    (project / ".local" / local_session.FILE).write_text(json.dumps({"pid": 1}))
    session = Session(project, env={"JSII_NODE": "/absent/node"})
    started.append(session)
    assert "Node is missing" in _ended(session)[1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stopped_while_it_starts_it_leaves_nothing(
    project: Path, started: list[Session], number: int
) -> None:
    shutil.copy(project / "app.py", project / "real.py")
    (project / "app.py").write_text("import time\nopen('begun', 'w').close()\ntime.sleep(600)\n")
    session = Session(project)
    started.append(session)
    assert eventually((project / "begun").exists)
    assert session.stop(number) == 128 + number
    assert eventually(lambda: members(session.process.pid) == [])
    assert not accepts(session.port)
    assert "Traceback" not in session.text
