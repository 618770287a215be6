"""Jobs that runs wait for, as people and programs see them."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from webhook_inbox.domain.model import Overview
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.handlers.effects.results import decode
from webhook_inbox.ledger.schema import WAIT_PREFIX
from webhookctl.display.output import GAP
from webhookctl.display.times import iso

# How much of a result people are shown; JSON has all of it.
RESULT_SHOWN: Final = 120


def waits_of(overview: Overview, handler: str) -> Iterator[Mapping[str, Any]]:
    """Yields the rows of a handler's waits."""
    prefix = f"{WAIT_PREFIX}{handler}#"
    return (row for row in overview.waits if row["sk"].startswith(prefix))


def wait_object(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a wait as JSON data; what is absent is null, and of tokens nothing is told."""
    ended = iso(from_ms(row["ended_at"])) if "ended_at" in row else None
    return {
        "name": row["name"],
        "status": row["status"],
        "job": row["number"],
        "since": iso(from_ms(row["since"])),
        "until": iso(from_ms(row["until"])),
        "ended_at": ended,
        "ended_by": row.get("ended_by"),
        "late": row.get("late", False),
        "error": row.get("error"),
        "result": decode(row["result"]) if "result" in row else None,
    }


def wait_line(row: Mapping[str, Any]) -> str:
    """Returns a wait as one line."""
    told = wait_object(row)
    result = json.dumps(told["result"], ensure_ascii=False) if "result" in row else None
    shown = {
        "job": told["job"],
        "since": told["since"],
        "until": told["until"],
        "ended": told["ended_at"],
        "by": told["ended_by"],
        "error": told["error"],
        "result": result if result is None or len(result) <= RESULT_SHOWN else _cut(result),
    }
    named = (f"{name} {value}" for name, value in shown.items() if value is not None)
    return GAP.join((told["name"], told["status"], *named))


def _cut(text: str) -> str:
    return f"{text[: RESULT_SHOWN - 1]}…"
