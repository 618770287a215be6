"""Importing one handlers module in a fresh interpreter, whatever the module does."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.waiting import DEADLINE
from webhook_inbox.configuration.declared_handlers import declared_by
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import Backoff, HandlerSpec

ROUTER = "from webhook_inbox import Router\n"
GITHUB = (
    ROUTER
    + """
github = Router("github")


@github.on("issues.*", "push", max_attempts=3, timeout=20, lane="slow", backoff="fast")
def triage(event, ctx): ...


@github.on("*", name="audit.log")
async def log(event, ctx): ...
"""
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A `functions/` with a handlers package."""
    root = tmp_path / "functions"
    (root / "handlers").mkdir(parents=True)
    (root / "handlers" / "__init__.py").touch()
    return root


def write(root: Path, text: str, module: str = "github_issues") -> None:
    (root / "handlers" / f"{module}.py").write_text(text)


def declared(
    root: Path,
    module: str = "github_issues",
    *,
    registered: tuple[str, ...] = (),
    timeout: float = DEADLINE,
) -> tuple[HandlerSpec, ...]:
    registered = registered or (module,)
    return tuple(declared_by(module, root=root, registered=registered, timeout=timeout))


def refusal(root: Path, text: str, *, timeout: float = DEADLINE) -> str:
    """The one line that a module of this text is refused with."""
    write(root, text)
    with pytest.raises(ConfigurationError) as caught:
        declared(root, timeout=timeout)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_declarations_arrive_whole_and_in_order(root: Path) -> None:
    write(root, GITHUB)
    assert declared(root) == (
        HandlerSpec(
            name="github.triage",
            module="github_issues",
            function="triage",
            source="github",
            types=("issues.*", "push"),
            max_attempts=3,
            timeout=20.0,
            lane="slow",
            backoff=Backoff(base=0.2, factor=2.0, cap=2.0),
        ),
        HandlerSpec(
            name="audit.log",
            module="github_issues",
            function="log",
            source="github",
            types=("*",),
        ),
    )


def test_a_module_may_have_several_routers_and_names_for_one(root: Path) -> None:
    write(
        root,
        GITHUB + "alias = github\nstripe = Router('stripe')\n@stripe.on('*')\ndef pay(e, c): ...",
    )
    assert [spec.name for spec in declared(root)] == ["github.triage", "audit.log", "stripe.pay"]


def test_a_router_without_handlers_declares_nothing(root: Path) -> None:
    write(root, ROUTER + "github = Router('github')\n")
    assert declared(root) == ()


def test_what_a_module_prints_does_not_matter(root: Path) -> None:
    noise = (
        "import sys\nprint('{}' * 100_000)\nsys.stderr.write('x' * 100_000)\nsys.stdout.close()\n"
    )
    write(root, noise + GITHUB)
    assert len(declared(root)) == 2


def test_modules_do_not_see_each_other(root: Path) -> None:
    write(root, "import string\nstring.digits = ''\n" + GITHUB, "first")
    write(root, "import string\nassert string.digits\n" + GITHUB, "second")
    assert len(declared(root, "first")) == len(declared(root, "second")) == 2


def test_the_build_s_own_interpreter_imports_nothing_of_the_user_s(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The testing kit imports handlers here, and may have.
    monkeypatch.delitem(sys.modules, "handlers.github_issues", raising=False)
    write(root, "import wave\n" + GITHUB)
    declared(root)
    assert "handlers.github_issues" not in sys.modules


def test_a_module_may_use_its_neighbours(root: Path) -> None:
    write(root, "LANE = 'slow'\n", "_lanes")
    write(root, "from handlers._lanes import LANE\n" + GITHUB)
    assert len(declared(root)) == 2


def test_aws_clients_can_be_made_at_import(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    write(root, "import boto3\nclient = boto3.client('s3')\n" + GITHUB)
    assert len(declared(root)) == 2


def test_an_import_does_not_get_the_user_s_aws_environment(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PROFILE", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "REGION"):
        monkeypatch.setenv(f"AWS_{name}", "the operator's")
    check = (
        "import os, botocore.session\n"
        'assert "the operator\'s" not in os.environ.values()\n'
        "assert botocore.session.get_session().get_credentials() is None\n"
    )
    write(root, check + GITHUB)
    assert len(declared(root)) == 2


def test_nothing_is_written_beside_the_user_s_files(root: Path) -> None:
    write(root, GITHUB)
    declared(root)
    assert sorted(path.name for path in (root / "handlers").iterdir()) == [
        "__init__.py",
        "github_issues.py",
    ]


def test_handlers_of_another_registered_module_are_that_module_s(root: Path) -> None:
    write(root, GITHUB)
    write(
        root,
        "from handlers.github_issues import github\n@github.on('x')\ndef more(e, c): ...\n",
        "more",
    )
    both = ("github_issues", "more")
    assert [s.name for s in declared(root, "more", registered=both)] == ["github.more"]


def test_a_function_from_elsewhere_belongs_to_the_module_that_registers_it(root: Path) -> None:
    write(root, "def shared(event, ctx): ...\n", "_shared")
    imports = ROUTER + "from handlers._shared import shared\n"
    write(root, imports + "github = Router('github')\ngithub.on('*')(shared)\n")
    [spec] = declared(root)
    assert (spec.name, spec.module) == ("github.shared", "github_issues")


def test_a_module_without_a_router_is_refused(root: Path) -> None:
    assert refusal(root, "def triage(event, ctx): ...\n") == (
        "functions/handlers/github_issues.py: has no Router; make one, or take 'github_issues'"
        " out of MODULES in handlers/__init__.py"
    )


def test_a_missing_library_is_named_with_its_line(root: Path) -> None:
    assert refusal(root, "\nimport nothing_like_it\n" + GITHUB) == (
        "functions/handlers/github_issues.py:2: cannot be imported: ModuleNotFoundError:"
        " No module named 'nothing_like_it'; install it, and add it to the handlers'"
        " requirements"
    )


def test_an_error_deep_in_a_library_is_shown_at_the_user_s_line(root: Path) -> None:
    said = refusal(root, GITHUB + "\nimport json\njson.loads('{')\n")
    assert said.startswith("functions/handlers/github_issues.py:14: cannot be imported: JSONDecode")
    assert said.endswith("; fix it, or take it out of MODULES in handlers/__init__.py")


def test_an_error_in_a_neighbour_is_shown_there(root: Path) -> None:
    write(root, "\n\n1 / 0\n", "_downstream")
    said = refusal(root, "from handlers import _downstream\n" + GITHUB)
    assert said.startswith("functions/handlers/_downstream.py:3: cannot be imported: ZeroDivision")


def test_an_error_of_many_lines_becomes_one(root: Path) -> None:
    assert "ValueError: a b; fix it" in refusal(root, "raise ValueError('a\\n  b')\n")


@pytest.mark.parametrize("text", ["def triage(:\n", "if True:\n", "\0"])
def test_what_is_no_python_is_shown_with_its_line(root: Path, text: str) -> None:
    said = refusal(root, text)
    assert said.startswith("functions/handlers/github_issues.py")
    assert "SyntaxError" in said or "IndentationError" in said or "source code" in said


@pytest.mark.parametrize(
    ("declaration", "why"),
    [
        ("@github.on('*', name='Triage!')", "a name is 1-64 of a-z 0-9 _ . -"),
        ("@github.on('*', name='x' * 65)", "a name is 1-64 of a-z 0-9 _ . -"),
        ("@github.on('*', name='')", "a name is 1-64 of a-z 0-9 _ . -"),
        ("@github.on('*', name='split')", "this name is the inbox's own, choose another"),
        ("@github.on()", "name at least one event type"),
        ("@github.on('*', timeout=56)", "timeout is 1-55 seconds"),
    ],
)
def test_a_bad_declaration_is_refused_at_its_line(root: Path, declaration: str, why: str) -> None:
    text = f"{ROUTER}github = Router('github')\n{declaration}\ndef triage(event, ctx): ...\n"
    said = refusal(root, text)
    assert said.startswith("functions/handlers/github_issues.py:3: handler ")
    assert why in said


@pytest.mark.parametrize("how", ["import sys; sys.exit(3)", "raise KeyboardInterrupt"])
def test_a_module_that_ends_the_program_is_refused(root: Path, how: str) -> None:
    said = refusal(root, how)
    assert said.startswith("functions/handlers/github_issues.py:1: cannot be imported: ")


def test_a_module_that_kills_its_process_is_refused(root: Path) -> None:
    said = refusal(root, "import os; os._exit(7)")
    assert "importing it ended the process (exit status 7)" in said


def test_a_module_that_never_ends_is_refused(root: Path) -> None:
    said = refusal(root, "import time\ntime.sleep(60)\n", timeout=1)
    assert said.endswith("still importing after 1 s; move the work into the handler")


def test_a_module_that_leaves_a_process_behind_does_not_hold_the_build(root: Path) -> None:
    """It would, if we waited for the end of an output that the grandchild has inherited."""
    pid = root / "pid"
    start = f"child = subprocess.Popen(['sleep', '{DEADLINE}'])"
    note = f"pathlib.Path({str(pid)!r}).write_text(str(child.pid))"
    write(root, f"import pathlib, subprocess; {start}; {note}\n{GITHUB}")

    assert len(declared(root)) == 2

    os.kill(int(pid.read_text()), signal.SIGKILL)  # raises if it has ended
