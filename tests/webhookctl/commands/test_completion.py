"""`completion`: a shell completes commands and options without a process of webhookctl."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.webhookctl.commands.every_command import leaves
from tests.webhookctl.commands.stage import Cli

COMPLETE = """
source {script}
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_webhookctl
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def completed(cli: Cli, directory: Path, words: str) -> list[str]:
    """Returns what bash offers; without webhookctl on its path."""
    script = directory / "completion.bash"
    script.write_text(cli("completion", "bash").out)
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run(
        [bash, "-c", COMPLETE.format(script=script, words=words)],
        env={"PATH": "/nonexistent"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("webhookctl desti", ["destinations"]),
        ("webhookctl destinations ''", ["list", "open", "close", "--help"]),
        ("webhookctl --local destinations o", ["open"]),
        ("webhookctl inbox list --sou", ["--source"]),
        ("webhookctl inbox list --source acme --stat", ["--status"]),
        ("webhookctl secrets rotate --ov", ["--overlap"]),
        ("webhookctl zzz", []),
    ],
)
def test_bash_offers_the_words_that_may_follow(
    cli: Cli, tmp_path: Path, words: str, offered: list[str]
) -> None:
    assert completed(cli, tmp_path, words) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_has_every_command(cli: Cli, shell: str) -> None:
    shown = cli("completion", shell)
    assert (shown.code, shown.err) == (0, "")
    assert [name for name in leaves() if name not in shown.out] == []


def test_zsh_uses_the_functions_of_bash(cli: Cli) -> None:
    assert cli("completion", "zsh").out.startswith("autoload -U +X bashcompinit && bashcompinit\n")


def test_another_shell_is_refused(cli: Cli) -> None:
    assert cli("completion", "tcsh").code == 2
