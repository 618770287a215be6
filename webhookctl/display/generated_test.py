"""Formats an event as a pytest test, in the style of `ruff format`."""

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Final

from webhook_inbox.domain.model import Run, Status, StoredEvent
from webhook_inbox.domain.printable import counted
from webhookctl.display.untrusted import printable, printable_lines

# Larger bodies are written to a file of their own.
INLINE: Final = 16 * 1024
WIDTH: Final = 88
# No such header is stored with an event; a provider that stores one must not leak it here.
SECRET_HEADER: Final = re.compile(r"sign|hmac|hash|digest|auth|token|secret|cookie|key|passw")
# The kit's delivery has its own.
OWN_HEADERS: Final = frozenset({"content-type", "user-agent"})
ANSWERED: Final = re.compile(r"\b([\w-]+): [A-Z]+ \S+ answered (\d{3})\b")


@dataclass(frozen=True, slots=True)
class GeneratedTest:
    """A test file; `body_file` is the file for the body, None if the text contains it."""

    text: str
    body: bytes
    body_file: Path | None
    handlers: tuple[str, ...]


def is_inline(body: bytes) -> bool:
    """Returns whether a test contains the body."""
    return len(body) <= INLINE


def generate(event: StoredEvent, runs: Sequence[Run], output: Path | None) -> GeneratedTest:
    """Returns a file with one test for each run.

    Args:
        event: the event with its body.
        runs: the runs to reproduce.
        output: the file of the test; a large body is written beside it, as `.body`.
    """
    body = event.body
    file = None if is_inline(body) or output is None else output.with_suffix(".body")
    imports, constant, expression = _body(body) if file is None else _beside()
    lines = [
        '"""Reproduces a stored event; written by `webhookctl inbox export`.',
        "",
        "The body may contain personal data.",
        '"""',
        "",
        *([*imports, ""] if imports else []),
        "from webhook_inbox.testing import Inbox",
        "",
        *constant,
    ]
    names: set[str] = set()
    for run in runs:
        lines += ["", "", *_test(event, run, expression, names)]
    handlers = tuple(run.handler for run in runs)
    return GeneratedTest("\n".join(lines) + "\n", body, file, handlers)


def _body(body: bytes) -> tuple[list[str], list[str], str]:
    """Returns imports, the constant, and the expression for a body in the file."""
    text = _readable(body)
    if text is not None:
        told = ["# Indented; the delivery's JSON was one line."] if text.encode() != body else []
        return [], [*told, f'BODY = r"""{text}"""'], "BODY.encode()"
    encoded = wrap(base64.b64encode(body).decode(), 76)
    constant = ['BODY = """', *encoded, '"""']
    return ["import base64"], constant, "base64.b64decode(BODY)"


def _beside() -> tuple[list[str], list[str], str]:
    constant = ['BODY = Path(__file__).with_suffix(".body")']
    return ["from pathlib import Path"], constant, "BODY.read_bytes()"


def _readable(body: bytes) -> str | None:
    """Returns a body as text that a raw literal can contain; None if it cannot.

    JSON that its parser restores exactly is indented.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    text = _indented(text)
    plain = printable_lines(text) == text and "\r" not in text
    return text if plain and '"""' not in text and not text.endswith(('"', "\\")) else None


def _indented(text: str) -> str:
    compact = (",", ":")
    try:
        data = json.loads(text)
        for separators in (compact, (", ", ": ")):
            for ascii_only in (True, False):
                if json.dumps(data, separators=separators, ensure_ascii=ascii_only) == text:
                    return json.dumps(data, indent=2, ensure_ascii=ascii_only)
    except (ValueError, RecursionError):  # no JSON, or nested too deeply to indent
        return text
    return text


def _test(event: StoredEvent, run: Run, body: str, names: set[str]) -> Iterator[str]:
    yield f"def {_name(event, run, names)}(inbox: Inbox) -> None:"
    for line in _told(run):
        yield f"    # {line}"
    yield "    run = inbox.run("
    yield f"        {_literal(run.handler)},"
    yield f"        {body},"
    yield f"        event_id={_literal(event.event_id)},"
    yield f"        event_type={_literal(event.type)},"
    if headers := _headers(event.headers):
        yield "        headers={"
        for name, value in headers.items():
            yield f"            {_literal(name)}: {_literal(value)},"
        yield "        },"
    if event.agent:
        yield f"        agent={_literal(event.agent)},"
    yield "    )"
    yield '    assert run.settle().status == "done", run.error'


def _told(run: Run) -> Iterator[str]:
    """Yields how the run ended in the inbox, as lines of a comment."""
    yield f"In the inbox: {run.status} after {counted(run.attempt_count, 'attempt')}."
    if run.status is Status.DONE:
        return
    yield from wrap(printable(run.last_error), WIDTH)
    if found := ANSWERED.search(run.last_error):
        name, status = found.groups()
        yield f'To answer as {name} did: inbox.destinations["{name}"].answers({status})'


def _name(event: StoredEvent, run: Run, names: set[str]) -> str:
    text = f"{run.handler}_handles_{event.event_id}".lower()
    stem = "test_" + re.sub(r"[^a-z0-9]+", "_", text).strip("_")[:60].strip("_")
    name, number = stem, 2
    while name in names:
        name, number = f"{stem}_{number}", number + 1
    names.add(name)
    return name


def _headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Returns the headers that the handler may read and the kit does not make."""
    return {
        name: value
        for name, value in headers.items()
        if name not in OWN_HEADERS and not SECRET_HEADER.search(name)
    }


def _literal(text: str) -> str:
    """Returns a string literal with the quotes that `ruff format` prefers."""
    literal = ascii(text)
    return literal if '"' in text or "'" in text else f'"{literal[1:-1]}"'
