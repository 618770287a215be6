"""`replay`: shows the runs that match as a fixed selection, then sends them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Final

import typer

from webhook_inbox.adapters.system import SystemRandomness
from webhook_inbox.client.errors import WrongArgument
from webhook_inbox.client.names import known_manifest, require_known
from webhook_inbox.client.suggestions import Command
from webhook_inbox.client.times import iso
from webhook_inbox.domain.audit import AuditedAction
from webhook_inbox.domain.manifest import matches
from webhook_inbox.domain.model import EventStatus
from webhook_inbox.domain.quotas import token
from webhook_inbox.ledger import audit
from webhook_inbox.ledger.audit import AuditRecord
from webhook_inbox.replay.report import WOULD_SEND, ReplayReport
from webhook_inbox.replay.request import BY_RECEIPT, ReplayRequest
from webhookctl.commands import replay_output as shown
from webhookctl.display.times import moment
from webhookctl.errors import CommandError
from webhookctl.invocation import (
    By,
    EventType,
    Handler,
    Invocation,
    Since,
    Source,
    Until,
    takes_options,
)
from webhookctl.replaying import Found, Payload, Replaying

_INTERRUPTED: Final = 130
INTERRUPTION: Final = "interrupted; the runs of its last step are not counted"


@takes_options
def replay(  # noqa: PLR0913 - one parameter per option
    call: Invocation,
    *,
    event_ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="EVENT_ID", help="All unfinished runs of these events."),
    ] = None,
    status: Annotated[
        list[EventStatus] | None,
        typer.Option(help="Only runs in this status; may be repeated. By default dead ones."),
    ] = None,
    source: Source = None,
    type_: EventType = None,
    handler: Handler = None,
    error_contains: Annotated[
        str | None, typer.Option(help="Only runs whose last error contains this.")
    ] = None,
    error_class: Annotated[
        str | None, typer.Option(help="Only runs whose last error is of this class.")
    ] = None,
    error_group: Annotated[
        str | None, typer.Option(metavar="ID", help="Only this group of `inbox errors`.")
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Only runs of this tenant.")] = None,
    where: Annotated[
        str | None,
        typer.Option(metavar="JMESPATH", help="Only events whose JSON body satisfies this."),
    ] = None,
    since: Since = None,
    until: Until = None,
    selection: Annotated[
        str | None, typer.Option(metavar="ID", help="The runs that a dry run listed, no others.")
    ] = None,
    first: Annotated[
        int | None,
        typer.Option(min=1, max=200, help="Send only so many, and wait for their outcome."),
    ] = None,
    stop_at_failures: Annotated[
        str, typer.Option(metavar="PERCENT", help="Stop if more of the sent runs fail again.")
    ] = "20%",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of runs.")] = 1000,
    rate: Annotated[float, typer.Option(min=0.1, max=500, help="Runs per second.")] = 10.0,
    reason: Annotated[str, typer.Option(help="Recorded with each run.")] = "",
    by: By = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replay finished runs too; needs --reason.")
    ] = False,
    new_keys: Annotated[
        bool,
        typer.Option("--new-keys", help="Perform every effect again, under new keys; --reason."),
    ] = False,
    cursor: Annotated[
        str | None,
        typer.Option(help="Begin the search where an invocation of the function stopped."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Send the runs; without it, only list them.")
    ] = False,
) -> None:
    """Send dead runs to their queues again; a dry run without --yes.

    A dry run lists the runs that match as a selection, which --selection sends later: these runs,
    each once. --since and --until select by the time at which an event was received.

    Example: webhookctl --local replay --error-class KeyError --first 1 --yes
    """
    now = call.clock.now()
    filters = {
        "status": [str(each) for each in status] if status else None,
        "source": source,
        "type": type_,
        "handler": handler,
        "event_ids": event_ids or None,
        "error_contains": error_contains,
        "error_class": error_class,
        "error_group": error_group,
        "tenant": tenant and token(tenant),
        "where": where,
        "received_after": iso(moment(since, now)) if since else None,
        "received_before": iso(moment(until, now)) if until else None,
    }
    given = {name: value for name, value in filters.items() if value is not None}
    repeats = {"--force": force, "--new-keys": new_keys}
    _check(given, repeats, selection=selection, reason=reason, yes=yes)
    asked = {"rate_per_second": rate, "reason": reason, "force": force, "new_keys": new_keys}
    asked |= {"requested_by": call.caller, "on_behalf_of": by or ""}
    job = _Job(
        call=call,
        replaying=Replaying(call.target, call.clock, asked),
        limit=limit,
        first=first,
        options={"stop_at_failures": _share(stop_at_failures)},
        given={
            **given,
            **({"since": since} if since else {}),
            **({"until": until} if until else {}),
        },
        sending=[
            *_sending(rate=rate, reason=reason, stop=stop_at_failures, by=by),
            *(name for name, chosen in repeats.items() if chosen),
            *(["--reason", "TEXT"] if any(repeats.values()) and not reason.strip() else []),
        ],
    )
    search = {**given, **({"cursor": cursor} if cursor else {})}
    job.run(search, selection, yes=yes)


def _check(
    given: Mapping[str, Any],
    repeats: Mapping[str, bool],
    *,
    selection: str | None,
    reason: str,
    yes: bool,
) -> None:
    """Refuses what the function would refuse, in the names of the options."""
    if selection and given:
        raise typer.BadParameter("--selection is a fixed list of runs: leave the filters out")
    if not selection and not given:
        raise typer.BadParameter(
            "give at least one filter: EVENT_ID, --status (dead_letter for every dead run),"
            " --source, --type, --handler, --error-contains, --error-class, --error-group,"
            " --tenant, --where, --since, --until; or --selection"
        )
    by_time = BY_RECEIPT & set(given.get("status", ()))
    if by_time and "event_ids" not in given and "received_after" not in given:
        named = ", ".join(sorted(by_time))
        raise typer.BadParameter(f"--status {named} needs --since: such runs are found by time")
    for option in (name for name, chosen in repeats.items() if chosen and yes):
        if not (selection or {"event_ids", "handler"} <= given.keys()):
            raise typer.BadParameter(
                f"{option} --yes needs EVENT_ID and --handler, or --selection: a dry run lists the"
                " runs"
            )
        if not reason.strip():
            raise typer.BadParameter(f"{option} needs --reason")


def _share(text: str) -> float:
    """Returns 0.2 of `20%`; raises BadParameter unless it is over 0 % and at most 100 %."""
    try:
        share = float(text.removesuffix("%")) / 100
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise typer.BadParameter(f"--stop-at-failures {text!r} is not a percentage such as 20%")
    return share


def _sending(*, rate: float, reason: str, stop: str, by: str | None) -> list[str]:
    """Returns the options that a command has to repeat, where they are not the defaults."""
    words = ["--rate", f"{rate:g}"] if rate != 10.0 else []
    words += ["--stop-at-failures", stop] if stop != "20%" else []
    words += ["--reason", reason] if reason else []
    return [*words, *(["--by", by] if by else [])]


def _add_unlisted(report: ReplayReport, search: ReplayReport) -> None:
    """Adds the runs that the search left out of the selection, such as finished ones."""
    for outcome, count in search.counts.items():
        if outcome not in WOULD_SEND:
            report.counts[outcome] = report.counts.get(outcome, 0) + count


class _Job:
    """One invocation of the command."""

    def __init__(
        self,
        *,
        call: Invocation,
        replaying: Replaying,
        limit: int,
        first: int | None,
        options: Payload,
        given: Mapping[str, Any],
        sending: list[str],
    ) -> None:
        self._call = call
        self._replaying = replaying
        self._limit = limit
        self._first = first
        self._options = options
        self._given = given
        self._sending = sending
        self._fixed = False

    def run(self, search: Mapping[str, Any], selection: str | None, *, yes: bool) -> None:
        """Shows the runs, or sends them."""
        self._fixed = bool(selection)
        if selection:
            found = Found(self._shown(selection), complete=True)
        else:
            found = self._replaying.find(search, self._limit)
        if found.report.matched == 0:
            source, handler = search.get("source"), search.get("handler")
            require_known(self._call.target, source=source, handler=handler)
            self._require_taken(search.get("event_ids") or (), source, handler)
        if not yes:
            self._listed(found)
        elif found.report.sent or not found.complete:
            self._send(found)
        else:
            self._finish(replace(found.report, dry_run=False))

    def _require_taken(self, ids: Iterable[str], source: str | None, handler: str | None) -> None:
        """Raises CommandError where a named event has no run of the handler and can get none."""
        spec = known_manifest(self._call.target).handlers.get(handler or "")
        for overview in (each for id_ in ids for each in self._call.overviews(id_, source)):
            event, run_of = (
                overview.event,
                {*overview.event.runs, *(r.handler for r in overview.runs)},
            )
            if spec is None or handler in run_of:
                return
            others = f"; its handlers are {', '.join(sorted(run_of))}" if run_of else ""
            if spec.source != event.source or not matches(spec.types, event.type):
                raise CommandError(
                    f"{handler} does not take {event.type} of {event.source}, the type of"
                    f" {event.event_id}: add it to the handler's types and deploy, or name another"
                    f" handler{others}"
                )
            if spec.serial:
                raise CommandError(
                    f"{handler} is serial, so it cannot get a run of a stored event: ask the"
                    f" provider to send {event.event_id} again{others}"
                )

    def _shown(self, selection: str) -> ReplayReport:
        try:
            return self._replaying.show(selection, self._limit)
        except WrongArgument as error:
            if selection not in str(error):
                raise
            listed = self._call.program.command("replay", "--status", "dead_letter")
            raise WrongArgument(
                f"{error}: list the runs again, for example with `{listed}`"
            ) from error

    # -- a dry run

    def _listed(self, found: Found) -> None:
        report = found.report
        if self._call.as_json:
            self._call.output.json(report.to_data())
        else:
            shown.listed(self._call.output, found)
            self._call.output.note(self._next_step(found))
        if report.failed:
            raise CommandError(f"the search stopped: {report.failed}; run the command again")
        if report.matched == 0 and report.counts.get("missing"):
            raise typer.Exit(1)

    def _next_step(self, found: Found) -> str:
        report = found.report
        more = f" More than {self._limit} match: raise --limit." if report.cursor else ""
        if not report.sent and found.complete:
            return self._nothing() + more
        if not report.sent:
            why = f" ({found.failed})" if found.failed else ""
            return (
                f"The search has not ended{why}: narrow it with filters such as --since and"
                " --handler, or add --yes, which sends the runs as they are found."
            )
        runs = "this run" if found.runs == "1 run" else f"these {found.runs}"
        these = f"Send {runs} with `{self._these(report.selection)}`"
        if not self._given:
            return these + "."
        if self._forced():
            return f"{these}.{more}"
        return f"{these}, or all that match when it runs with `{self._matching()}`.{more}"

    def _nothing(self) -> str:
        dead = self._call.program.command("inbox list", "--status", "dead_letter")
        return f"Nothing to replay; see `{dead}`."

    def _forced(self) -> bool:
        named = {"event_ids", "handler"} <= self._given.keys()
        return not named and bool({"--force", "--new-keys"} & {*self._sending})

    def _these(self, selection: str, *, canary: bool = True) -> Command:
        first = ["--first", str(self._first)] if self._first and canary else []
        words = ["--selection", selection, *first, *self._sending, "--yes"]
        return self._call.program.command("replay", *words)

    def _matching(self) -> Command:
        words: list[str] = []
        for name, value in self._given.items():
            if name in {"event_ids", "received_after", "received_before"}:
                continue  # named first, or as the user wrote them
            for each in value if isinstance(value, list) else [value]:
                words += [f"--{name.replace('_', '-')}", each]
        words += ["--limit", str(self._limit)] if self._limit != 1000 else []
        words += ["--first", str(self._first)] if self._first else []
        ids = self._given.get("event_ids", ())
        return self._call.program.command("replay", *ids, *words, *self._sending, "--yes")

    # -- sending

    def _send(self, found: Found) -> None:
        limit = min(self._first or self._limit, self._limit)
        selection = found.report.selection
        expected = min(limit, found.report.sent) if found.complete else limit
        least = "" if found.complete else f" (at least {found.report.sent} found so far)"
        recorded = self._record(selection)
        try:
            with self._call.output.progress(f"processed{least}", expected) as advance:
                report = self._replaying.send(selection, limit, self._options, advance)
                while not found.complete and not report.failed and report.matched < limit:
                    found = self._replaying.extend(found, self._limit)
                    # Sends the runs that were found before a failure.
                    report = self._replaying.send(selection, limit, self._options, advance)
                    if found.failed:
                        report.failed = report.failed or f"the search failed: {found.failed}"
        except KeyboardInterrupt:
            # The step under way ends by itself; the row of the audit has the steps before it.
            recorded.conclude(self._replaying.total.counts, stopped=INTERRUPTION)
            self._interrupted(found)
        recorded.conclude(report.counts, stopped=report.failed)
        if self._first and report.sent and not report.failed:
            report = self._canary(report)
        if not self._fixed:
            _add_unlisted(report, found.report)
        self._finish(report, found)

    def _record(self, selection: str) -> AuditRecord:
        """Writes the audit row of the whole replay, which its pages name."""
        read = ReplayRequest.read(
            {**self._replaying.asked, **self._options, "selection": selection}
        )
        ids = self._given.get("event_ids", ())
        chosen = {name: str(value) for name, value in self._given.items() if name != "event_ids"}
        recorded = audit.record(
            self._call.target.table,
            SystemRandomness(),
            action=AuditedAction.REPLAY,
            by=self._call.actor(read.on_behalf_of),
            reason=read.reason,
            request={**chosen, **read.audited()},
            event_ids=ids,
            forced=read.force or read.new_keys,
            now=self._call.clock.now(),
        )
        self._options["audit_row"] = recorded.place
        return recorded

    def _interrupted(self, found: Found) -> None:
        rest = "" if found.complete else "; the search had not ended, so run this command again too"
        command = self._these(found.report.selection, canary=False)
        self._call.output.note(
            f"Interrupted; the step under way ends by itself. Continue with `{command}`{rest}."
        )
        raise typer.Exit(_INTERRUPTED)

    def _canary(self, report: ReplayReport) -> ReplayReport:
        try:
            with self._call.output.progress("ended", report.sent) as advance:
                seen = self._replaying.watch(report.selection, advance)
        except KeyboardInterrupt:
            return report
        report.outcomes, report.failures = seen.outcomes, seen.failures
        return report

    def _finish(self, report: ReplayReport, found: Found | None = None) -> None:
        if self._call.as_json:
            self._call.output.json(report.to_data())
        else:
            shown.sent(self._call.output, report, found if self._first else None)
        again = self._these(report.selection, canary=False)
        if report.failed and found and found.failed and not self._forced():
            again = self._matching()
        if report.failed:
            raise CommandError(
                f"the replay stopped: {report.failed}. The runs that it counted stay replayed;"
                f" `{again}` continues with the rest"
            )
        failed = sum(report.outcomes.get(each, 0) for each in ("failed", "dead_letter"))
        if self._first and failed:
            raise CommandError(
                f"{failed} of the first {report.sent} failed again. Correct the cause; `{again}`"
                " continues with the rest"
            )
        if not self._call.as_json:
            self._call.output.note(self._after(report, found, again))

        if report.matched == 0 and report.counts.get("missing"):
            raise typer.Exit(1)

    def _after(self, report: ReplayReport, found: Found | None, again: Command) -> str:
        if not report.sent:
            return self._nothing()
        if self._first:
            return f"Continue with the rest: `{again}`."
        pending = self._call.program.command("inbox list", "--status", "pending")
        more = found is not None and found.report.cursor is not None
        left = f" More than {self._limit} match: raise --limit." if more else ""
        return f"List runs that have not started with `{pending}`.{left}"
