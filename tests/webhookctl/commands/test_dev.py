"""`dev`: what the command line hands to the local runtime."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.webhookctl.commands.stage import Cli
from webhookctl.commands.dev import read_file
from webhookctl.errors import CommandError

VALUE = "whsec_nobody-may-see-this"


USUAL: dict[str, Any] = {"hosts": frozenset(), "keep": None, "fresh": False}


class Runtime:
    """The local runtime, as far as the command line knows it."""

    def __init__(self) -> None:
        self.calls: list[tuple[Path, dict[str, Any]]] = []
        self.status = 0

    def run_dev(self, root: Path, **options: Any) -> int:
        self.calls.append((root, options))
        return self.status


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Runtime:
    found = Runtime()
    module = ModuleType("webhookctl.local.session")
    module.run_dev = found.run_dev  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "webhookctl.local.session", module)
    return found


def test_it_runs_the_repository_with_the_usual_ports(
    cli: Cli, checkout: Path, runtime: Runtime
) -> None:
    assert cli("dev").code == 0
    assert runtime.calls == [
        (checkout.parent, {"port": 8787, "sink_port": 8788, "secrets": {}, **USUAL})
    ]


def test_ports_and_secrets_are_handed_on(cli: Cli, checkout: Path, runtime: Runtime) -> None:
    cli(
        *("dev", "--port", "9000", "--sink-port", "9001"),
        *("--secret", f"stripe={VALUE}", "--secret", "acme=a=b"),
    )
    [(_, options)] = runtime.calls
    assert options == {
        "port": 9000,
        "sink_port": 9001,
        "secrets": {"stripe": VALUE, "acme": "a=b"},
        **USUAL,
    }


def test_kept_events_are_deleted_only_with_their_directory(
    cli: Cli, checkout: Path, runtime: Runtime, tmp_path: Path
) -> None:
    assert cli("dev", "--keep", str(tmp_path), "--fresh").code == 0
    [(_, options)] = runtime.calls
    assert (options["keep"], options["fresh"]) == (tmp_path, True)
    shown = cli("dev", "--fresh")
    assert shown.code == 2
    assert "give --keep DIR too" in " ".join(shown.err.replace("│", " ").split())
    assert len(runtime.calls) == 1


def test_a_secret_on_the_command_line_is_warned_of(
    cli: Cli, checkout: Path, runtime: Runtime
) -> None:
    shown = cli("dev", "--secret", f"stripe={VALUE}")
    assert "--secret is visible to other users of this machine" in shown.err
    assert "--secrets-file" in shown.err
    assert VALUE not in shown.err
    assert cli("dev").err == ""


def test_secrets_come_from_standard_input(cli: Cli, checkout: Path, runtime: Runtime) -> None:
    shown = cli("dev", "--secrets-file", "-", stdin=f"stripe={VALUE}\nacme=two\n")
    assert (shown.code, shown.err) == (0, "")
    [(_, options)] = runtime.calls
    assert options["secrets"] == {"stripe": VALUE, "acme": "two"}


def test_the_names_of_tunnels_are_handed_on(cli: Cli, checkout: Path, runtime: Runtime) -> None:
    cli("dev", "--public-host", "Abc.example.com", "--public-host", "b.example")
    [(_, options)] = runtime.calls
    assert options["hosts"] == {"abc.example.com", "b.example"}


@pytest.mark.parametrize(
    "name", ["https://a.example", "a.example:443", "a.example/x", "*", "*.example", "", ".example"]
)
def test_a_tunnel_is_one_host_name(cli: Cli, checkout: Path, runtime: Runtime, name: str) -> None:
    shown = cli("dev", "--public-host", name)
    assert shown.code == 2
    assert "is not a host name" in shown.err.replace("\n", " ")
    assert runtime.calls == []


def test_the_exit_status_is_the_runtimes(cli: Cli, checkout: Path, runtime: Runtime) -> None:
    runtime.status = 130
    assert cli("dev").code == 130


def test_a_secret_on_the_command_line_beats_the_files(
    cli: Cli, checkout: Path, runtime: Runtime
) -> None:
    Path("secrets.env").write_text("stripe=from-the-file\nacme=from-the-file\n")
    cli("dev", "--secrets-file", "secrets.env", "--secret", f"stripe={VALUE}")
    [(_, options)] = runtime.calls
    assert options["secrets"] == {"stripe": VALUE, "acme": "from-the-file"}


@pytest.mark.parametrize("secret", [VALUE, f"={VALUE}", "stripe="])
def test_a_secret_of_another_form_is_told_without_it(
    cli: Cli, checkout: Path, runtime: Runtime, secret: str
) -> None:
    shown = cli("dev", "--secret", secret, "--debug")
    assert shown.code == 1
    assert "webhookctl: --secret number 1: write SOURCE=VALUE\n" in shown.err
    assert VALUE not in shown.err
    assert runtime.calls == []


def test_what_is_missing_for_it_names_the_setup(
    cli: Cli, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "webhookctl.local.session", None)
    shown = cli("dev")
    assert shown.code == 1
    assert "`pip install 'webhook-inbox[cdk,dev]'`, or `make setup` in a clone" in shown.err


def test_outside_of_a_repository_it_says_where_to_go(cli: Cli, runtime: Runtime) -> None:
    assert "no functions/inbox.toml here or above" in cli("dev").err


@pytest.mark.parametrize("port", ["0", "65536", "http"])
def test_a_port_that_is_none_is_a_wrong_call(
    cli: Cli, checkout: Path, runtime: Runtime, port: str
) -> None:
    assert cli("dev", "--port", port).code == 2


# -- files of secrets


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    def written(text: str) -> Path:
        file = tmp_path / "secrets"
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
        return file

    return written


@pytest.mark.parametrize(
    "text",
    [
        "stripe=one\nacme=two\n",
        "# real ones\n\n  stripe = one \r\nacme=two",
        "stripe='one'\nacme=\"two\"\n",
        'stripe = "one"\nacme = "two" # TOML\n',
        "'stripe' = 'one'\n\"acme\" = 'two'\n",
    ],
)
def test_lines_and_toml_say_the_same(write: Callable[[str], Path], text: str) -> None:
    assert read_file(write(text)) == {"stripe": "one", "acme": "two"}


@pytest.mark.parametrize(
    "value", ["0123", "42", "1_000", "true", "a=b==", "sp ace", "'", "2026-11-21"]
)
def test_a_bare_value_is_text_whatever_toml_thinks(
    write: Callable[[str], Path], value: str
) -> None:
    assert read_file(write(f"acme={value}\n")) == {"acme": value}


@pytest.mark.parametrize("line", [VALUE, f"={VALUE}", "[secrets]", "acme ="])
def test_a_line_that_is_none_is_told_by_its_number(write: Callable[[str], Path], line: str) -> None:
    file = write(f"stripe=one\n\n{line}\n")
    with pytest.raises(CommandError) as raised:
        read_file(file)
    assert str(raised.value) == f"{file}, line 3: write SOURCE=VALUE"


def test_a_file_that_is_no_text_is_told_without_its_bytes(write: Callable[[str], Path]) -> None:
    with pytest.raises(CommandError, match="not UTF-8") as raised:
        read_file(write("acme=\udcff"))
    assert raised.value.__cause__ is None


def test_an_empty_file_has_no_secrets(write: Callable[[str], Path]) -> None:
    assert read_file(write("\n# nothing yet\n")) == {}
