"""`rejected`: deliveries that failed verification, looked at, judged again and let in."""

from collections.abc import Iterator
from heapq import nlargest
from itertools import islice
from typing import Annotated, Final

import typer

from webhook_inbox import providers
from webhook_inbox.adapters.https import HttpsFetcher
from webhook_inbox.domain.errors import Reason, Unavailable
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.secrets import SecretCache
from webhook_inbox.ingest.deduplication import IdempotentReceiver
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.ingest.rejected import RejectedDelivery, RejectedFilter, find
from webhook_inbox.ingest.release import ReleaseVerdict, Reverification, ReverifiedDelivery
from webhookctl.checkout import Checkout
from webhookctl.display.event import body_object
from webhookctl.display.rejected import kept_object, print_checked, print_kept
from webhookctl.display.times import iso, moment
from webhookctl.errors import CommandError
from webhookctl.invocation import Invocation, caller, takes_options
from webhookctl.naming import require_known

COLUMNS: Final = ("RECEIVED", "SOURCE", "ID", "REASON", "BYTES", "STATE")
# The event is in, by this release or before it.
IN: Final = frozenset(
    {
        IngestOutcome.ACCEPTED,
        IngestOutcome.DUPLICATE,
        IngestOutcome.REPLAYED,
        ReleaseVerdict.RELEASED,
    }
)
# Nothing is wrong with it.
FINE: Final = frozenset(
    {*IN, ReleaseVerdict.VALID, ReleaseVerdict.CHALLENGE, ReleaseVerdict.IGNORED}
)

Source = Annotated[str | None, typer.Option(help="Of this source only.")]
Reasons = Annotated[list[Reason] | None, typer.Option("--reason", help="May repeat.")]
Since = Annotated[str | None, typer.Option(help="30m, 2h, 7d (ago), or a time.")]
Until = Annotated[str | None, typer.Option(help="2h (ago), or a time.")]
Limit = Annotated[int, typer.Option(min=1, help="At most so many.")]
Ids = Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="As list shows them.")]

app: Final = typer.Typer(
    no_args_is_help=True, help="Deliveries that failed verification.", rich_markup_mode=None
)


@app.command("list")
@takes_options
def list_rejected(
    call: Invocation,
    *,
    source: Source = None,
    reason: Reasons = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 50,
) -> None:
    """List rejected deliveries, newest first; they are kept for 7 days."""
    kept = _find(call, source, _wanted(call, (), reason, since, until))
    found = nlargest(limit, kept, key=lambda each: each.received_at)
    if call.as_json:
        for each in found:
            call.output.json(kept_object(each))
        return
    if not found:
        call.output.note("No such deliveries.")
        return
    call.output.table(COLUMNS, [_row(each) for each in found])
    if len(found) == limit:
        call.output.note(f"The newest {limit}; more with --limit, or narrow it down.")
    call.output.note(
        call.pasteable("Judge them by today's secrets with `webhookctl rejected reverify`.")
    )


def _row(kept: RejectedDelivery) -> tuple[object, ...]:
    state = "kept" if kept.released_at is None else "released"
    size = kept.row["body_size"]
    return (iso(kept.received_at), kept.source, kept.id, kept.reason, size, state)


@app.command("show")
@takes_options
def show(
    call: Invocation,
    *,
    id_: Annotated[str, typer.Argument(metavar="ID", help="As list shows it.")],
    source: Source = None,
    body: Annotated[bool, typer.Option("--body", help="Print the body as well.")] = False,
) -> None:
    """Show one rejected delivery; signatures and tokens are never printed."""
    kept = next(_find(call, source, RejectedFilter(ids=(id_,))), None)
    if kept is None:
        raise CommandError(_unknown(call, [id_]))
    found = Checkout.find()
    spec = None if found is None else found.sources(call.target.stage).get(kept.source)
    provider = None if spec is None else providers.load(spec)
    shown = body_object(_body(call, kept)) if body else {}
    if call.as_json:
        call.output.json({**kept_object(kept, provider), **shown})
        return
    print_kept(call.output, kept, provider)
    if kept.released_at is None:
        call.output.note(
            call.pasteable(f"Judge it again with `webhookctl rejected reverify {kept.id}`.")
        )
    if body:
        call.output.line()
        call.output.raw("".join(shown.values()))


def _body(call: Invocation, kept: RejectedDelivery) -> bytes:
    return _reverification(call, Manifest()).body(kept)


@app.command("reverify")
@takes_options
def reverify(
    call: Invocation,
    *,
    ids: Ids = None,
    source: Source = None,
    reason: Reasons = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 1000,
) -> None:
    """Judge rejected deliveries by today's secrets, as of when they came; writes nothing.

    Exits with 1 if any still fails.
    """
    manifest = Manifest(sources=Checkout.required().sources(call.target.stage))
    judge = _reverification(call, manifest)
    wanted = _wanted(call, ids or (), reason, since, until)
    results = [judge.check(kept) for kept in _chosen(call, manifest, source, wanted, limit)]
    print_checked(call, results, limit)
    if any(result.verdict not in FINE for result in results):
        raise typer.Exit(1)


@app.command("release")
@takes_options
def release(
    call: Invocation,
    *,
    ids: Ids = None,
    source: Source = None,
    reason: Reasons = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 1000,
) -> None:
    """Let the rejected deliveries in that are valid by today's secrets, each once.

    May be repeated at any time. Exits with 1 if a valid one is not in, or none was valid.
    """
    target = call.target
    manifest = Checkout.required().manifest(target.stage)
    _require_lanes(call, manifest)
    judge = _reverification(call, manifest)
    acceptance = IdempotentReceiver(
        manifest=manifest, table=target.table, lanes=target.lanes, blobs=target.blobs
    )
    wanted = _wanted(call, ids or (), reason, since, until)
    by, results = caller(target), list[ReverifiedDelivery]()
    try:
        for kept in _chosen(call, manifest, source, wanted, limit):
            results.append(judge.release(kept, acceptance, by=by, now=call.clock.now()))
    except Unavailable as error:
        done = sum(result.verdict in IN for result in results)
        raise CommandError(
            f"{error}; {done} were let in by then, and the same command goes on with the rest"
        ) from error
    print_checked(call, results, limit)
    verdicts = {result.verdict for result in results}
    if IngestOutcome.CONFLICT in verdicts or (results and verdicts.isdisjoint(FINE)):
        raise typer.Exit(1)


def _wanted(
    call: Invocation,
    ids: list[str] | tuple[()],
    reasons: list[Reason] | None,
    since: str | None,
    until: str | None,
) -> RejectedFilter:
    now = call.clock.now()
    low, high = (None if text is None else moment(text, now) for text in (since, until))
    return RejectedFilter(tuple(ids), tuple(reasons or ()), low, high)


def _find(
    call: Invocation, source: str | None, wanted: RejectedFilter
) -> Iterator[RejectedDelivery]:
    require_known(call.target, source=source, handler=None)
    for name in [source] if source else list(call.target.urls):
        yield from find(call.target.table, name, wanted, now=call.clock.now())


def _chosen(
    call: Invocation, manifest: Manifest, source: str | None, wanted: RejectedFilter, limit: int
) -> list[RejectedDelivery]:
    """Returns the deliveries to be judged; raises CommandError where a named one is not there."""
    found = list(islice(_find(call, source, wanted), limit))
    missing = set(wanted.ids) - {kept.id for kept in found}
    if missing:
        raise CommandError(_unknown(call, sorted(missing)))
    for kept in found:
        if kept.source not in manifest.sources:
            raise CommandError(
                f"inbox.toml has no source {kept.source}: add it, or choose others with --source"
            )
    return found


def _unknown(call: Invocation, ids: list[str]) -> str:
    return call.pasteable(
        f"no rejected delivery {', '.join(ids)}: look it up with `webhookctl rejected list`"
        " (they are kept for 7 days)"
    )


def _require_lanes(call: Invocation, manifest: Manifest) -> None:
    missing = set(manifest.lanes) - set(call.target.queue_urls)
    if missing:
        raise CommandError(
            f"the inbox that runs has no lane {', '.join(sorted(missing))}: deploy this first"
        )


def _reverification(call: Invocation, manifest: Manifest) -> Reverification:
    target = call.target
    return Reverification(
        manifest=manifest,
        providers=providers.load,
        table=target.table,
        blobs=target.blobs,
        secrets=SecretCache(store=target.secrets, clock=call.clock),
        fetcher=HttpsFetcher(),
    )
