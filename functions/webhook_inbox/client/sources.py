"""The sources: their states, their first deliveries, and the logs of their providers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from webhook_inbox import providers
from webhook_inbox.client.delivery_logs.api import (
    Api,
    ApiRefused,
    ApiUnusable,
    address,
    send,
)
from webhook_inbox.client.delivery_logs.comparison import DeliveryLog, Logged, compare
from webhook_inbox.client.delivery_logs.github import GitHubLog
from webhook_inbox.client.delivery_logs.stripe import StripeLog
from webhook_inbox.client.errors import Refused
from webhook_inbox.client.listing import Listing
from webhook_inbox.client.names import known_source, require_known
from webhook_inbox.client.operation import Operation
from webhook_inbox.client.rejected import RejectedDeliveries, Rejection, RejectionFilter
from webhook_inbox.client.scope import Scope
from webhook_inbox.client.times import iso
from webhook_inbox.domain.audit import Actor, AuditedAction
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import SourceSpec, matches
from webhook_inbox.domain.provider import Facts, Provider
from webhook_inbox.domain.secret_document import TOOLS
from webhook_inbox.ingest.ignored import IgnoredType, find_ignored
from webhook_inbox.ledger.queries import Received
from webhook_inbox.ledger.schema import EVENT_LIFE

# The newest events that are searched for the last one of each source, and how far back.
EVENTS: Final = 5000
BACK: Final = timedelta(days=7)
DAY: Final = timedelta(days=1)
# The clock of the functions may be ahead of this machine's.
AHEAD: Final = timedelta(minutes=10)
LOGS: Final[Mapping[str, type[GitHubLog] | type[StripeLog]]] = {
    "github": GitHubLog,
    "stripe": StripeLog,
}
# The results of a request to redeliver, beside "refused, " and the reason.
ASKED: Final = "asked"
LEFT: Final = "not asked"
# A token is one ASCII word; any other text would be truncated or inject a header.
TOKEN_LIMIT: Final = 4096


@dataclass(frozen=True, slots=True)
class SourceState:
    """A source.

    Attributes:
        source: its name.
        url: the URL to register at the provider.
        spec: its configuration; None where the deployed one cannot be read.
        facts: the facts about its provider; None for a declared scheme.
        last: its newest event; None if none was found.
        verified_with: the value of the secret that verified it: 0 for the current one, 1 for the
            previous one; None without an event.
        ignored: the types that were acknowledged and not stored since yesterday.
        events_searched: how many events were searched for the newest one.
        search_is_complete: whether these are all events of the last 7 days.
    """

    source: str
    url: str
    spec: SourceSpec | None
    facts: Facts | None
    last: Received | None
    verified_with: int | None
    ignored: Sequence[IgnoredType]
    events_searched: int
    search_is_complete: bool

    @property
    def payloads_kept(self) -> timedelta:
        """How long payloads are kept."""
        erased = self.spec is not None and self.spec.retention
        return timedelta(seconds=erased) if erased else EVENT_LIFE


@dataclass(frozen=True, slots=True)
class FirstDelivery:
    """The newest delivery of a source since a time: one of these, or none.

    Attributes:
        event: the newest event.
        rejected: the newest rejected delivery.
        ignored: a type that was acknowledged and not stored.
    """

    event: Received | None = None
    rejected: Rejection | None = None
    ignored: IgnoredType | None = None


@dataclass(frozen=True, slots=True)
class ProviderHook:
    """A webhook at the provider, whose log of deliveries can be read.

    Attributes:
        source: the source that it delivers to.
        hook: OWNER/REPO/ID or ORGANIZATION/ID for GitHub, an endpoint's id for Stripe.
        token: the name of the secret with the API's token; by default SOURCE-api.
        api: the URL of the API; by default the provider's own.
    """

    source: str
    hook: str
    token: str = ""
    api: str = ""


@dataclass(frozen=True, slots=True)
class MissingEvent:
    """An event in the provider's log that the ledger lacks.

    Attributes:
        logged: its entry in the log.
        redelivery: the result of the request to send it again; None before one.
    """

    logged: Logged
    redelivery: str | None = None


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The comparison of a provider's log with the ledger.

    Attributes:
        hook: the webhook.
        since: the start of the compared time.
        until: its end.
        looked_at: the number of events in the log.
        unwanted: the number of events whose types the source does not store.
        missing: the other events that the ledger lacks, oldest first.
        log_begins_at: the start of the log; earlier events are not compared.
        log: the log, which knows how much of the API's limit is left.
    """

    hook: ProviderHook
    since: datetime
    until: datetime
    looked_at: int
    unwanted: int
    missing: tuple[MissingEvent, ...]
    log_begins_at: datetime
    log: DeliveryLog = field(repr=False, compare=False)


class Sources:
    """The sources of an inbox."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def list(self) -> Listing[SourceState]:
        """Returns the sources by name.

        The last events are looked for among the newest 5000 events of 7 days.
        """
        return Listing(self._scope, self._states())

    def _states(self) -> Iterator[SourceState]:
        scope, now = self._scope, self._scope.clock.now()
        names, last, read = sorted(scope.target.urls), dict[str, Received](), 0
        arrived = scope.ledger().received(now - BACK, now + AHEAD, newest_first=True)
        for event in islice(arrived, EVENTS):
            read += 1
            last.setdefault(event.source, event)
            if last.keys() >= set(names):
                break
        complete = read < EVENTS and not scope.is_cut
        specs = scope.manifest.sources
        for name in names:
            spec = specs.get(name)
            yield SourceState(
                source=name,
                url=scope.target.urls[name],
                spec=spec,
                facts=None if spec is None else facts_of(spec),
                last=last.get(name),
                verified_with=self._verified_with(last.get(name)),
                ignored=find_ignored(scope.table, name, since=now - DAY, until=now, now=now),
                events_searched=read,
                search_is_complete=complete,
            )

    def _verified_with(self, last: Received | None) -> int | None:
        if last is None:
            return None
        now = self._scope.clock.now()
        found = self._scope.ledger().overview(last.source, last.event_id, now=now)
        return None if found is None else min(found.event.verified_with, 1)

    def first_delivery(self, source: str, since: datetime) -> FirstDelivery:
        """Returns what a source has received since a time; an event precedes everything else."""
        scope, now = self._scope, self._scope.clock.now()
        arrived = scope.ledger().received(since, now + AHEAD, newest_first=True)
        event = next((each for each in islice(arrived, EVENTS) if each.source == source), None)
        if event is not None:
            return FirstDelivery(event=event)
        wanted = RejectionFilter(since=since, source=source)
        rejected = next(RejectedDeliveries(scope).list(wanted, limit=1), None)
        if rejected is not None:
            return FirstDelivery(rejected=rejected)
        types = find_ignored(scope.table, source, since=since, until=now, now=now)
        return FirstDelivery(ignored=next((each for each in types if each.last_at >= since), None))

    def reconcile(self, hook: ProviderHook, *, since: datetime, until: datetime) -> Reconciliation:
        """Compares the provider's log of a webhook with the ledger; writes nothing.

        Newer events than those of some minutes ago may still be in flight.

        Raises:
            WrongArgument: no such source is deployed.
            Refused: the provider has no log, its API refuses the request, or the token is not set.
        """
        scope, now = self._scope, self._scope.clock.now()
        log = self._log(hook)
        spec = known_source(scope.target, hook.source)
        types = ("*",) if spec is None else spec.types
        try:
            found = compare(
                log.entries(since, until),
                scope.table,
                source=hook.source,
                wants=lambda type_: matches(types, type_),
                now=now,
            )
        except ApiRefused as error:
            raise Refused(
                f"the provider's API answered {error}: check that --hook names the webhook and that"
                " the token may read it"
            ) from error
        return Reconciliation(
            hook=hook,
            since=since,
            until=until,
            looked_at=found.looked_at,
            unwanted=found.unwanted,
            missing=tuple(map(MissingEvent, found.missing)),
            log_begins_at=now - log.memory,
            log=log,
        )

    def redeliver(
        self, reconciliation: Reconciliation, *, reason: str = "", by: Actor
    ) -> Operation[MissingEvent]:
        """Requests the missing events again from the provider, oldest first.

        Where the API cannot be used any more, or the operation is stopped, the rest are returned as
        not asked, and `ended_by` has the reason.

        Raises:
            Unavailable: while iterated, AWS failed; it says what was done.
        """
        scope, hook, log = self._scope, reconciliation.hook, reconciliation.log
        scope.require_write()
        about = {
            "source": hook.source,
            "hook": hook.hook,
            "since": iso(reconciliation.since),
            "until": iso(reconciliation.until),
        }

        def steps(operation: Operation[MissingEvent]) -> Iterator[MissingEvent]:
            with scope.audited(AuditedAction.REDELIVER, by, reason=reason, **about) as counts:
                operation.counts = counts
                for number, each in enumerate(reconciliation.missing):
                    if number and not operation.ended_by:
                        scope.clock.sleep(log.pause)
                    result = LEFT if operation.ended_by else _request(log, each, operation)
                    counts[result.partition(",")[0]] += 1
                    yield replace(each, redelivery=result)

        return Operation(steps, done=lambda counts: f"{counts[ASKED]} were requested")

    def _log(self, hook: ProviderHook) -> DeliveryLog:
        scope = self._scope
        require_known(scope.target, source=hook.source, handler=None)
        spec = known_source(scope.target, hook.source)
        name = hook.source if spec is None else spec.provider
        log = LOGS.get(name)
        if log is None:
            raise Refused(f"{name} has no delivery log to query; supported: {', '.join(LOGS)}")
        try:
            named = log.named(hook.hook)
        except ValueError as error:
            raise Refused(f"--hook {hook.hook} is no webhook of {name}: {error}") from error
        api = Api(
            name=name,
            base=address(hook.api or log.address),
            headers=log.headers(self._token(hook.token or f"{hook.source}-api")),
            send=send,
            clock=scope.clock,
            calm=log.calm,
        )
        return log(api, named)

    def _token(self, name: str) -> str:
        """Returns the API's token; raises Refused where it is missing or malformed."""
        scope = self._scope
        remedy = f"`{scope.program.command('secrets set', '--create', argument=name)}`"
        values = scope.target.secret_documents.read(TOOLS).get(name)
        if not values:
            raise Refused(
                f"the API token is not set: run {remedy}, or name its secret with --token"
            )
        value = values[0]
        is_word = value.isascii() and value.isprintable() and " " not in value
        if not is_word or len(value) > TOKEN_LIMIT:
            raise Refused(f"the secret {name} is not a token, which is one word: run {remedy}")
        return value


def provider_of(spec: SourceSpec) -> Provider | None:
    """Returns a source's provider; None for one that only a later version knows."""
    try:
        return providers.load(spec)
    except ConfigurationError:
        return None


def facts_of(spec: SourceSpec) -> Facts | None:
    """Returns the facts about a source's provider; None where there are none."""
    provider = provider_of(spec)
    return None if provider is None else provider.facts


def _request(log: DeliveryLog, missing: MissingEvent, operation: Operation[MissingEvent]) -> str:
    """Requests an event again; returns the result."""
    try:
        log.resend(missing.logged)
    except ApiRefused as error:
        # Too old, or of a webhook that has changed; the next event may succeed.
        return f"refused, {error}"
    except ApiUnusable as error:
        operation.ended_by = str(error)
        return LEFT
    return ASKED
