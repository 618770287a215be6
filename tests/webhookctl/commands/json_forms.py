"""Compares what `--json` prints with what is stored in json_forms.json."""

import json
import os
import re
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any, Final

import pytest

from tests.webhookctl.commands.every_command import leaves
from tests.webhookctl.commands.stage import Cli, Result

UPDATE: Final = "UPDATE_JSON_FORMS"
STORE: Final = Path(__file__).with_suffix(".json")
TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
# What differs from one run to the next, or is a page of documentation: its type is compared.
SUBSTITUTES: Final = (
    (re.compile(r"http://127\.0\.0\.1:\d+"), "http://<address>"),
    # Ids of selections, holds and code versions.
    (re.compile(r"\b(?:[0-9a-f]{8}|[0-9a-f]{12})\b"), "<id>"),
    (re.compile(r"(?s).*\n.*"), "<lines>"),
)


def stored() -> dict[str, list[dict[str, Any]]]:
    """Returns the stored calls of each test."""
    found: dict[str, list[dict[str, Any]]] = json.loads(STORE.read_text())
    return found


def accepting() -> Iterator[str]:
    """Yields the commands that accept `--json`."""
    for name, command in leaves().items():
        if any("--json" in parameter.opts for parameter in command.params):
            yield name


def command_of(arguments: tuple[str, ...]) -> str:
    """Returns the command that the arguments call."""
    return max((name for name in leaves() if starts(arguments, name.split())), key=len)


def starts(arguments: tuple[str, ...], words: list[str]) -> bool:
    return list(arguments[: len(words)]) == words


class Forms:
    """The command line, each of whose calls has `--json` and prints what is stored.

    Attributes:
        cli: the command line; a test may replace it by that of another inbox.
        manual: False where times are those of the machine; their values are not compared.
    """

    def __init__(self, cli: Cli, test: str, directory: Path) -> None:
        self.cli = cli
        self.manual = True
        self._directory = str(directory)
        self._test = test
        self._calls: list[dict[str, Any]] = []
        self._wanted = stored().get(test, [])

    def __call__(self, *arguments: str, stdin: str = "") -> Result:
        """Calls the command and compares the form of its output."""
        result = self.cli(*arguments, "--json", stdin=stdin)
        self.cli.inbox.clock.advance(seconds=1)  # so that the audit is in order
        call = {
            "call": self._shown(" ".join(arguments)),
            "command": command_of(arguments),
            "exit_status": result.code,
            "notes": bool(result.err),
            "objects": [self._form(json.loads(line)) for line in result.out.splitlines()],
        }
        self._calls.append(call)
        if UPDATE not in os.environ:
            self._compare(call)
        return result

    def _compare(self, call: dict[str, Any]) -> None:
        wanted = self._wanted.pop(0) if self._wanted else {}
        # As text, since the order of keys counts.
        before, now = _text(wanted).splitlines(), _text(call).splitlines()
        difference = list(unified_diff(before, now, "stored", "printed", lineterm=""))
        if difference:
            self._wanted.clear()
            pytest.fail("\n".join([f"{self._test}: {call['call']}", *difference]), pytrace=False)

    def end(self) -> None:
        """Updates the stored calls if the environment says so; otherwise none may be left."""
        if UPDATE in os.environ:
            found = {**stored(), self._test: self._calls}
            STORE.write_text(_text(dict(sorted(found.items()))) + "\n")
        else:
            assert not self._wanted, "stored and not called"

    def _form(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self._shown(key): self._form(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._form(each) for each in value]
        return self._shown(value) if isinstance(value, str) else value

    def _shown(self, text: str) -> str:
        text = text.replace(self._directory, "<directory>")
        if not self.manual:
            text = TIME.sub("<time>", text)
        for pattern, name in SUBSTITUTES:
            text = pattern.sub(name, text)
        return text


def _text(value: Any, indent: str = "") -> str:
    """Returns indented JSON whose short objects and lists are one line."""
    line = json.dumps(value)
    if len(indent) + len(line) < 100 or not isinstance(value, dict | list):
        return line
    more = f"{indent} "
    if isinstance(value, list):
        entries, (begin, end) = [_text(each, more) for each in value], "[]"
    else:
        named = ((json.dumps(key), _text(each, more)) for key, each in value.items())
        entries, (begin, end) = [f"{key}: {each}" for key, each in named], "{}"
    return f"{begin}\n{more}" + f",\n{more}".join(entries) + f"\n{indent}{end}"
