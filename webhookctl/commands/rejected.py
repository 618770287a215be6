"""`rejected`: lists, verifies again and releases deliveries that failed verification."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from heapq import merge
from itertools import chain, islice, takewhile
from typing import Annotated, Final

import typer

from webhook_inbox import providers
from webhook_inbox.adapters.https import HttpsFetcher
from webhook_inbox.client.names import known_source, require_known
from webhook_inbox.client.times import iso
from webhook_inbox.domain.audit import AuditedAction
from webhook_inbox.domain.errors import Permanent, Reason, Unavailable
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.secrets import SecretCache
from webhook_inbox.ingest.receipt import STORED, IngestOutcome
from webhook_inbox.ingest.rejected import (
    PER_MINUTE,
    RejectedDelivery,
    RejectedFilter,
    find,
    full_minutes,
)
from webhook_inbox.ingest.release import ReleaseVerdict, Reverification, ReverifiedDelivery
from webhookctl.checkout import Checkout
from webhookctl.command_tree import CommandTree
from webhookctl.diagnosis.diagnose import Diagnosis, diagnose
from webhookctl.diagnosis.hypothesis import Trial
from webhookctl.display.event import body_object
from webhookctl.display.output import counted
from webhookctl.display.personal import Masks, ShowPersonal
from webhookctl.display.rejected import print_rejected, print_results, rejected_object
from webhookctl.display.table import Column, Fit
from webhookctl.display.times import moment
from webhookctl.errors import CommandError
from webhookctl.invocation import (
    Body,
    By,
    Invocation,
    Limit,
    Since,
    Source,
    Until,
    Why,
    takes_options,
)

COLUMNS: Final = (
    Column("RECEIVED"),
    Column("SOURCE", Fit.NAME),
    Column("ID", Fit.ID),
    Column("REASON"),
    Column("BYTES"),
    Column("STATE"),
)
MINUTE: Final = timedelta(minutes=1)
MINUTES_SHOWN: Final = 3
# The event is stored, by this release or earlier.
IN: Final = frozenset({*STORED, IngestOutcome.REPLAYED, ReleaseVerdict.RELEASED})
# The delivery is valid.
FINE: Final = frozenset(
    {*IN, ReleaseVerdict.VALID, ReleaseVerdict.CHALLENGE, ReleaseVerdict.IGNORED}
)

Reasons = Annotated[
    list[Reason] | None,
    typer.Option(
        "--rejected-for",
        metavar="REASON",
        help=f"Only rejected for this reason; repeatable. One of: {', '.join(Reason)}.",
    ),
]
Ids = Annotated[list[str] | None, typer.Argument(metavar="ID", help="The ids, as listed.")]

app: Final = CommandTree(help="List and release rejected deliveries.")


@app.command("list")
@takes_options
def list_rejected(
    call: Invocation,
    *,
    source: Source = None,
    rejected_for: Reasons = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 50,
) -> None:
    """List rejected deliveries, newest first; they are stored for 7 days."""
    wanted = _wanted(call, (), rejected_for, since, until)
    by_source = _by_source(call, source, wanted, newest_first=True)
    newest = merge(*by_source, key=lambda each: each.received_at, reverse=True)
    found = list(islice(newest, limit))
    _note_excluded(call, source, wanted, found)
    if call.as_json:
        for each in found:
            call.output.json(rejected_object(each))
        return
    if not found:
        call.output.note("No rejected deliveries found.")
        return
    call.output.table(COLUMNS, [_row(each) for each in found], now=call.clock.now())
    if len(found) == limit:
        call.output.note(f"Showing the newest {limit}; see more with --limit, or filter.")
    again = call.program.command("rejected release")
    call.output.note(f"Verify them again with the current secrets: `{again}`.")


def _note_excluded(
    call: Invocation, source: str | None, wanted: RejectedFilter, found: list[RejectedDelivery]
) -> None:
    """Names the minutes of the listed period whose cap may have excluded deliveries."""
    low = wanted.since or (found[-1].received_at if found else None)
    for name in [source] if source else list(call.target.urls):
        full = full_minutes(call.target.table, name, now=call.clock.now())
        listed = takewhile(lambda minute: low is None or minute + MINUTE > low, full)
        minutes = [each for each in listed if wanted.until is None or each < wanted.until]
        if minutes:
            told = ", ".join(f"{minute:%Y-%m-%dT%H:%MZ}" for minute in minutes[:MINUTES_SHOWN])
            more = len(minutes) - MINUTES_SHOWN
            others = f" and {counted(more, 'earlier minute')}" if more > 0 else ""
            call.output.note(
                f"{name} reached the limit of {PER_MINUTE} stored deliveries in the minute"
                f" {told}{others}: further ones may have been rejected without being stored."
            )


def _row(delivery: RejectedDelivery) -> tuple[object, ...]:
    state = "kept" if delivery.released_at is None else "released"
    size = delivery.row["body_size"]
    return (delivery.received_at, delivery.source, delivery.id, delivery.reason, size, state)


@app.command("show")
@takes_options
def show(
    call: Invocation,
    *,
    id_: Annotated[str, typer.Argument(metavar="ID", help="The id, as listed.")],
    source: Source = None,
    body: Body = False,
    show_personal: ShowPersonal = False,
) -> None:
    """Show one rejected delivery; signatures and tokens are never printed."""
    delivery = next(_find(call, source, RejectedFilter(ids=(id_,))), None)
    if delivery is None:
        raise CommandError(_unknown(call, [id_]))
    spec = known_source(call.target, delivery.source)
    provider = None if spec is None else providers.load(spec)
    if show_personal and not body:
        raise typer.BadParameter("--show-personal is about the body: add --body")
    shown = _shown_body(call, delivery, show=show_personal) if body else {}
    if call.as_json:
        call.output.json({**rejected_object(delivery, provider), **shown})
        return
    print_rejected(call.output, delivery, provider)
    if delivery.released_at is None:
        again = call.program.command("rejected release", argument=delivery.id)
        call.output.note(f"Verify it again with `{again}`.")
    if body:
        call.output.line()
        call.output.lines("".join(shown.values()))


def _shown_body(call: Invocation, delivery: RejectedDelivery, *, show: bool) -> dict[str, str]:
    masks = Masks(call, show=show, command="rejected show", delivery=delivery.id)
    body = _reverification(call, Manifest()).body(delivery)
    return body_object(masks.body(delivery.source, body))


def diagnosed(call: Invocation, source: str, id_: str) -> Diagnosis:
    """Explains a rejected delivery as `verify` does, with the present secrets; writes nothing.

    Raises:
        CommandError: the delivery or its source is unknown, or its body is gone.
        Unavailable: the secrets or the body could not be read.
    """
    manifest = Manifest(sources=Checkout.required().configuration(call.target.stage).sources)
    [delivery] = _chosen(call, manifest, source, RejectedFilter(ids=(id_,)), 1)
    spec = manifest.sources[source]
    provider = providers.load(spec)
    shared = SecretCache(store=call.target.secrets, clock=call.clock)
    secrets = shared.get(spec.secret) if provider.needs_secret else ()
    try:
        found = _reverification(call, manifest).delivery(delivery)
    except Permanent as error:
        raise CommandError(str(error)) from error
    return diagnose(Trial(spec, found, secrets), fetcher=HttpsFetcher())


@app.command("release")
@takes_options
def release(  # noqa: PLR0913 - one parameter per option
    call: Invocation,
    *,
    ids: Ids = None,
    source: Source = None,
    rejected_for: Reasons = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 1000,
    reason: Why = "",
    by: By = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Accept the valid ones; without it, only verify them.")
    ] = False,
) -> None:
    """Accept rejected deliveries that are valid with the current secrets; a dry run without --yes.

    Each is verified as of its arrival and accepted once: the command is safe to repeat. Exit with 1
    if one fails in the dry run; with --yes, if a valid one is not accepted, or none is valid.
    """
    wanted = _wanted(call, ids or (), rejected_for, since, until)
    if yes:
        results = _accept(call, source, wanted, limit, by=by, reason=reason)
        verdicts = {result.verdict for result in results}
        failed = IngestOutcome.CONFLICT in verdicts or (bool(results) and verdicts.isdisjoint(FINE))
    else:
        results = _verify(call, source, wanted, limit)
        failed = any(result.verdict not in FINE for result in results)
    print_results(call, results, limit)
    if failed:
        raise typer.Exit(1)


def _verify(
    call: Invocation, source: str | None, wanted: RejectedFilter, limit: int
) -> list[ReverifiedDelivery]:
    """Verifies the selected deliveries; imports no handlers and writes nothing."""
    manifest = Manifest(sources=Checkout.required().configuration(call.target.stage).sources)
    judge = _reverification(call, manifest)
    return [judge.check(delivery) for delivery in _chosen(call, manifest, source, wanted, limit)]


def _accept(
    call: Invocation,
    source: str | None,
    wanted: RejectedFilter,
    limit: int,
    *,
    by: str | None,
    reason: str,
) -> list[ReverifiedDelivery]:
    """Accepts the valid ones of the selected deliveries; raises CommandError on an outage."""
    target = call.target
    manifest = Checkout.required().manifest(target.stage)
    _require_lanes(call, manifest)
    judge = _reverification(call, manifest)
    results = list[ReverifiedDelivery]()
    actor = call.actor(by)
    chosen = _chosen(call, manifest, source, wanted, limit)
    try:
        about = {"source": source, **_texts(wanted)}
        with call.audited(AuditedAction.RELEASE, by, reason=reason, **about) as counts:
            for delivery in chosen:
                result = judge.release(delivery, by=actor, reason=reason, now=call.clock.now())
                results.append(result)
                counts[result.verdict] += 1
    except Unavailable as error:
        done = sum(result.verdict in IN for result in results)
        raise CommandError(
            f"{error}; {done} were accepted so far, and the same command continues with the rest"
        ) from error
    return results


def _texts(wanted: RejectedFilter) -> dict[str, str]:
    """Returns the filters that are given, for the audit."""
    return {
        "rejected": ", ".join(wanted.ids),
        "rejected_for": ", ".join(wanted.reasons),
        "since": iso(wanted.since) or "",
        "until": iso(wanted.until) or "",
    }


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
    return chain.from_iterable(_by_source(call, source, wanted))


def _by_source(
    call: Invocation, source: str | None, wanted: RejectedFilter, *, newest_first: bool = False
) -> list[Iterator[RejectedDelivery]]:
    require_known(call.target, source=source, handler=None)
    table, now = call.target.table, call.clock.now()
    return [
        find(table, name, wanted, now=now, newest_first=newest_first)
        for name in ([source] if source else list(call.target.urls))
    ]


def _chosen(
    call: Invocation, manifest: Manifest, source: str | None, wanted: RejectedFilter, limit: int
) -> list[RejectedDelivery]:
    """Returns the selected deliveries; raises CommandError for an unknown id."""
    found = list(islice(_find(call, source, wanted), limit))
    missing = set(wanted.ids) - {delivery.id for delivery in found}
    if missing:
        raise CommandError(_unknown(call, sorted(missing)))
    for delivery in found:
        if delivery.source not in manifest.sources:
            raise CommandError(
                f"inbox.toml has no source {delivery.source}: add it, or filter with --source"
            )
    return found


def _unknown(call: Invocation, ids: list[str]) -> str:
    return (
        f"no rejected delivery {', '.join(ids)}: search with"
        f" `{call.program.command('rejected list')}`"
        " (they are stored for 7 days)"
    )


def _require_lanes(call: Invocation, manifest: Manifest) -> None:
    missing = set(manifest.lanes) - set(call.target.queue_urls)
    if missing:
        raise CommandError(
            f"the deployed inbox has no lane {', '.join(sorted(missing))}: deploy first"
        )


def _reverification(call: Invocation, manifest: Manifest) -> Reverification:
    target = call.target
    ports = replace(
        call.client._scope.ports,
        blobs=target.blobs,
        secret_store=target.secrets,
        fetcher=HttpsFetcher(),
    )
    return Reverification(manifest, ports, providers=providers.load)
