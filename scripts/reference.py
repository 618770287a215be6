"""Writes docs/reference.md from the code it describes: `python -m scripts.reference`."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, get_args

from pydantic import BaseModel

from scripts import source_reference
from webhook_inbox.configuration import (
    caller_source,
    destination,
    document,
    hmac_source,
)

FILE: Final = Path(__file__).resolve().parents[1] / "docs" / "reference.md"
Tables = tuple[tuple[str, type[BaseModel]], ...]
EVERY: Final[Tables] = (("`[sources.NAME]`, every provider", document.Source),)
DECLARED: Final[Tables] = (
    ('`[sources.NAME]` with `provider = "hmac"`, besides', hmac_source.DeclaredSource),
    ("`signature = { … }`", hmac_source.Signature),
    ("`timestamp = { … }`", hmac_source.Timestamp),
    ("`event_id = { … }`, one of", hmac_source.EventId),
    ("`event_type = { … }`, one of", hmac_source.EventType),
    ("`batch = { … }`", hmac_source.BatchTable),
    ("`digest = { … }`", hmac_source.DigestTable),
)
CALLERS: Final[Tables] = (
    ('`[sources.NAME]` with `auth = "jwt"`, besides', caller_source.JwtSource),
    ('`[sources.NAME]` with `auth = "api-key"`, besides', caller_source.ApiKeySource),
    ('`[sources.NAME]` with `auth = "basic"`, besides', caller_source.BasicSource),
)
REST: Final[Tables] = (
    ("`[destinations.NAME]`", destination.Destination),
    ("`auth = { … }`, one of bearer, basic, header, query", destination.Auth),
    ("`idempotency = { … }`, one of header, field", destination.Idempotency),
    ("`breaker = { … }`", destination.BreakerTable),
    ("`[alarms]`", document.Alarms),
)
HANDLERS: Final = """\
## A handler

Every option of `@router.on`, all that a handler is given and may raise, and what a destination's
answer means: [Handlers](handlers.md).

## Statuses

| run | meaning | what happens next |
|---|---|---|
| `pending` | sent (again) by replay, approval or reconciler, not begun | a worker takes it |
| `processing` | a worker is on it, or died on it | if it died: again when its lease is over |
| `failed` | an attempt failed | tried again at its due time |
| `deferred` | waits for something outside; no attempt was spent | looked at again at its due time |
| `held` | waits for a person | nothing until `webhookctl hold approve` or `deny` |
| `dead_letter` | given up | nothing until it is replayed or redriven |
| `done` | finished | nothing, ever, unless forced |
| `skipped` | there was nothing to do | nothing |

An event has the first of `dead_letter`, `held`, `failed`, `deferred`, `processing`, `pending`,
`accepted` (a run has not begun), `done`, `skipped` that fits any of its runs. One that came before
its handler was written is `skipped`; send it again under a new id, or ask the provider to.

## Batches

Some providers send many events in one delivery (their pages in `docs/providers.md` say which). It
is stored as one event of the type `batch`, whose only run, `split`, makes an event of each item. An
item's body is cut out of the batch as it is written there; its id, type and time are its own.

| an item is | meaning |
|---|---|
| `accepted` | stored, its runs sent |
| `duplicate` | known: in another batch, or from an earlier attempt; what was not sent of it is |
| `replayed` | this very content came before under another id: not run |
| `ignored` | of a type that this source does not store |
| `conflict` | a known id with other content: kept; the batch's run is a dead letter that names it |
| `rejected` | it has no id that can be used: the batch's run is a dead letter that says why |

The run becomes a dead letter when all other items are taken. Replaying it takes no item twice.
`webhookctl inbox inspect` shows these counts; the metric `Items` has them by source and outcome.

## What a provider is answered

| status | body's `status` | meaning |
|---|---|---|
| 202 | `accepted` | stored and sent; Slack gets 200 |
| 200 | `duplicate` | known, and under way or done |
| 200 | `replayed` | this very content came before under another id: not run |
| 200 | `ignored` | a type that this source does not store |
| 400, 401 | `rejected` | failed verification; `reason` says which check |
| 404 | `unknown-source` | no such source |
| 405 | `wrong-method` | POST only |
| 409 | `conflict` | a known id with other content: refused and kept |
| 503 | `no-secret`, `unavailable`, `broken` | not stored; the provider retries |

## What completes a job

`POST /completions/{token}` of at most 256 KB, where a handler waits with `ctx.wait_for`:
`{"result": …}` with any JSON, or `{"error": "why"}`, with `"retry": true` where another job may
be started. `webhookctl complete` does the same, by the token or by the event.

| status | body's `status` | meaning |
|---|---|---|
| 200 | `recorded` | its run goes on |
| 200 | `repeated` | the same was said before |
| 400 | `malformed` | neither of the two; `reason` says why |
| 404 | `unknown` | no such token, or its event has expired |
| 409 | `conflict` | it has ended otherwise |
| 410 | `late` | nobody waits any more; it is kept, and a replay of the run finds it |
| 410 | `over` | this job failed, and another was started |
| 413 | `too-large` | more than 256 KB |
| 503 | `unavailable`, `broken` | send it again |

The metric `Completions` counts these by source and outcome.
"""


def render() -> str:
    """Returns the page."""
    intro = (
        "# Reference\n\nWritten by `python -m scripts.reference`; a test keeps it fresh.\n\n"
        "## `functions/inbox.toml`\n\nAny table may differ by stage, under `[stages.STAGE.…]`. "
        '`handler_secrets = ["openai"]` at the top names secrets for `ctx.secret`.\n'
    )
    parts = (
        _sections(EVERY),
        source_reference.keys(),
        _sections(DECLARED),
        _sections(CALLERS),
        source_reference.signed(),
        _sections(REST),
    )
    tables = "\n".join(parts)
    return f"{intro}\n{tables}\n{HANDLERS}"


def _sections(tables: Tables) -> str:
    return "\n".join(f"### {title}\n\n{_table(which)}" for title, which in tables)


def _table(which: type[BaseModel]) -> str:
    rows = "".join(_rows(which))
    return f"| key | meaning | default |\n|---|---|---|\n{rows}"


def _rows(which: type[BaseModel]) -> Iterator[str]:
    of_every = document.Source.model_fields
    inherited = (
        of_every if issubclass(which, document.Source) and which is not document.Source else {}
    )
    for key, field in which.model_fields.items():
        if key in inherited:
            continue
        default = "required" if field.is_required() else _shown(field.default)
        choices = _choices(field.annotation)
        yield f"| `{field.alias or key}` | {field.description}{choices} | {default} |\n"


def _choices(annotation: Any) -> str:
    words = [word for word in get_args(annotation) if isinstance(word, str)]
    return f" ({', '.join(words)})" if words else ""


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, BaseModel):
        given = value.model_dump(exclude_unset=True).items()
        value = "{ " + ", ".join(f'{key} = "{each}"' for key, each in given) + " }" if given else ""
    return "" if value in (None, "", [], {}) else f"`{value}`"


def main() -> int:
    """Writes the page; returns the exit status."""
    FILE.write_text(render(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
