"""The operator of the incidents: gives the runbook's commands in the page's order."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.docs.runbook import Section, sections, words_of
from tests.waiting import eventually

# Words of the page that are the same in each incident.
FIXED: Final = {"SOURCE": "github", "HANDLER": "github.order", "DESTINATION": "erp"}
# Seconds; a replay sends 10 runs a second, and a long incident has thousands.
TIME_LIMIT: Final = 600.0


@dataclass(frozen=True, slots=True)
class Printed:
    """Result of a command: its exit status, its standard output, and the text of both streams."""

    code: int
    output: str
    text: str

    @property
    def selection(self) -> str:
        """The id of the selection that a replay offers to continue with."""
        found = re.search(r"--selection (\w+)", self.text)
        assert found is not None, self.text
        return found[1]


class Walk:
    """A section of the runbook; each of its commands is given once, in order."""

    def __init__(self, root: Path, anchor: str) -> None:
        self._root = root
        self._section: Section = sections()[anchor]
        self._left = list(self._section.commands)

    def give(self, start: str, *, stdin: str = "", code: int = 0, **given: str) -> Printed:
        """Gives the next command, which has to begin with these words."""
        words = words_of(self._next(start), **FIXED, **given)
        done = webhookctl(self._root, *words, stdin=stdin)
        assert done.code == code, f"{words}: {done.text}"
        return done

    def repeat(self, start: str, *, until: Callable[[Printed], bool]) -> None:
        """Gives the next command, again until this holds for what it printed."""
        words, printed = words_of(self._next(start), **FIXED), Printed(0, "", "")

        def given() -> bool:
            nonlocal printed
            printed = webhookctl(self._root, *words)
            return until(printed)

        assert eventually(given), printed.text

    def leave(self, start: str) -> None:
        """Leaves out the next command, which needs the provider's own API."""
        self._next(start)

    def end(self) -> None:
        """Requires that no command of the section is left."""
        assert self._left == [], self._section.anchor

    def _next(self, start: str) -> str:
        assert self._left, f"no command left in {self._section.anchor} for {start}"
        command = self._left.pop(0)
        assert " ".join(words_of(command)).startswith(start), (command, start)
        return command


def listed(root: Path, *words: str) -> list[dict[str, Any]]:
    """Returns the objects that a command prints."""
    done = webhookctl(root, *words, "--json")
    assert done.code == 0, done.text
    return [json.loads(line) for line in done.output.splitlines()]


def webhookctl(root: Path, *words: str, stdin: str = "") -> Printed:
    """Gives a command in the project's directory."""
    done = subprocess.run(
        [sys.executable, "-m", "webhookctl", "--local", *words],
        cwd=root,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIME_LIMIT,
    )
    return Printed(done.returncode, done.stdout, done.stdout + done.stderr)
