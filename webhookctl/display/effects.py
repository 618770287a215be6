"""Effects as people and programs see them."""

import json
from typing import Any, Final

from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.handlers.effects.results import decode
from webhookctl.display.output import GAP
from webhookctl.display.times import iso
from webhookctl.explain.effects import Effect

# How much of an effect's result people are shown; JSON has all of it.
RESULT_SHOWN: Final = 120
_EFFECT_TIMES: Final = ("started_at", "committed_at", "failed_at")


def effect_object(effect: Effect) -> dict[str, Any]:
    """Returns an effect as JSON data; what is absent is null."""
    row, word = effect.row, effect.row.get("word", {})
    result = None if "result" not in row or effect.unrecorded else decode(row["result"])
    return {
        "name": effect.name,
        "state": str(effect.standing),
        "key": row.get("idempotency_key"),
        "attempt": row.get("attempt"),
        **{name: iso(from_ms(row[name])) if name in row else None for name in _EFFECT_TIMES},
        "key_honoured_until": iso(effect.key_ends),
        "in_doubt": row.get("in_doubt"),
        "error": row.get("error") or row.get("unrecorded"),
        "result": result,
        "shared": row.get("shared"),
        "found_by": row.get("found_by"),
        "told_by": word.get("by"),
        "reason": word.get("reason"),
    }


def effect_line(effect: Effect) -> str:
    """Returns an effect as one line."""
    told = effect_object(effect)
    result = json.dumps(told["result"], ensure_ascii=False)
    shown = {
        "key": told["key"],
        "shared": told["shared"],
        "attempt": told["attempt"],
        "started": told["started_at"],
        "committed": told["committed_at"],
        "failed": told["failed_at"],
        "by": told["told_by"],
        "because": told["reason"],
        "error": told["error"],
        "result": _cut(result) if told["committed_at"] and not effect.unrecorded else None,
    }
    named = (f"{name} {value}" for name, value in shown.items() if value is not None)
    return GAP.join((effect.name, str(effect.standing), *named))


def _cut(text: str) -> str:
    return text if len(text) <= RESULT_SHOWN else f"{text[: RESULT_SHOWN - 1]}…"
