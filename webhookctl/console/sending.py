"""Sends a sample to the inbox on this machine, as its provider would, or damaged in one way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from webhook_inbox.client.diagnosis.diagnose import Diagnosis, diagnose
from webhook_inbox.client.diagnosis.hypothesis import Trial
from webhook_inbox.client.post import PostAnswer, post
from webhook_inbox.client.rejected import RejectionFilter
from webhook_inbox.client.sources import facts_of
from webhook_inbox.domain.manifest import LOCAL, SourceSpec
from webhook_inbox.domain.model import Delivery
from webhookctl.checkout import Checkout
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.deliveries.damage import Damage, damaged_draft
from webhookctl.deliveries.samples import Draft, samples_of
from webhookctl.deliveries.signing import address_of, stored_secret
from webhookctl.errors import CommandError

# Ingest stores a rejected delivery within the answer; the clocks of its processes may differ.
CLOCKS: Final = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class SentSample:
    """A sample that was sent, and what the inbox made of it.

    Attributes:
        draft: the delivery as it was sent.
        damage: the way in which it was damaged.
        answers: the answers, one for each time it was sent.
        diagnosis: what `verify` says about it.
        rejected: the id of the rejected delivery, "" if none was stored.
        covers: the part of the body that the provider signs.
    """

    draft: Draft
    damage: Damage
    answers: Sequence[PostAnswer]
    diagnosis: Diagnosis
    rejected: str
    covers: str

    @property
    def steps(self) -> Mapping[str, str]:
        """The steps of the verification, each with its result."""
        return {str(step): result for step, result in self.diagnosis.results.items()}

    @property
    def stored(self) -> bool:
        """True if the inbox has an event of it."""
        return any(answer.accepted for answer in self.answers) and bool(self.draft.event_id)


def samples(source: str) -> dict[str, Path]:
    """Returns the samples of a source in the user's repository, by their names there."""
    checkout = Checkout.required()
    spec = checkout.source(source, LOCAL)
    root = checkout.functions.parent
    files = sorted(samples_of(root, source, spec.provider))
    return {f"{file.parent.name}/{file.name}": file for file in files}


def send_sample(inbox: ConsoleInbox, source: str, sample: str, damage: Damage) -> SentSample:
    """Sends a sample; raises CommandError unless the inbox runs on this machine."""
    if refusal := sending_refused(inbox):
        raise CommandError(refusal)
    found = samples(source)
    if sample not in found:
        raise CommandError(f"{sample or 'no file'} is not a sample of {source}: choose one listed")
    spec = Checkout.required().source(source, inbox.target.stage)
    secret = stored_secret(inbox.client, spec)
    draft = damaged_draft(spec, found[sample], damage, secret=secret, clock=inbox.clock)
    address, begun = address_of(inbox.client, source), inbox.clock.now()
    times = 2 if damage is Damage.TWICE else 1
    answers = [post(address, draft.body, draft.headers, draft.query) for _ in range(times)]
    stored = "" if answers[0].accepted else _rejected(inbox, draft, begun)
    judged = _diagnosed(inbox, spec, draft, address)
    facts = facts_of(spec)
    return SentSample(draft, damage, answers, judged, stored, facts.body if facts else "")


def sending_refused(inbox: ConsoleInbox) -> str:
    """Returns why no sample can be sent, "" if one can."""
    if not inbox.target.local:
        return (
            "samples are sent to the inbox on this machine only: use `webhookctl send` against a"
            " stack"
        )
    return inbox.refusal


def _diagnosed(inbox: ConsoleInbox, spec: SourceSpec, draft: Draft, address: str) -> Diagnosis:
    secrets = tuple(inbox.target.secrets.fetch().get(spec.secret, ()))
    parts = urlsplit(address)
    headers = {"host": parts.netloc, **draft.headers}
    now = inbox.clock.now()
    delivery = Delivery(spec.name, "POST", parts.path, draft.query, headers, draft.body, now)
    return diagnose(Trial(spec, delivery, secrets), url=address)


def _rejected(inbox: ConsoleInbox, draft: Draft, begun: datetime) -> str:
    wanted, digest = RejectionFilter(since=begun - CLOCKS, source=draft.source), sha256(draft.body)
    newest = inbox.reading().rejected.list(wanted)
    return next((each.id for each in newest if each.fingerprint == digest.hexdigest()), "")
