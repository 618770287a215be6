"""Damages a delivery in one way, after it was signed or by signing it wrongly."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Final

from webhook_inbox import providers
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.ports import Clock
from webhook_inbox.domain.provider import Provider
from webhookctl.deliveries.samples import Draft, Forge
from webhookctl.errors import CommandError
from webhookctl.local.dev_secrets import fake

# Longer than any provider's window.
SHIFT: Final = timedelta(days=8)


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


class _Shifted(Clock):
    """A clock that is wrong."""

    def __init__(self, clock: Clock, by: timedelta) -> None:
        self._clock = clock
        self._by = by

    def now(self) -> datetime:
        return self._clock.now() + self._by

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)


def damaged_draft(
    spec: SourceSpec, file: Path, damage: Damage, *, secret: str, clock: Clock
) -> Draft:
    """Returns the delivery of a sample, damaged; raises CommandError where that is impossible."""
    provider = providers.load(spec)
    if damage is Damage.SECRET:
        secret = provider.pair()[0] if provider.pair else fake(spec.provider, spec.name)
    if damage in {Damage.OLD, Damage.FUTURE}:
        clock = _Shifted(clock, SHIFT if damage is Damage.FUTURE else -SHIFT)
    forge = Forge(provider=provider, spec=spec, secret=secret, clock=clock)
    # A sample whose id is in its body would be known from the second time on.
    draft = forge.draft(file, new_id=forge.draft(file).id_in_body)
    return _damaged(draft, damage, provider)


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
