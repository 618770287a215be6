"""Writes docs/reference.md from the code it describes: `python -m scripts.reference`."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, get_args

import typer
from pydantic import BaseModel

from scripts import source_reference
from webhook_inbox.configuration import (
    approvers,
    caller_source,
    destination,
    document,
    hmac_source,
)
from webhookctl.app import app

FILE: Final = Path(__file__).resolve().parents[1] / "docs" / "reference.md"
Tables = tuple[tuple[str, type[BaseModel]], ...]
EVERY: Final[Tables] = (
    ("`[sources.NAME]`, every provider", document.Source),
    ("`throttle = { … }`, at the top or of a source", document.Throttle),
)
DECLARED: Final[Tables] = (
    ('`[sources.NAME]` with `provider = "hmac"`, also', hmac_source.DeclaredSource),
    ("`signature = { … }`", hmac_source.Signature),
    ("`timestamp = { … }`", hmac_source.Timestamp),
    ("`event_id = { … }`, one of", hmac_source.EventId),
    ("`event_type = { … }`, one of", hmac_source.EventType),
    ("`batch = { … }`", hmac_source.BatchTable),
    ("`digest = { … }`", hmac_source.DigestTable),
)
CALLERS: Final[Tables] = (
    ('`[sources.NAME]` with `auth = "jwt"`, also', caller_source.JwtSource),
    ('`[sources.NAME]` with `auth = "api-key"`, also', caller_source.ApiKeySource),
    ('`[sources.NAME]` with `auth = "basic"`, also', caller_source.BasicSource),
)
REST: Final[Tables] = (
    ("`[destinations.NAME]`", destination.Destination),
    ("`auth = { … }`, one of bearer, basic, header, query", destination.Auth),
    ("`idempotency = { … }`, one of header, field", destination.Idempotency),
    ("`breaker = { … }`", destination.BreakerTable),
    ("`[approvers.NAME]`", approvers.Approvers),
    ("`[lanes.NAME]`", document.LaneTable),
    ("`[alarms]`", document.Alarms),
    ("`domain = { … }`", document.Domain),
)
STATUSES: Final = """\
## Handler options

[Handlers](handlers.md) lists every option of `@router.on`, the attributes of `event` and `ctx`, the
errors that a handler may raise, and how a destination's responses are treated.

## Commands

`webhookctl COMMAND --help` lists the options. A command that uses an inbox takes `--local` (the
inbox on this machine) or `--stack NAME` (an inbox in AWS); all but `dev` take `--json`.
[Operate](operate.md) describes the shared options and the form of the JSON.

@COMMANDS@
## Statuses

| status of a run | meaning | next |
|---|---|---|
| `pending` | sent again by replay, approval or reconciler, not begun | a worker takes it |
| `processing` | a worker has the lease, or died with it | attempted again after the lease expires |
| `failed` | an attempt failed | attempted again at its due time |
| `deferred` | waits for an external condition; counts no attempt | checked at its due time |
| `held` | waits for an operator | `webhookctl hold approve` or `deny` |
| `dead_letter` | given up | replay, redrive or `webhookctl skip` |
| `done` | finished | none, unless forced |
| `skipped` | there was nothing to do, or an operator closed it | none, unless forced |

An event has the first status that applies to any of its runs, in this order: `dead_letter`,
`held`, `failed`, `deferred`, `processing`, `pending`, `accepted` (a run has not begun), `done`,
`skipped`. An event that arrived before its handler was deployed is `skipped`; send it again under a
new id, or ask the provider to send it again.

## Batches

Some providers send many events in one delivery; [Providers](providers.md) lists them. The inbox
stores the delivery as one event of type `batch`. Its single run, `split`, creates an event per
item. The body of an item is its exact text in the batch; its id, type and time are its own.

| item | meaning |
|---|---|
| `accepted` | stored, and its runs are sent |
| `duplicate` | known from another batch or an earlier attempt; its unsent runs are sent |
| `ignored` | of a type that the source does not store |
| `conflict` | a known id with other content; stored, and the batch's run is a dead letter |
| `rejected` | no usable id; the batch's run is a dead letter with the reason |

The run becomes a dead letter after all other items are stored. Its replay stores no item twice.
`webhookctl inbox inspect` shows these counts, and the metric `Items` has them by source and
outcome.

## Answers to a provider

| HTTP status | `status` in the body | meaning |
|---|---|---|
| 202 | `accepted` | stored and sent; Slack gets 200 |
| 200 | `duplicate` | known, and in progress or done |
| 202 | `held` | stored; its body is known under another id, and its runs are held |
| 202 | `unreadable` | stored; its type cannot be read from its body, and its runs are held |
| 202 | `contradicted` | stored; a header contradicts its signed type, and its runs are held |
| 200 | `replayed` | not stored: a signature of other content, or `identical_body = "drop"` |
| 200 | `ignored` | a type that the source does not store |
| 400, 401 | `rejected` | failed verification; `reason` names the check |
| 403 | `rejected` | a secret was offered, and no enrolment is open |
| 403 | `contested` | two secrets were offered in one enrolment; neither is accepted |
| 404 | `unknown-source` | no such source |
| 405 | `wrong-method` | POST only |
| 409 | `conflict` | a known id with other content; refused and stored |
| 429 | | beyond the source's throttle: API Gateway answers, and nothing is stored |
| 503 | `no-secret`, `key-unavailable` | not verifiable now: kept as rejected; provider retries |
| 503 | `unconfirmed` | the provider did not confirm a subscription; it asks again |
| 503 | `unavailable`, `broken` | not stored; the provider retries |

A source with `auth`, for your own callers, adds `status_url` to the answers `accepted`, `held` and
`duplicate`: the address at which the caller reads the event's status.

## Answers of a status URL

`GET /status/{token}`, at most 50 requests a second for all callers together. The token cannot be
guessed; its holder reads the status of one event until the event expires, after 35 days. The answer
has `cache-control: no-store`.

| HTTP status | body | meaning |
|---|---|---|
| 200 | `status`, `received_at`; `done_at` once all runs have ended | its [status](#statuses) |
| 404 | `{"status": "unknown"}` | a wrong token, another stage's, or an expired one |
| 429 | | beyond the limit: API Gateway answers |
| 503 | `{"status": "unavailable"}` or `broken` | ask again |

## Answers of an approval link

`GET /approvals/{token}` shows a request to one approver, and `POST` with its form decides it:
`decision` (`approve` or `deny`), `confirm=yes` and `reason`, up to 500 characters. All answers are
HTML; at most 10 requests a second for all approvers together. The route exists if `inbox.toml` has
`[approvers.NAME]`. [Approvals](approvals.md#security-of-the-links) has the threats.

| HTTP status | meaning |
|---|---|
| 200 | the page; or the decision is recorded, or was recorded before |
| 400 | the form is incomplete; nothing was recorded |
| 403 | the form of another site; nothing was recorded |
| 404 | a wrong token, or another stage's |
| 405 | neither GET, HEAD nor POST |
| 409 | this person decided otherwise before |
| 410 | expired, void, decided by others, or this person is no longer asked |
| 413, 415 | more than 16 KB, or no form |
| 429 | beyond the limit: API Gateway answers |
| 503 | nothing is lost: open the link again |

## Answers to a completion

`POST /completions/{token}` completes a job that a handler waits for with `ctx.wait_for`. The body,
up to 256 KB, is `{"result": …}` with any JSON, or `{"error": "why"}`, with `"retry": true` if
another job may be started. `webhookctl complete` does the same by token or by event.

| HTTP status | `status` in the body | meaning |
|---|---|---|
| 200 | `recorded` | the run continues |
| 200 | `repeated` | the same completion was recorded before |
| 400 | `malformed` | neither a result nor an error; `reason` says why |
| 404 | `unknown` | no such token, or its event has expired |
| 409 | `conflict` | the job has another completion |
| 410 | `late` | the run no longer waits; the result is stored, and a replay of the run uses it |
| 410 | `over` | this job failed, and another was started |
| 413 | `too-large` | more than 256 KB |
| 503 | `unavailable`, `broken` | send it again |

The metric `Completions` counts these by source and outcome.
"""


def render() -> str:
    """Returns the page."""
    intro = (
        "# Reference\n\n"
        "For looking up a key, command, status or answer. `python -m scripts.reference` generates\n"
        "this page; a test checks that it is current.\n\n"
        "## `functions/inbox.toml`\n\n"
        "Tables under `[stages.STAGE.…]` override a table for one stage. The top-level key\n"
        '`handler_secrets = ["openai"]` lists the secrets that `ctx.secret` may read.\n'
        '`allow_imports = ["h2"]` lists modules that handlers may import although `check` finds\n'
        "no requirement that contains them; a module that is missing fails each event in Lambda.\n"
        "`throttle = { rate = 500, burst = 1000 }`, its default, limits the completions, and each\n"
        "source that has no limit of its own.\n"
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
    return f"{intro}\n{tables}\n{STATUSES.replace('@COMMANDS@', _commands())}"


def _commands() -> str:
    root: Any = typer.main.get_command(app)
    rows = "".join(
        f"| `{name}` | {' '.join((command.help or '').partition(chr(10) * 2)[0].split())} |\n"
        for name, command in _leaves(root)
    )
    return f"| command | does |\n|---|---|\n{rows}"


def _leaves(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _leaves(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


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
