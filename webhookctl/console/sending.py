"""Sends a sample to the inbox on this machine, as its provider would, or damaged in one way."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from webhook_inbox import providers
from webhook_inbox.client.diagnosis.diagnose import Diagnosis, diagnose
from webhook_inbox.client.diagnosis.hypothesis import Trial
from webhook_inbox.domain.manifest import LOCAL, SourceSpec
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import Clock
from webhook_inbox.domain.provider import Provider
from webhook_inbox.ingest.rejected import RejectedFilter, find
from webhookctl.checkout import Checkout
from webhookctl.commands.send import address_of, stored_secret
from webhookctl.commands.verify import step_results
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.deliveries.post import Answer, post
from webhookctl.deliveries.samples import Draft, Forge, samples_of
from webhookctl.errors import CommandError
from webhookctl.local.dev_secrets import fake

# Longer than any provider's window.
SHIFT: Final = timedelta(days=8)
# Ingest stores a rejected delivery within the answer; the clocks of its processes may differ.
CLOCKS: Final = timedelta(seconds=5)


class Damage(StrEnum):
    """The ways in which a delivery is damaged after it was signed, or signed wrongly."""

    NONE = "none"
    BODY = "body"
    ORDER = "order"
    SECRET = "secret"  # noqa: S105 - a way of damage
    HEADER = "header"
    OLD = "old"
    FUTURE = "future"
    TWICE = "twice"


EXPLAINED: Final[Mapping[Damage, str]] = {
    Damage.NONE: "as the provider sends it",
    Damage.BODY: "one byte of the body changed after signing",
    Damage.ORDER: "the JSON written again with its members in another order, as a proxy may do",
    Damage.SECRET: "signed with another secret",
    Damage.HEADER: "without the header of the signature",
    Damage.OLD: f"signed {SHIFT.days} days ago, as a captured delivery that is sent again",
    Damage.FUTURE: f"signed {SHIFT.days} days ahead, by a clock that is wrong",
    Damage.TWICE: "sent twice, as a provider does that missed the answer",
}


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
    answers: Sequence[Answer]
    diagnosis: Diagnosis
    rejected: str
    covers: str

    @property
    def steps(self) -> Mapping[str, str]:
        """The steps of the verification, each with its result."""
        return {str(step): result for step, result in step_results(self.diagnosis).items()}

    @property
    def stored(self) -> bool:
        """True if the inbox has an event of it."""
        return any(answer.accepted for answer in self.answers) and bool(self.draft.event_id)


class _Shifted(Clock):
    """A clock that is wrong."""

    def __init__(self, clock: Clock, by: timedelta) -> None:
        self._clock = clock
        self._by = by

    def now(self) -> datetime:
        return self._clock.now() + self._by

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)


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
    draft = _damaged(_drafted(inbox, spec, found[sample], damage), damage, providers.load(spec))
    address, begun = address_of(inbox.call, source), inbox.clock.now()
    times = 2 if damage is Damage.TWICE else 1
    answers = [post(address, draft) for _ in range(times)]
    stored = "" if answers[0].accepted else _rejected(inbox, draft, begun)
    judged = _diagnosed(inbox, spec, draft, address)
    facts = providers.load(spec).facts
    return SentSample(draft, damage, answers, judged, stored, facts.body if facts else "")


def sending_refused(inbox: ConsoleInbox) -> str:
    """Returns why no sample can be sent, "" if one can."""
    if not inbox.target.local:
        return (
            "samples are sent to the inbox on this machine only: use `webhookctl send` against a"
            " stack"
        )
    return inbox.refusal


def _drafted(inbox: ConsoleInbox, spec: SourceSpec, file: Path, damage: Damage) -> Draft:
    key, clock = stored_secret(inbox.call, spec), inbox.clock
    provider = providers.load(spec)
    if damage is Damage.SECRET:
        key = provider.pair()[0] if provider.pair else fake(spec.provider, spec.name)
    if damage in {Damage.OLD, Damage.FUTURE}:
        clock = _Shifted(clock, SHIFT if damage is Damage.FUTURE else -SHIFT)
    forge = Forge(provider=provider, spec=spec, secret=key, clock=clock)
    # A sample whose id is in its body would be known from the second time on.
    return forge.draft(file, new_id=forge.draft(file).id_in_body)


def _damaged(draft: Draft, damage: Damage, provider: Provider) -> Draft:
    match damage:
        case Damage.BODY:
            return replace(draft, body=_changed(draft.body))
        case Damage.ORDER:
            return replace(draft, body=_reordered(draft.body))
        case Damage.HEADER:
            lost = provider.signature_headers
            kept = {name: value for name, value in draft.headers.items() if name not in lost}
            if len(kept) == len(draft.headers):
                raise CommandError(
                    f"{provider.name} sends no signature in a header: choose another"
                )
            return replace(draft, headers=kept)
        case _:
            return draft


def _changed(body: bytes) -> bytes:
    """Returns the body with the last digit or letter changed, so that it can still be read."""
    for place in range(len(body) - 1, -1, -1):
        if body[place : place + 1].isalnum():
            other = b"1" if body[place : place + 1] != b"1" else b"2"
            return body[:place] + other + body[place + 1 :]
    raise CommandError("the sample has no letter or digit to change: choose another")


def _reordered(body: bytes) -> bytes:
    with suppress(ValueError, RecursionError):
        found = json.loads(body)
        if isinstance(found, dict) and len(found) > 1:
            return json.dumps(dict(reversed(found.items()))).encode()
    raise CommandError("the sample is no JSON object of several members: choose another")


def _diagnosed(inbox: ConsoleInbox, spec: SourceSpec, draft: Draft, address: str) -> Diagnosis:
    secrets = tuple(inbox.target.secrets.fetch().get(spec.secret, ()))
    parts = urlsplit(address)
    headers = {"host": parts.netloc, **draft.headers}
    now = inbox.clock.now()
    delivery = Delivery(spec.name, "POST", parts.path, draft.query, headers, draft.body, now)
    return diagnose(Trial(spec, delivery, secrets), url=address)


def _rejected(inbox: ConsoleInbox, draft: Draft, begun: datetime) -> str:
    wanted, digest = RejectedFilter(since=begun - CLOCKS), sha256(draft.body).hexdigest()
    newest = find(inbox.table, draft.source, wanted, now=inbox.clock.now(), newest_first=True)
    return next((each.id for each in newest if each.row["fingerprint"] == digest), "")
