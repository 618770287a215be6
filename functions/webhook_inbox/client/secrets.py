"""The secrets: values go in, and no operation returns one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox import providers
from webhook_inbox.adapters.aws.cloudwatch import MOST, MetricStatistic, read_metrics
from webhook_inbox.adapters.aws.reader import Reader, Unread
from webhook_inbox.client.errors import Refused, WrongArgument
from webhook_inbox.client.listing import Listing
from webhook_inbox.client.named_secrets import StoredSecret, named_secrets
from webhook_inbox.client.names import known_source, unknown
from webhook_inbox.client.scope import Scope
from webhook_inbox.client.secret_documents import SecretChange, SecretDocuments
from webhook_inbox.client.target import NoStack
from webhook_inbox.client.times import iso, short_span
from webhook_inbox.domain.audit import Actor, AuditedAction
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.metrics import VERIFIED_WITH_PREVIOUS, namespace
from webhook_inbox.domain.secret_document import HANDLERS, SOURCES, TOOLS
from webhook_inbox.domain.secrets import LIFE
from webhook_inbox.ingest import enrolment

# A provider retries for days; a longer overlap is a rotation without an end, `set`.
LONGEST_OVERLAP: Final = timedelta(days=30)
LONGEST_ENROLMENT: Final = enrolment.LONGEST
# CloudWatch keeps values of one minute for 15 days.
LOOK_BACK: Final = timedelta(days=14)
HOUR: Final = timedelta(hours=1)
NOTHING: Final = Manifest()


@dataclass(frozen=True, slots=True)
class SecretStatus:
    """The valid values of a secret, and the use of the previous one.

    Attributes:
        values: how many values are valid, 0 to 2.
        replaced_at: when a rotation replaced the previous value.
        previous_until: when the previous value ends; None without a rotation that ends.
        previous_last_used: when a delivery last needed the previous value, to the hour.
        metric_known: whether CloudWatch has an answer for `previous_last_used`.
    """

    name: str
    values: int
    replaced_at: datetime | None
    previous_until: datetime | None
    previous_last_used: datetime | None
    metric_known: bool


@dataclass(frozen=True, slots=True)
class ChangedSecret:
    """A secret that was set.

    The functions use it within `seen_within_seconds`; None where no function reads it.
    """

    name: str
    document: str
    change: SecretChange
    seen_within_seconds: int | None


@dataclass(frozen=True, slots=True)
class RotatedSecret:
    """A secret that was rotated; `previous_until` is None where it had no other value."""

    name: str
    change: SecretChange
    previous_until: datetime | None


@dataclass(frozen=True, slots=True)
class RevokedSecret:
    """A secret whose previous value was revoked; `revoked` is False for a plan."""

    name: str
    revoked: bool


@dataclass(frozen=True, slots=True)
class OpenEnrolment:
    """A source that accepts the secret of its provider, which is registered with the URL."""

    source: str
    open_until: datetime
    opened_by: str
    url: str


class Secrets:
    """The secrets of an inbox.

    `declared` is a configuration that is not deployed yet, whose secrets are known as well.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    @property
    def _documents(self) -> SecretDocuments:
        return self._scope.target.secret_documents

    def list(self) -> Listing[StoredSecret]:
        """Returns the secrets that the inbox uses or stores."""
        return Listing(self._scope, _stored_secrets(self._documents, self._scope.target.manifest))

    def status(self, name: str | None = None) -> Listing[SecretStatus]:
        """Returns the valid values of the secrets of sources and handlers, or of one secret.

        The last use of a previous value is minutes late, and up to 14 days ago.

        Raises:
            WrongArgument: no secret has this name.
        """
        stored = {reader: self._documents.read(reader) for reader in (SOURCES, HANDLERS)}
        target = self._scope.target
        every = named_secrets(target.manifest, {**stored, TOOLS: {}}, target.secret_prefix)
        found = [each for each in every if name in {None, each.name}]
        if name is not None and not found:
            raise WrongArgument(unknown("secret", name, [each.name for each in every]))
        now = self._scope.clock.now()
        used = self._last_uses([each for each in found if each.values > 1], now)
        return Listing(self._scope, (_status(each, used, now) for each in found))

    def _last_uses(
        self, secrets: Sequence[StoredSecret], now: datetime
    ) -> Mapping[str, datetime] | None:
        """Returns when a delivery of each source last needed the previous value.

        None where CloudWatch has no answer; the local runtime has no metrics.
        """
        target, sources = self._scope.target, [s for each in secrets for s in _sources(each)]
        if target.local or not sources:
            return None if target.local else {}
        own, metric = namespace(target.stack), VERIFIED_WITH_PREVIOUS.name
        counts = {
            f"source{number}": MetricStatistic(own, metric, {"source": source}, "Sum", HOUR)
            for number, source in enumerate(sources[:MOST])
        }
        try:
            found = read_metrics(Reader(target.client), counts, start=now - LOOK_BACK, end=now)
        except Unread:
            return None
        used = {id_: [at for at, value in each if value > 0] for id_, each in found.items()}
        return {counts[id_].dimensions["source"]: max(each) for id_, each in used.items() if each}

    def document_of(self, name: str, *, declared: Manifest = NOTHING) -> str:
        """Returns the name of the document of a secret that is used.

        Raises:
            WrongArgument: no source, destination or handler uses it.
            Refused: it is unknown what uses it, since no configuration can be read.
        """
        return self._documents.id(self._reader(name, declared))

    def _reader(self, name: str, declared: Manifest) -> str:
        reader = _reader(name, declared, self._scope.manifest)
        if reader is None:
            raise Refused(
                f"the configuration of {self._scope.target.name} cannot be read here, so it is"
                f" unknown whether a source or a handler uses {name}: request"
                " cloudformation:GetTemplateSummary, or change to your inbox's repository"
            )
        return reader

    def set(
        self,
        name: str,
        value: str,
        *,
        by: Actor,
        reason: str = "",
        declared: Manifest = NOTHING,
        replace: bool = False,
        create: bool = False,
    ) -> ChangedSecret:
        """Sets a secret; the previous value stays valid until the next change.

        Args:
            name: the secret, as in inbox.toml.
            value: its value.
            by: who acts.
            reason: why.
            declared: see the class.
            replace: keep no previous value valid, for example after a leak.
            create: store it for tools only, whatever its name; no function can read it.

        Raises:
            WrongArgument: no source, destination or handler uses it.
            Refused: its document cannot be written, or it is unknown what uses it.
        """
        self._scope.require_write()
        reader = TOOLS if create else self._reader(name, declared)
        with self._scope.audited(
            AuditedAction.SET_SECRET, by, reason=reason, secret=name, document=reader
        ) as counts:
            change = self._documents.set(reader, name, value, replace=replace or create)
            counts[change] += 1
        seen = None if create else LIFE // timedelta(seconds=1)
        return ChangedSecret(name, self._documents.id(reader), change, seen)

    def rotate(
        self,
        name: str,
        value: str,
        *,
        overlap: timedelta,
        by: Actor,
        reason: str = "",
        declared: Manifest = NOTHING,
    ) -> RotatedSecret:
        """Sets a secret; every function ignores the previous value from the overlap's end on.

        Raises:
            WrongArgument: the overlap exceeds 30 days, or no source, destination or handler uses
                the secret.
            Refused: its document cannot be written, or it is unknown what uses it.
        """
        self._scope.require_write()
        if overlap > LONGEST_OVERLAP:
            raise WrongArgument("the overlap is at most 30 days")
        reader, now = self._reader(name, declared), self._scope.clock.now()
        until = now + overlap
        # The audit has the names only.
        with self._scope.audited(
            AuditedAction.ROTATE_SECRET, by, reason=reason, secret=name, previous_until=iso(until)
        ) as counts:
            change = self._documents.rotate(reader, name, value, now=now, until=until)
            counts[change] += 1
        return RotatedSecret(name, change, until if change is SecretChange.REPLACED else None)

    def plan_revocation(self, name: str, *, declared: Manifest = NOTHING) -> RevokedSecret:
        """Checks that `revoke` has an effect; deliveries signed with the value are then rejected.

        Raises:
            WrongArgument: no source, destination or handler uses the secret.
            Refused: it has no previous value.
        """
        self._reader_of_previous(name, declared)
        return RevokedSecret(name, revoked=False)

    def revoke(
        self, name: str, *, by: Actor, reason: str = "", declared: Manifest = NOTHING
    ) -> RevokedSecret:
        """Revokes the previous value of a secret at once; the current one stays valid.

        Raises:
            WrongArgument: no source, destination or handler uses the secret.
            Refused: it has no previous value, or its document cannot be written.
        """
        self._scope.require_write()
        reader = self._reader_of_previous(name, declared)
        with self._scope.audited(
            AuditedAction.REVOKE_SECRET, by, reason=reason, secret=name
        ) as counts:
            self._documents.revoke_previous(reader, name)
            counts["revoked"] += 1
        return RevokedSecret(name, revoked=True)

    def _reader_of_previous(self, name: str, declared: Manifest) -> str:
        reader = self._reader(name, declared)
        if len(self._documents.read(reader).get(name, ())) < 2:
            raise Refused(f"{name} has no previous value; nothing to revoke")
        return reader

    def enrol(
        self, source: str, *, by: Actor, reason: str = "", span: timedelta = timedelta(minutes=15)
    ) -> OpenEnrolment:
        """Accepts the secret that a source's provider delivers, in place of all earlier ones.

        Any client can offer one meanwhile. If two different ones are offered, none is accepted.

        Raises:
            WrongArgument: no such source is deployed, or the span exceeds an hour.
            Refused: the source's provider delivers no secret, or the document cannot be written.
        """
        self._scope.require_write()
        target, now = self._scope.target, self._scope.clock.now()
        if span > LONGEST_ENROLMENT:
            raise WrongArgument("a source is open for a secret for at most 1 hour")
        if source not in target.urls:
            raise WrongArgument(unknown("source", source, target.urls, where="is deployed"))
        self._require_offers(source)
        who, until = str(by), now + span
        with self._scope.audited(
            AuditedAction.ENROL_SECRET, by, reason=reason, source=source, span=short_span(span)
        ) as counts:
            # Ingest may write the document, and not create it.
            self._documents.create(SOURCES)
            enrolment.begin(self._scope.table, source, by=who, now=now, until=until)
            counts["opened"] += 1
        return OpenEnrolment(source, until, who, target.urls[source])

    def _require_offers(self, source: str) -> None:
        spec = known_source(self._scope.target, source)
        try:
            if spec is None or providers.load(spec).offer is not None:
                return
        except ConfigurationError:
            return  # Deployed with a later version, which knows its provider.
        remedy = self._scope.program.command("secrets set", argument=spec.secret)
        raise Refused(
            f"the provider of {source} ({spec.provider}) delivers no secret: set the secret that it"
            f" shows, with `{remedy}`"
        )


class PlannedSecrets:
    """The secrets of a stack that does not exist yet; it has no table, and so no audit.

    Args:
        no_stack: the error of the connection to the stack.
    """

    def __init__(self, no_stack: NoStack) -> None:
        self.no_stack = no_stack
        self._documents = no_stack.planned.secret_documents

    def list(self, *, declared: Manifest) -> Sequence[StoredSecret]:
        """Returns the secrets that the declared configuration uses, and the stored ones."""
        return _stored_secrets(self._documents, declared)

    def document_of(self, name: str, *, declared: Manifest) -> str:
        """As `Secrets.document_of`; raises NotFound without a declared configuration."""
        return self._documents.id(self._reader(name, declared))

    def _reader(self, name: str, declared: Manifest) -> str:
        reader = _reader(name, declared)
        if reader is None:
            raise self.no_stack
        return reader

    def set(
        self,
        name: str,
        value: str,
        *,
        declared: Manifest,
        replace: bool = False,
        create: bool = False,
    ) -> ChangedSecret:
        """As `Secrets.set`; raises NotFound without a declared configuration."""
        reader = TOOLS if create else self._reader(name, declared)
        change = self._documents.set(reader, name, value, replace=replace or create)
        return ChangedSecret(name, self._documents.id(reader), change, None)


def _stored_secrets(documents: SecretDocuments, manifest: Manifest) -> Sequence[StoredSecret]:
    stored = {reader: documents.read(reader) for reader in (SOURCES, HANDLERS, TOOLS)}
    return named_secrets(manifest, stored, documents.prefix)


def _reader(name: str, *manifests: Manifest) -> str | None:
    """Returns the reader of a secret that is used; None where no configuration uses any."""
    known: dict[str, str] = {}
    for manifest in manifests:
        known |= dict.fromkeys(manifest.handler_secrets, HANDLERS)
        known |= dict.fromkeys(manifest.source_secrets, SOURCES)
    if known and name not in known:
        there = unknown("secret", name, sorted(known), where="of a source, destination or handler")
        raise WrongArgument(
            f"{there}{' To' if there.endswith('?') else '; to'} store it all the same, add --create"
        )
    return known.get(name)


def _sources(secret: StoredSecret) -> Sequence[str]:
    """Returns the names of the sources that use a secret."""
    users = secret.used_by if secret.reader == SOURCES else ()
    return [user.removeprefix("source ") for user in users]


def _status(
    secret: StoredSecret, used: Mapping[str, datetime] | None, now: datetime
) -> SecretStatus:
    times = [used[each] for each in _sources(secret) if each in used] if used else []
    ended = secret.until is not None and secret.until <= now
    return SecretStatus(
        name=secret.name,
        values=1 if ended else secret.values,
        replaced_at=secret.since,
        previous_until=secret.until,
        previous_last_used=max(times, default=None),
        metric_known=used is not None and secret.reader == SOURCES,
    )
