"""Neither another host, another page, another user nor a read-only session gets through.

Each test is for every route of the application, so that a new page or action cannot be forgotten.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from html import unescape
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from markupsafe import escape
from moto import mock_aws
from starlette.routing import Route
from starlette.testclient import TestClient

from tests.browser.seeded import SeededInbox, seeded
from tests.browser.subjects import SUBJECTS
from tests.webhookctl.commands.stage import client
from webhook_inbox.adapters.memory import SeededRandomness
from webhook_inbox.domain.errors import Unavailable
from webhookctl.console import actions, guard
from webhookctl.console.application import application, routes
from webhookctl.console.guard import HEADERS, Session
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.console.requests import FORM_LIMIT, TOKEN_FIELD
from webhookctl.console.views import MENU
from webhookctl.invocation import Invocation, World

PORT = 8790
HOST = f"127.0.0.1:{PORT}"
ORIGIN = f"http://{HOST}"


def session_of(seed: int = 1) -> Session:
    return Session.begin(PORT, SeededRandomness(seed).token)


SESSION = session_of()
COOKIE = {SESSION.cookie_name: SESSION.cookie}
WRITE = {"origin": ORIGIN, "sec-fetch-site": "same-origin"}


@pytest.fixture(scope="module")
def shown() -> Iterator[SeededInbox]:
    """An inbox that no test here changes."""
    with mock_aws(), pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        yield seeded(other=client)


@pytest.fixture(autouse=True)
def _unchanged(shown: SeededInbox) -> Iterator[None]:
    """Fails a test that wrote a row."""
    before = [dict(row) for row in shown.world.table.everything()]
    yield
    assert [dict(row) for row in shown.world.table.everything()] == before


def console(shown: SeededInbox, *, write: bool = True, **options: Any) -> TestClient:
    """Returns a client of the console that sends nothing by itself."""
    made = application(ConsoleInbox(shown.call(), write=write), SESSION)
    return TestClient(made, base_url=ORIGIN, follow_redirects=False, **options)


@pytest.fixture(scope="module")
def anyone(shown: SeededInbox) -> Iterator[TestClient]:
    """A client without the session's cookie."""
    with console(shown) as entering:  # one event loop for all requests
        yield entering


@pytest.fixture(scope="module")
def user(shown: SeededInbox) -> Iterator[TestClient]:
    """A client that has entered."""
    with console(shown, cookies=COOKIE) as entering:  # one event loop for all requests
        yield entering


@pytest.fixture(scope="module")
def reader(shown: SeededInbox) -> Iterator[TestClient]:
    """A client that has entered a console without `--write`."""
    with console(shown, write=False, cookies=COOKIE) as entering:  # one event loop for all requests
        yield entering


def _paths(method: str) -> list[str]:
    found = routes(ConsoleInbox(Invocation(World()), write=True), SESSION)
    each = [route for route in found if isinstance(route, Route)]
    return [route.path for route in each if route.methods and method in route.methods]


READS, WRITES = _paths("GET"), _paths("POST")


def test_the_routes_are_those_of_the_menu_and_the_actions() -> None:
    assert {path for _, path in MENU} <= {*READS}
    assert {each.path for each in actions.ACTIONS} <= {*READS} & {*WRITES}
    assert len(WRITES) >= len(actions.ACTIONS) + 3


# -- who asks


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost",
        f"{HOST}.evil.example",
        f"127.0.0.1.evil.example:{PORT}",
        f"evil.example@{HOST}",
        f"[::1]:{PORT}",
        f"0.0.0.0:{PORT}",
        f"127.1:{PORT}",
        "",
    ],
)
def test_another_host_is_refused_everywhere(user: TestClient, host: str) -> None:
    """A name that an attacker's DNS server gives this address must not open the console."""
    for path in (*READS, "/static/console.js", f"/?token={SESSION.token}"):
        answer = user.get(path, headers={"host": host})
        assert (answer.status_code, "set-cookie" in answer.headers) == (421, False)
    for path in WRITES:
        assert user.post(path, headers={**WRITE, "host": host}).status_code == 421


@pytest.mark.parametrize("path", READS)
def test_a_page_needs_the_cookie_of_the_session(anyone: TestClient, path: str) -> None:
    other = session_of(2)
    for cookie in (
        "",
        f"{SESSION.cookie_name}=",
        f"{SESSION.cookie_name}={SESSION.token}",
        f"{SESSION.cookie_name}={SESSION.form_token}",
        f"{SESSION.cookie_name}={other.cookie}",
        f"{SESSION.cookie_name}=\u00e9",
        f"webhookctl-console-1={SESSION.cookie}",
    ):
        answer = anyone.get(path, headers={"cookie": cookie.encode()})
        assert (answer.status_code, answer.text) == (401, guard.SHUT)


@pytest.mark.parametrize("path", WRITES)
def test_an_action_needs_the_cookie_of_the_session(anyone: TestClient, path: str) -> None:
    form = {TOKEN_FIELD: SESSION.form_token}
    assert anyone.post(path, data=form, headers=WRITE).status_code == 401


def test_the_link_is_exchanged_for_a_cookie_that_scripts_and_other_sites_do_not_get(
    shown: SeededInbox,
) -> None:
    with console(shown) as entering:
        answer = entering.get(SESSION.url)
        assert answer.status_code == 200
        assert SESSION.token not in answer.text
        name, *attributes = answer.headers["set-cookie"].split("; ")
        assert name == f"{SESSION.cookie_name}={SESSION.cookie}"
        assert {*attributes} == {"HttpOnly", "Path=/", "SameSite=strict"}
        assert entering.get("/events").status_code == 200
        # The link can be opened again, in this browser or another, until the process ends.
        assert entering.get(SESSION.url).status_code == 200


@pytest.mark.parametrize(
    "address",
    [
        "/?token=",
        f"/?token={session_of(2).token}",
        f"/?token={SESSION.cookie}",
        f"/?token={SESSION.token[:-1]}",
        "/?token=%FF%00",
        f"/events?token={SESSION.token}",
        f"/event?token={SESSION.token}",
    ],
)
def test_another_token_or_another_path_enters_nowhere(anyone: TestClient, address: str) -> None:
    answer = anyone.get(address)
    assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)


# -- who posts


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:3000"},
        {"origin": f"https://{HOST}"},
        {"origin": f"http://localhost:{PORT}"},
        {"origin": f"{ORIGIN}.evil.example"},
        {"origin": f"{ORIGIN}/"},
        {"referer": f"{ORIGIN}/"},
        {"sec-fetch-site": "same-origin"},
        {"origin": ORIGIN, "sec-fetch-site": "same-site"},
        {"origin": ORIGIN, "sec-fetch-site": "cross-site"},
        {"origin": ORIGIN, "sec-fetch-site": "none"},
    ],
    ids=str,
)
def test_only_a_page_of_the_console_posts(user: TestClient, headers: dict[str, str]) -> None:
    form = {TOKEN_FIELD: SESSION.form_token}
    for path in WRITES:
        answer = user.post(path, data=form, headers=headers)
        assert (answer.status_code, answer.text) == (
            403,
            "Only the console's own pages may post.",
        )


@pytest.mark.parametrize("path", WRITES)
def test_every_form_has_the_token_of_the_session(user: TestClient, path: str) -> None:
    for token in (None, "", "x", SESSION.token, SESSION.cookie, session_of(2).form_token, "\u00e9"):
        form = {} if token is None else {TOKEN_FIELD: token}
        answer = user.post(path, data={**form, "reason": "x"}, headers=WRITE)
        assert (answer.status_code, answer.text) == (
            403,
            "The form is of an earlier session: reload its page.",
        )
    query = {TOKEN_FIELD: SESSION.form_token}
    assert user.post(path, params=query, headers=WRITE).status_code == 403
    assert user.post(path, json=query, headers=WRITE).status_code == 403


@pytest.mark.parametrize("path", WRITES)
def test_a_form_is_read_up_to_its_limit(user: TestClient, path: str) -> None:
    form = {TOKEN_FIELD: SESSION.form_token, "reason": "x" * FORM_LIMIT}
    assert user.post(path, data=form, headers=WRITE).status_code == 413


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"])
def test_other_methods_are_refused(user: TestClient, method: str) -> None:
    for path in (*READS, "/static/console.js", "/nowhere"):
        assert user.request(method, path, headers=WRITE).status_code == 405


# -- read-only


@pytest.mark.parametrize("path", WRITES)
def test_a_read_only_console_performs_no_action(
    shown: SeededInbox, reader: TestClient, path: str
) -> None:
    subject = SUBJECTS[path](shown.names) if path in SUBJECTS else {}
    form = {TOKEN_FIELD: SESSION.form_token, "reason": "x", "name": "x", **subject}
    answer = reader.post(path, data=form, headers=WRITE)
    assert answer.status_code == 403
    assert answer.text == "read-only: start `webhookctl console` with --write"


@pytest.mark.parametrize("action", actions.ACTIONS, ids=lambda each: each.path)
def test_a_read_only_console_shows_the_button_and_why_it_is_disabled(
    shown: SeededInbox, reader: TestClient, user: TestClient, action: actions.FormAction
) -> None:
    address = action.address(**SUBJECTS[action.path](shown.names))
    disabled = 'disabled aria-describedby="refusal"'
    page = reader.get(address).text
    assert disabled in page
    assert f">{escape(action.title)}</button>" in page
    assert "read-only: start `webhookctl console` with --write" in page
    assert disabled not in user.get(address).text


def test_the_inbox_on_this_machine_is_changed_without_write_and_a_stack_is_not(
    shown: SeededInbox,
) -> None:
    assert ConsoleInbox(shown.call(), write=False).refusal
    assert not ConsoleInbox(shown.call(), write=True).refusal


@pytest.mark.parametrize(
    ("stage", "local", "marked"),
    [
        ("production", False, True),
        ("prod", False, True),
        ("Prod-eu", False, True),
        ("live", False, True),
        ("test", False, False),
        ("production", True, False),
    ],
)
def test_production_is_marked(stage: str, local: bool, marked: bool) -> None:
    with mock_aws():
        page = console(seeded(other=client, stage=stage, local=local), cookies=COOKIE).get("/audit")
    assert ("PRODUCTION" in page.text, 'class="production"' in page.text) == (marked, marked)


# -- every answer


def answers(asking: TestClient) -> Iterator[Any]:
    """Yields an answer of every kind."""
    for path in (*READS, "/nowhere", "/static/console.css", "/static/console.js", "/static/no"):
        yield asking.get(path)
        yield asking.head(path)
        yield asking.post(path, headers=WRITE)
        yield asking.put(path)
    yield asking.get("/", headers={"host": "evil.example"})
    for path in WRITES:
        yield asking.post(path)
        yield asking.post(path, data={TOKEN_FIELD: SESSION.form_token}, headers=WRITE)


def test_every_answer_has_the_headers_and_no_answer_is_json_as_text(
    anyone: TestClient, reader: TestClient
) -> None:
    codes = set()
    for asking in (anyone, reader):
        for answer in answers(asking):
            codes.add(answer.status_code)
            about = (answer.request.method, answer.url, answer.status_code)
            assert HEADERS.items() <= dict(answer.headers).items(), about
            kind = answer.headers.get("content-type", "")
            if kind.startswith("text/plain"):
                with suppress(ValueError):
                    assert json.loads(answer.text) is None, about
            else:
                assert kind.startswith(("text/html", "text/css", "text/javascript", "")), about
            assert not {SESSION.token, SESSION.cookie} & {*answer.text.split('"')}
    assert {200, 401, 403, 404, 405, 421} <= codes


def test_the_answer_to_a_fault_of_the_console_has_the_headers_too(
    shown: SeededInbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = console(shown, cookies=COOKIE, raise_server_exceptions=False)

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr("webhookctl.console.views.Views.page", fail)
    answer = failing.get("/events")
    assert (answer.status_code, "secret" in answer.text) == (500, False)
    assert HEADERS.items() <= dict(answer.headers).items()


@pytest.mark.parametrize(
    "error",
    [
        ReadTimeoutError(endpoint_url="https://dynamodb.example"),
        Unavailable("ledger", "Query", "throttled"),
        ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "Query"),
    ],
)
def test_a_fault_of_aws_is_a_page_with_its_cause_and_not_of_the_console(
    user: TestClient, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("webhook_inbox.client.pausing.pause", fail)
    monkeypatch.setattr("webhook_inbox.client.handlers.controls", fail)
    read = user.get("/handlers")
    form = {"form_token": SESSION.form_token, "name": "acme.notify", "reason": "r"}
    acted = user.post("/handlers/pause", data=form, headers=WRITE)
    for answer in (read, acted):
        assert answer.status_code == 503
        assert str(error).partition(":")[0] in unescape(answer.text)


def test_the_policy_allows_the_console_s_own_files_and_nothing_else() -> None:
    policy = HEADERS["content-security-policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules.pop("default-src") == "'none'"
    assert rules.pop("frame-ancestors") == rules.pop("base-uri") == "'none'"
    assert {*rules.values()} == {"'self'"}


# -- what is asked

HOSTILE = (
    "9" * 5000,
    "-1",
    "\u0663",
    "\u00b2",
    "%00",
    "\x00\x1b[2J",
    "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
    "<script>alert(1)</script>",
    "{{7*7}}",
    "../../etc/passwd",
    "x" * 3000,
    "1e999",
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00Z",
    "'\"`;",
)
NAMES = (
    *("source", "type", "handler", "tenant", "text", "id", "done", "number", "selection"),
    *("event_id", "hold", "name", "effect", "window", "error_class", "rejected_for", "sent"),
)
# A wrong value of one of these refuses the request before the others are read.
CHECKED = ("status", "since", "until", "part")


@pytest.mark.parametrize("path", READS)
def test_no_query_is_a_fault_of_the_console(user: TestClient, path: str) -> None:
    for value in HOSTILE:
        together = (dict.fromkeys(names, value) for names in (NAMES[::2], NAMES[1::2]))
        for query in (*together, *({name: value} for name in CHECKED)):
            answer = user.get(path, params=query)
            about = (query, answer.text[:2000])
            assert answer.status_code in {200, 400, 404, 409}, about
            assert "<script>alert(1)" not in answer.text, about
            assert "internal error" not in answer.text, about


@pytest.mark.parametrize(
    "path",
    [
        "/static/../guard.py",
        "/static/../../../pyproject.toml",
        "/static//etc/passwd",
        "/static/....//guard.py",
        "/static/..\\guard.py",
        "/static/console.js\x00.css",
        "/static/",
        "/static",
    ],
)
def test_static_serves_its_files_only(user: TestClient, path: str) -> None:
    scope_paths = []

    async def asked(scope: Any, receive: Any, send: Any) -> None:
        # As a client that normalises no address.
        if scope["type"] == "http":
            scope = {**scope, "path": path, "raw_path": path.encode()}
            scope_paths.append(path)
        await user.app(scope, receive, send)

    answer = TestClient(asked, base_url=ORIGIN, cookies=COOKIE, follow_redirects=False).get("/")
    assert scope_paths == [path]
    assert answer.status_code in {404, 307, 405}
    assert "import" not in answer.text


def test_the_secrets_of_a_session_are_not_in_its_text() -> None:
    assert SESSION.cookie not in repr(SESSION)
    assert SESSION.form_token not in repr(SESSION)
    assert SESSION.token not in repr(SESSION)
    assert len({SESSION.token, SESSION.cookie, SESSION.form_token}) == 3
