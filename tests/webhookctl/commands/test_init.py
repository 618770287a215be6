"""`webhookctl init`: the project that it writes."""

import io
import json
import shlex
import shutil
import tomllib
from pathlib import Path

import pytest

from tests.webhookctl.commands.stage import Cli
from webhook_inbox.configuration.compile import compile_manifest

CLONE = Path(__file__).resolve().parents[3]
TEMPLATE = CLONE / "webhookctl" / "template"


def files(directory: Path) -> set[str]:
    return {p.relative_to(directory).as_posix() for p in directory.rglob("*") if p.is_file()}


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "elsewhere"
    directory.mkdir()
    monkeypatch.chdir(directory)
    return directory


def test_it_writes_a_project_that_compiles(cli: Cli, elsewhere: Path) -> None:
    shown = cli("init", "demo")

    assert shown.out.startswith("Created demo with 15 files. Next:")
    manifest = compile_manifest(elsewhere / "demo" / "functions", stage="dev")
    assert list(manifest.handlers) == ["shop.confirm"]
    assert (elsewhere / "demo" / "README.md").read_text().startswith("# demo\n")


def test_no_placeholder_remains(cli: Cli, elsewhere: Path) -> None:
    cli("init", "demo")
    cli("init", "forwarding", "--forward", "https://app.acme.com/in")
    for path in elsewhere.rglob("*"):
        assert path.is_dir() or "$" not in path.read_text(), path


def test_each_file_is_short(cli: Cli, elsewhere: Path) -> None:
    cli("init", "demo")
    lengths = {
        name: len((elsewhere / "demo" / name).read_text().splitlines())
        for name in files(elsewhere / "demo")
    }
    assert max(lengths.values()) <= 75, lengths
    assert sum(lengths.values()) <= 260


def test_this_repository_s_app_is_the_same_one() -> None:
    for name in ("app.py", "stacks/__init__.py", "stacks/inbox_stack.py"):
        assert (TEMPLATE / "project" / name).read_text() == (CLONE / name).read_text()


@pytest.mark.parametrize(
    ("directory", "stack"),
    [
        ("shop", "WebhookInbox-shop"),
        ("my_shop.eu", "WebhookInbox-my-shop-eu"),
        # Letters are left out, which the hash stands for.
        ("x" * 70, "WebhookInbox-" + "x" * 51 + "-c71bd109"),
        ("注文", "WebhookInbox-project-266125dd"),
        ("支払", "WebhookInbox-project-15144a88"),
        ("bücher", "WebhookInbox-b-cher-958ec9bf"),
    ],
)
def test_two_projects_of_one_account_have_stacks_of_their_own(
    cli: Cli, elsewhere: Path, directory: str, stack: str
) -> None:
    """A second project with the stack name of the first one would replace its handlers."""
    cli("init", directory)
    assert json.loads((elsewhere / directory / "cdk.json").read_text())["context"]["stack"] == stack
    assert f"--stack {stack}-dev " in (elsewhere / directory / "README.md").read_text()


class Terminal(io.StringIO):
    """A standard input that a user types."""

    def isatty(self) -> bool:
        return True


def alarms(project: Path) -> object:
    return tomllib.loads((project / "functions" / "inbox.toml").read_text()).get("alarms")


@pytest.mark.parametrize(
    ("given", "notify"),
    [
        ("mailto:team@acme.com", ["mailto:team@acme.com"]),
        ("team@acme.com", ["mailto:team@acme.com"]),
        ("https://pager.acme.com/x", ["https://pager.acme.com/x"]),
        ('mailto:"a"@acme.com', ['mailto:"a"@acme.com']),
        ("mailto:ü@acme.com", ["mailto:ü@acme.com"]),
        ("none", []),
    ],
)
def test_alarms_reach_the_given_address(
    cli: Cli, elsewhere: Path, given: str, notify: list[str]
) -> None:
    for directory, arguments, typed in (
        ("option", ["--alarms", given], ""),
        ("typed", [], f"{given}\n"),
    ):
        shown = cli("init", directory, *arguments, stdin=Terminal(typed))
        assert shown.code == 0
        assert "No address" not in shown.err
        assert alarms(elsewhere / directory) == {"notify": notify}


@pytest.mark.parametrize("given", ["acme.com", "http://acme.com", "mailto:acme", "", "a@b\x07.io"])
def test_an_address_of_alarms_that_aws_does_not_take_is_refused(
    cli: Cli, elsewhere: Path, given: str
) -> None:
    shown = cli("init", "demo", "--alarms", given)
    assert shown.code == 2
    assert not (elsewhere / "demo").exists()


def test_a_mistyped_address_is_asked_for_again(cli: Cli, elsewhere: Path) -> None:
    shown = cli("init", "demo", stdin=Terminal("acme\nteam@acme.com\n"))
    assert "'acme' is not an address: give mailto:… or https://…, or none" in shown.err
    assert alarms(elsewhere / "demo") == {"notify": ["mailto:team@acme.com"]}


@pytest.mark.parametrize("stdin", [io.StringIO(), Terminal("\n")])
def test_without_an_answer_the_table_is_a_comment_and_the_command_says_so(
    cli: Cli, elsewhere: Path, stdin: io.StringIO
) -> None:
    shown = cli("init", "demo", stdin=stdin)
    assert shown.code == 0
    assert shown.err.endswith("before you deploy, set one in functions/inbox.toml.\n")
    text = (elsewhere / "demo" / "functions" / "inbox.toml").read_text()
    assert "\n# [alarms]\n# notify = [" in text
    assert alarms(elsewhere / "demo") is None


def test_json_is_never_interrupted_by_a_question(cli: Cli, elsewhere: Path) -> None:
    shown = cli("init", "demo", "--json", stdin=Terminal("team@acme.com\n"))
    assert shown.data["files"] == 15
    assert alarms(elsewhere / "demo") is None


@pytest.mark.parametrize("taken", ["README.md", "functions/inbox.toml"])
def test_nothing_is_overwritten(cli: Cli, elsewhere: Path, taken: str) -> None:
    file = elsewhere / "demo" / taken
    file.parent.mkdir(parents=True)
    file.write_text("mine")

    shown = cli("init", "demo")

    assert shown.code == 1
    assert f"demo already has {taken}: choose a new directory, or remove it" in shown.err
    assert files(elsewhere / "demo") == {taken}
    assert file.read_text() == "mine"


def test_a_directory_with_other_files_is_completed(cli: Cli, elsewhere: Path) -> None:
    (elsewhere / ".git").mkdir()
    (elsewhere / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    assert cli("init", ".").code == 0
    assert (elsewhere / "app.py").is_file()
    assert (elsewhere / "README.md").read_text().startswith("# elsewhere\n")


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("https://app.acme.com/in", "sink"),
        ("http://localhost:3000/in", "http://localhost:3000/in"),
        ("http://127.0.0.1:3000", "http://127.0.0.1:3000"),
        ("http://[::1]:3000", "http://[::1]:3000"),
    ],
)
def test_forwarding_calls_the_service_when_deployed_and_never_from_a_laptop(
    cli: Cli, elsewhere: Path, url: str, local: str
) -> None:
    assert cli("init", "demo", "--forward", url).code == 0

    document = tomllib.loads((elsewhere / "demo" / "functions" / "inbox.toml").read_text())

    deployed = document["destinations"]["app"]["base_url"]
    assert deployed == (url if local == "sink" else "https://app.example.com")
    assert document["stages"]["local"]["destinations"]["app"]["base_url"] == local
    # The commands of the project's own workflow.
    for stage in ("local", "dev"):
        manifest = compile_manifest(elsewhere / "demo" / "functions", stage=stage)
        assert list(manifest.handlers) == ["shop.forward"]


def test_a_service_on_this_machine_needs_an_address_before_a_deployment(
    cli: Cli, elsewhere: Path
) -> None:
    shown = cli("init", "demo", "--forward", "http://localhost:3000/in")
    assert "before you deploy, set the service's address in functions/inbox.toml" in shown.err
    arguments = ("--forward", "https://app.acme.com/in", "--alarms", "none")
    assert cli("init", "other", *arguments).err == ""


@pytest.mark.parametrize(
    "url",
    [
        "app.acme.com",
        "sink",
        "ftp://app.acme.com",
        "https://",
        'https://a.com/"',
        "https://a.com/\n",
        "https://a.com/\r",
        "https://a.com/\x07",
        "https://app.example.com/in",
        "https://crm.internal/in",
        "http://app.acme.io",
        "https://user:pass@app.acme.io",
        "https://app.acme.io/in?a=b",
        "https://app.acme.io/in#a",
        "https://app.acme.io:99999",
        "http://[::1",
    ],
)
def test_an_address_that_is_no_url_is_refused(cli: Cli, elsewhere: Path, url: str) -> None:
    shown = cli("init", "demo", "--forward", url)
    assert shown.code == 2
    assert not (elsewhere / "demo").exists()


def test_the_workflow_pins_its_actions_as_ours_does() -> None:
    ours = (CLONE / ".github" / "workflows" / "ci.yml").read_text().split()
    theirs = (TEMPLATE / "project" / ".github" / "workflows" / "ci.yml").read_text().split()
    assert {word for word in theirs if "@" in word} <= set(ours)


def test_the_wheel_needs_what_the_template_installs(cli: Cli, elsewhere: Path) -> None:
    cli("init", "demo")
    line = (elsewhere / "demo" / "requirements.txt").read_text().splitlines()[-1]
    project = tomllib.loads((CLONE / "pyproject.toml").read_text())["project"]
    assert line == f"{project['name']}[cdk,dev]=={project['version']}"
    assert set(project["optional-dependencies"]) == {"cdk", "console", "dev", "mcp"}
    shutil.rmtree(elsewhere / "demo")


def test_the_first_command_is_one_that_a_shell_accepts(cli: Cli, elsewhere: Path) -> None:
    lines = cli("init", "it's a demo").out.splitlines()
    first = next(line for line in lines if line.startswith("  cd "))
    assert shlex.split(first) == ["cd", "it's a demo"]
    assert first == first.rstrip()


@pytest.mark.parametrize("name", ["functions", "tests"])
def test_a_file_in_place_of_a_directory_is_refused_first(
    cli: Cli, elsewhere: Path, name: str
) -> None:
    (elsewhere / "part").mkdir()
    (elsewhere / "part" / name).write_text("mine")
    shown = cli("init", "part")
    assert shown.code == 1
    assert f"part/{name} is not a directory" in shown.err
    assert files(elsewhere / "part") == {name}
