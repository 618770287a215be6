"""Explains why a delivery fails verification: the failed step and its likely cause.

The delivery is verified again with each common change reverted, then with two of them; the first
variant that verifies names the cause.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from itertools import islice
from typing import Final

from webhook_inbox import providers
from webhook_inbox.client.diagnosis import clock, clues
from webhook_inbox.client.diagnosis.bodies import bodies
from webhook_inbox.client.diagnosis.hypothesis import Hypothesis, RejectionCause, Trial
from webhook_inbox.client.diagnosis.requests import addresses, headers, names, registered
from webhook_inbox.client.diagnosis.schemes import schemes
from webhook_inbox.client.diagnosis.secrets import secrets
from webhook_inbox.domain.errors import ConfigurationError, Reason, Rejected
from webhook_inbox.domain.ports import UNAVAILABLE_FETCHER, Fetcher
from webhook_inbox.domain.provider import Identity, Provider, Verified
from webhook_inbox.ingest.verification import PublishedKeys, verify

# The limit of variants with two changes; verifying a public-key signature takes 0.1 ms.
MOST_PAIRS: Final = 20_000
UNTIMELY: Final = frozenset({Reason.STALE, Reason.FUTURE})
MOST_MOMENTS: Final = 200


class VerificationStep(StrEnum):
    """The steps of verification, in order."""

    HEADER = "signature found"
    FORM = "signature readable"
    SECRET = "secret usable"  # noqa: S105 - a step's name
    KEY = "published key fetched"
    SIGNATURE = "signature valid"
    TIME = "time within its window"
    NAME = "event named"


FAILS: Final = {
    Reason.MISSING_SIGNATURE: VerificationStep.HEADER,
    Reason.MALFORMED: VerificationStep.FORM,
    Reason.NO_SECRET: VerificationStep.SECRET,
    Reason.KEY_UNAVAILABLE: VerificationStep.KEY,
    Reason.UNKNOWN_KEY: VerificationStep.KEY,
    Reason.INVALID_SIGNATURE: VerificationStep.SIGNATURE,
    Reason.STALE: VerificationStep.TIME,
    Reason.FUTURE: VerificationStep.TIME,
    Reason.MISSING_EVENT_ID: VerificationStep.NAME,
}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of a diagnosis; `failed` is None where every step passes.

    `tried` counts the variants, `steps` has the steps that apply: most sources fetch nothing, and
    some share no secret.
    """

    failed: VerificationStep | None = None
    reason: Reason | None = None
    detail: str = ""
    causes: tuple[RejectionCause, ...] = ()
    tried: int = 1
    identity: Identity | None = None
    steps: tuple[VerificationStep, ...] = tuple(VerificationStep)

    @property
    def results(self) -> dict[VerificationStep, str]:
        """Each step's result; steps after a failed one are not reached."""
        place = len(self.steps) if self.failed is None else self.steps.index(self.failed)
        return {
            step: "ok" if n < place else "failed" if n == place else "not reached"
            for n, step in enumerate(self.steps)
        }


def diagnose(
    trial: Trial,
    *,
    fetcher: Fetcher = UNAVAILABLE_FETCHER,
    others: Sequence[tuple[str, str]] = (),
    url: str = "",
) -> Diagnosis:
    """Diagnoses a delivery without writing or sending; raises ConfigurationError for bad settings.

    `others` are (name, secret) candidates; `url` is the one registered at the provider.
    """
    return _Examination(trial, fetcher, others, url).run()


class _Examination:
    def __init__(
        self, trial: Trial, fetcher: Fetcher, others: Sequence[tuple[str, str]], url: str
    ) -> None:
        self._trial = trial
        self._provider: Provider = providers.load(trial.spec)
        self._fetcher = fetcher
        self._tried = 0
        self._singles: tuple[Hypothesis, ...] = (
            partial(_others, others=others),
            *((registered(url),) if url else ()),
            headers,
            names,
            schemes,
            secrets,
            bodies,
            addresses,
        )

    def run(self) -> Diagnosis:
        try:
            verified = self._judge(self._trial)
        except Rejected as error:
            found = replace(self._explain(error), tried=self._tried)
        else:
            found = self._diagnose_verified(verified)
        return replace(found, steps=tuple(self._steps(found.failed)))

    def _steps(self, failed: VerificationStep | None) -> Iterator[VerificationStep]:
        there = {
            VerificationStep.SECRET: self._provider.needs_secret,
            VerificationStep.KEY: self._fetches(),
        }
        return (step for step in VerificationStep if there.get(step, True) or step is failed)

    def _fetches(self) -> bool:
        fetches = self._provider.fetches
        try:
            found = fetches(self._trial.delivery, self._trial.secrets) if fetches else None
        except Rejected:
            return True  # The delivery's error precedes the fetch.
        return found is not None

    def _diagnose_verified(self, verified: Verified) -> Diagnosis:
        delivery = replace(self._trial.delivery, verified=True)
        secret = self._trial.secrets[verified.secret] if self._provider.needs_secret else ""
        try:
            if self._provider.handshake and self._provider.handshake(delivery, secret) is not None:
                return Diagnosis(detail="a challenge: it is answered, and holds no event")
            parts = self._provider.batch(delivery) if self._provider.batch else None
            identities = [self._provider.identify(part) for part in parts or (delivery,)]
        except Rejected as error:
            step = VerificationStep.NAME
            return Diagnosis(step, error.reason, error.detail, (_unnamed(error),), self._tried)
        more = "" if parts is None else f"a batch of {len(identities)}"
        return Diagnosis(detail=more, tried=self._tried, identity=identities[0])

    def _explain(self, error: Rejected) -> Diagnosis:
        failed = Diagnosis(FAILS[error.reason], error.reason, error.detail)
        if error.reason in UNTIMELY:
            return replace(failed, causes=self._untimely(self._trial))
        if error.reason is Reason.KEY_UNAVAILABLE:
            words = "the provider's published key is missing, and nothing is fetched"
            cause = RejectionCause("key-missing", words, "pass it with --published", proven=True)
            return replace(failed, causes=(cause,))
        if error.reason is Reason.UNKNOWN_KEY:
            words = "the provider does not publish the key that the delivery names"
            remedy = "ignore it as forged, or ask the provider to send the event again"
            return replace(
                failed, causes=(RejectionCause("key-unknown", words, remedy, proven=True),)
            )
        for look in (self._one, self._two):
            trial = next(filter(self._passes, look()), None)
            if trial is not None:
                return replace(failed, causes=(*trial.causes, *self._untimely(trial)))
        found = tuple(self._clues(error))
        if not any(clue.proven for clue in found):
            found += (clues.unknown(self._provider),)
        return replace(failed, causes=found)

    def _one(self) -> Iterator[Trial]:
        """Yields the delivery with one change reverted."""
        return (trial for suspect in self._singles for trial in suspect(self._trial))

    def _two(self) -> Iterator[Trial]:
        """Yields the delivery with two changes reverted."""
        pairs = (
            second
            for first_of, second_of in ((headers, bodies), (secrets, bodies), (headers, secrets))
            for first in first_of(self._trial)
            for second in second_of(first)
        )
        return islice(pairs, MOST_PAIRS)

    def _judge(self, trial: Trial) -> Verified:
        self._tried += 1
        provider = self._provider if trial.spec is self._trial.spec else providers.load(trial.spec)
        return verify(provider, trial.delivery, trial.secrets, PublishedKeys(self._fetcher))

    def _passes(self, trial: Trial) -> bool:
        try:
            self._judge(trial)
        except Rejected as error:
            # The time is checked last, so an untimely delivery has a valid signature.
            return error.reason in UNTIMELY
        except ConfigurationError:
            return False
        return True

    def _untimely(self, trial: Trial) -> tuple[RejectionCause, ...]:
        """Returns the cause of an untimely delivery; () for a timely one."""
        try:
            self._judge(trial)
        except Rejected:
            pass
        else:
            return ()
        for moment in islice(clock.moments(trial), MOST_MOMENTS):
            shifted = replace(trial, delivery=replace(trial.delivery, received_at=moment))
            try:
                signed_at = self._judge(shifted).signed_at or moment
            except (Rejected, ConfigurationError):
                continue
            return (clock.skewed(trial.delivery.received_at - signed_at),)
        return (
            RejectionCause(
                "clock-skew", "it was signed too long ago, or ahead of time", clock.REMEDY
            ),
        )

    def _clues(self, error: Rejected) -> Iterator[RejectionCause]:
        """Yields hints from the delivery itself."""
        delivery, wanted = self._trial.delivery, self._provider.signature_headers
        if error.reason is Reason.MISSING_SIGNATURE:
            yield clues.missing(self._provider, delivery.headers.keys())
        for name in sorted(wanted & delivery.headers.keys()):
            versions = clues.VERSION.findall(delivery.headers[name])
            if versions and error.reason is Reason.MALFORMED:
                yield clues.version(name, versions)
        if not delivery.body:
            words = "the body is empty: a proxy or framework read it before it was saved"
            yield RejectionCause("body-empty", words, "save the raw bytes first", proven=False)
        if error.reason is Reason.INVALID_SIGNATURE:
            yield from clues.modes(delivery.body)


def _others(trial: Trial, *, others: Sequence[tuple[str, str]]) -> Iterator[Trial]:
    for name, secret in others:
        words = f"it was signed with another secret: the one in {name}"
        cause = RejectionCause(
            "other-secret", words, "set that secret, or send to the source that uses it"
        )
        yield trial.without(cause, secrets=(secret,))


def _unnamed(error: Rejected) -> RejectionCause:
    words = f"the signature is valid, but the event has no id: {error.detail}"
    return RejectionCause(
        "unnamed", words, "check the source's `event_id` and the provider's request"
    )
