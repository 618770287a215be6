"""`inbox export`: a stored event becomes a test that fails as its handler did."""

import ast
import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.support.world import World
from tests.webhookctl.commands.stage import Cli, Inbox
from webhook_inbox.domain.errors import Permanent, Transient
from webhookctl.display.generated_test import _literal

LIBRARY = Path(__file__).parents[3] / "functions"
BROKEN = '''"""Handlers of a test."""

from webhook_inbox import Router

acme = Router("acme")


@acme.on("refunded")
def notify(event, ctx):
    ctx.effect("notify", lambda: event.json()["amount"]["cents"])
'''
FIXED = BROKEN.replace('event.json()["amount"]["cents"]', 'event.json()["amount"]')
BODIES = {
    "JSON": b'{"id":"evt-1","amount":5,"name":"J\xc3\xb6rg"}',
    "spaced JSON": b'{ "id" : "evt-1",\n\t"amount": 5.10 }',
    "escapes": b'{"amount":"a\\nb\\u00fc\\"","path":"C:\\\\"}',
    "text": b"amount=5&what=a%20b",
    "ends with a quote": b'he said "5"',
    "ends with a backslash": b"5\\",
    "triple quotes": b'5 """ or so',
    "deep JSON": b'{"a":' + b"[" * 1200 + b"]" * 1200 + b"}",
    "line ends": b"a\r\nb",
    "controls": b"\x1b]0;title\x07",
    "a bidirectional override": "5\u202e".encode(),
    "binary": bytes(range(256)) * 4,
    "nothing": b"",
}


def fail(inbox: World, error: BaseException, body: bytes = b'{"amount": 5}') -> None:
    inbox.script("acme.notify", error)
    inbox.deliver(type_="refunded", body=body)
    inbox.work()


def body_of(test: str, file: Path | None = None) -> bytes:
    """Returns the body that a generated test passes."""
    scope: dict[str, object] = {"__file__": str(file)}
    exec(test, scope)
    call = next(
        node
        for node in ast.walk(ast.parse(test))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "inbox.run"
    )
    found = eval(ast.unparse(call.args[1]), scope)
    assert isinstance(found, bytes)
    return found


def formatted(*files: Path) -> str:
    ruff = Path(sys.executable).with_name("ruff")
    checked = [
        subprocess.run(
            [ruff, *command, "--isolated", "--line-length", "100", *files],
            capture_output=True,
            text=True,
            check=False,
        )
        for command in (("format", "--diff"), ("check", "--select", "E4,E7,E9,F,I"))
    ]
    return "".join(each.stdout for each in checked if each.returncode)


@pytest.fixture
def project(checkout: Path) -> Path:
    (checkout / "handlers" / "orders.py").write_text(BROKEN)
    (checkout.parent / "tests").mkdir()
    options = '[tool.pytest.ini_options]\npythonpath = ["functions"]\n'
    (checkout.parent / "pyproject.toml").write_text(options)
    return checkout.parent


def run_tests(project: Path) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-p", "webhook_inbox.testing.plugin", "-q", "tests"]
    env = {"PYTHONPATH": str(LIBRARY), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PATH": os.defpath}
    ended = subprocess.run(
        command, cwd=project, env=env, capture_output=True, text=True, check=False
    )
    return ended.returncode, ended.stdout + ended.stderr


def test_the_test_fails_as_the_handler_did_and_passes_once_it_is_fixed(
    cli: Cli, inbox: Inbox, project: Path
) -> None:
    fail(inbox, TypeError("'int' object is not subscriptable"))
    file = project / "tests" / "test_refund.py"

    shown = cli("inbox", "export", "evt-1", "--as", "test", "--output", str(file))

    assert (shown.code, shown.out) == (0, f"{file}: 1 test\n")
    assert "may contain personal data" in shown.err
    assert formatted(file) == ""
    status, output = run_tests(project)
    assert status == 1
    assert "TypeError: 'int' object is not subscriptable" in output
    (project / "functions" / "handlers" / "orders.py").write_text(FIXED)
    status, output = run_tests(project)
    assert (status, "1 passed" in output) == (0, True), output


def test_what_it_writes(cli: Cli, inbox: Inbox) -> None:
    fail(inbox, Transient("crm: POST /notes answered 503"), b'{"amount":5}')
    test = cli("inbox", "export", "evt-1").out
    assert (
        test
        == '''\
"""Reproduces a stored event; written by `webhookctl inbox export`.

The body may contain personal data.
"""

from webhook_inbox.testing import Inbox

# Indented; the delivery's JSON was one line.
BODY = r"""{
  "amount": 5
}"""


def test_acme_notify_handles_evt_1(inbox: Inbox) -> None:
    # In the inbox: failed after 1 attempt.
    # crm: POST /notes answered 503
    # To answer as crm did: inbox.destinations["crm"].answers(503)
    run = inbox.run(
        "acme.notify",
        BODY.encode(),
        event_id="evt-1",
        event_type="refunded",
        headers={
            "x-acme-id": "evt-1",
            "x-acme-type": "refunded",
        },
    )
    assert run.settle().status == "done", run.error
'''
    )


@pytest.mark.parametrize("name", BODIES)
def test_every_body_survives(cli: Cli, inbox: Inbox, tmp_path: Path, name: str) -> None:
    fail(inbox, Permanent("no"), BODIES[name])
    shown = cli("inbox", "export", "evt-1")
    found = body_of(shown.out)
    if name == "JSON":
        assert json.loads(found) == json.loads(BODIES[name])
        assert "Jörg" in shown.out
    elif name == "escapes":
        assert json.loads(found) == json.loads(BODIES[name])
    elif name == "deep JSON":
        # Python 3.13 parses and indents what 3.11 does not.
        assert found.translate(None, b" \n") == BODIES[name]
    else:
        assert found == BODIES[name]
    (tmp_path / "test_it.py").write_text(shown.out, encoding="utf-8")
    assert formatted(tmp_path / "test_it.py") == ""


@pytest.mark.moto
def test_a_large_body_has_a_file_of_its_own(cli: Cli, inbox: Inbox, tmp_path: Path) -> None:
    body = b"x" * 16_385
    fail(inbox, Permanent("no"), body)
    refused = cli("inbox", "export", "evt-1")
    assert refused.code != 0
    assert "the body has 16,385 bytes, and a test contains up to 16,384" in refused.err
    file = tmp_path / "test_large.py"
    shown = cli("inbox", "export", "evt-1", "--output", str(file), "--json").data
    assert shown["files"] == [str(file), str(tmp_path / "test_large.body")]
    assert (tmp_path / "test_large.body").read_bytes() == body
    assert body_of(file.read_text(), file) == body
    assert formatted(file) == ""


def test_no_file_is_overwritten(cli: Cli, inbox: Inbox, tmp_path: Path) -> None:
    fail(inbox, Permanent("no"), b"x" * 16_385)
    file = tmp_path / "test_large.py"
    file.with_suffix(".body").write_text("mine")
    refused = cli("inbox", "export", "evt-1", "--output", str(file))
    assert "test_large.body exists: choose another --output, or remove it" in refused.err
    assert not file.exists()


def test_no_signature_and_no_secret_is_written(cli: Cli, inbox: Inbox) -> None:
    fail(inbox, Permanent("no"))
    key = inbox.overview().event
    headers = {
        "traceparent": "00-1",
        "x-acme-signature": "c2VjcmV0",
        "authorization": "Bearer word",
        "x-api-key": "word",
        "cookie": "word",
        "x-shop-domain": 'a"b',
    }
    pk = {"pk": f"event#acme#{key.event_id}", "sk": "event"}
    row = next(row for row in inbox.table.query(pk["pk"]) if row["sk"] == "event")
    inbox.table.put({**row, "headers": headers})
    test = cli("inbox", "export", "evt-1").out
    assert '"traceparent": "00-1",' in test
    assert '"x-shop-domain": \'a"b\',' in test
    assert not [word for word in ("c2VjcmV0", "word", "signature_hash") if word in test]


def test_an_error_cannot_leave_its_comment(cli: Cli, inbox: Inbox, tmp_path: Path) -> None:
    fail(inbox, Permanent('a\nimport os\n"""\x1b[31m' + "long " * 60))
    test = cli("inbox", "export", "evt-1").out
    assert [node for node in ast.parse(test).body if isinstance(node, ast.Import)] == []
    (tmp_path / "test_it.py").write_text(test, encoding="utf-8")
    assert formatted(tmp_path / "test_it.py") == ""


def test_the_handlers_that_failed_are_chosen(cli: Cli, inbox: Inbox) -> None:
    inbox.script("acme.notify", Permanent("no"))
    inbox.deliver()
    inbox.work()
    assert cli("inbox", "export", "evt-1", "--json").data["handlers"] == ["acme.notify"]
    chosen = cli("inbox", "export", "evt-1", "--handler", "acme.fulfil", "--json").data
    assert (chosen["handlers"], "after 1 attempt." in chosen["test"]) == (["acme.fulfil"], True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["evt-1"], "no run has failed (acme.notify is done): choose one with --handler"),
        (["evt-1", "--handler", "x"], "no run of x (acme.notify is done)"),
        (["evt-2"], "no event evt-2 of acme, github, stripe: check the id"),
        (["evt-1", "--as", "unittest"], "curl"),
    ],
)
def test_what_cannot_be_exported(cli: Cli, inbox: Inbox, arguments: list[str], words: str) -> None:
    inbox.deliver(type_="refunded")
    inbox.work()
    refused = cli("inbox", "export", *arguments)
    assert refused.code != 0
    assert words in refused.err


def test_base64_lines_are_short(cli: Cli, inbox: Inbox) -> None:
    fail(inbox, Permanent("no"), BODIES["binary"])
    test = cli("inbox", "export", "evt-1").out
    assert max(map(len, test.splitlines())) <= 100
    assert base64.b64encode(BODIES["binary"]).decode()[:76] in test


@pytest.mark.parametrize(
    "text", ["\\'", "'", '"', "'\"", "\\", "a\\\\'b", "\U0001f600", "\x00\n'"], ids=ascii
)
def test_every_text_survives(text: str) -> None:
    literal = _literal(text)
    assert literal.isascii()
    assert ast.literal_eval(literal) == text


def test_a_test_is_a_python_file(cli: Cli, inbox: Inbox, tmp_path: Path) -> None:
    fail(inbox, Permanent("no"), b"x" * 16_385)
    file = tmp_path / "test_large.body"
    shown = cli("inbox", "export", "evt-1", "--output", str(file))
    assert shown.code == 2
    assert "is no Python file" in shown.err
    assert not file.exists()


HEADERS = {
    "content-type": "application/json",
    "x-shop-domain": "it's $(touch /tmp/hacked) `id` \\ %s",
    "x-empty": "",
    "x-acme-signature": "c2VjcmV0",
    "authorization": "Bearer word",
}


def keep(inbox: Inbox, headers: dict[str, str]) -> None:
    """Replaces the stored headers of evt-1."""
    row = next(row for row in inbox.table.query("event#acme#evt-1") if row["sk"] == "event")
    inbox.table.put({**row, "headers": headers})


def sent(command: str, tmp_path: Path) -> tuple[list[str], bytes]:
    """Runs a command in /bin/sh with a curl that keeps what it gets; returns arguments, body."""
    fake = tmp_path / "curl"
    fake.write_text(
        f"#!{sys.executable}\nimport json, sys\n"
        f"json.dump(sys.argv[1:], open({str(tmp_path / 'arguments')!r}, 'w'))\n"
        f"open({str(tmp_path / 'body')!r}, 'wb').write(sys.stdin.buffer.read())\n"
    )
    fake.chmod(0o755)
    subprocess.run(["/bin/sh", "-c", command], env={"PATH": f"{tmp_path}:{os.defpath}"}, check=True)
    arguments: list[str] = json.loads((tmp_path / "arguments").read_text())
    return arguments, (tmp_path / "body").read_bytes()


@pytest.mark.parametrize("name", BODIES)
def test_curl_sends_every_body_byte_for_byte(
    cli: Cli, inbox: Inbox, tmp_path: Path, name: str
) -> None:
    fail(inbox, Permanent("no"), BODIES[name])
    shown = cli("inbox", "export", "evt-1", "--as", "curl", "--url", "http://x/y?a=b&c=$d")
    assert shown.out.isascii()
    arguments, body = sent(shown.out, tmp_path)
    assert body == BODIES[name]
    assert arguments[arguments.index("--url") + 1] == "http://x/y?a=b&c=$d"


def test_curl_sends_the_stored_headers_and_no_secret(
    cli: Cli, inbox: Inbox, tmp_path: Path
) -> None:
    fail(inbox, Permanent("no"))
    keep(inbox, HEADERS)
    shown = cli("inbox", "export", "evt-1", "--as", "curl")
    arguments, _ = sent(shown.out, tmp_path)
    assert [arguments[n + 1] for n, each in enumerate(arguments) if each == "--header"] == [
        "content-type: application/json",
        "x-shop-domain: it's $(touch /tmp/hacked) `id` \\ %s",
        "x-empty;",
    ]
    assert arguments[arguments.index("--url") + 1] == "http://localhost:8787/webhooks/acme"
    assert "c2VjcmV0" not in shown.out
    assert "no signature" in shown.err
    remedy = "`webhookctl --local send body --source acme --type refunded --id evt-1`"
    assert remedy in shown.err


def test_curl_in_a_file(cli: Cli, inbox: Inbox, tmp_path: Path) -> None:
    fail(inbox, Permanent("no"))
    file = tmp_path / "again.sh"
    options = ("--as", "curl", "--output", str(file))
    assert cli("inbox", "export", "evt-1", *options).out == f"{file}: a curl command\n"
    assert sent(f". {file}", tmp_path)[1] == b'{"amount": 5}'
    assert "exists" in cli("inbox", "export", "evt-1", *options).err


@pytest.mark.parametrize("name", ["JSON", "binary"])
def test_json_is_the_whole_event(cli: Cli, inbox: Inbox, tmp_path: Path, name: str) -> None:
    fail(inbox, Permanent("no"), BODIES[name])
    keep(inbox, HEADERS)
    data = cli("inbox", "export", "evt-1", "--as", "json").data
    body = data["body"].encode() if "body" in data else base64.b64decode(data["body_base64"])
    assert body == BODIES[name]
    assert list(data["headers"]) == ["content-type", "x-shop-domain", "x-empty"]
    assert (data["event_id"], data["runs"][0]["status"]) == ("evt-1", "dead_letter")
    file = tmp_path / "event.json"
    cli("inbox", "export", "evt-1", "--as", "json", "--output", str(file))
    assert json.loads(file.read_text()) == data


@pytest.mark.parametrize(
    "options", [("--as", "json", "--url", "http://x"), ("--as", "curl", "--handler", "acme.notify")]
)
def test_options_of_another_form_are_usage_errors(cli: Cli, options: tuple[str, ...]) -> None:
    assert cli("inbox", "export", "evt-1", *options).code == 2
