"""Accepts a secret that a provider delivers, only while an operator has opened the source.

Anyone who can reach the endpoint can offer a secret; accepted without an operator, it would let
anyone sign. An operator opens the source for some minutes:

    offer ──► the first ──► replaces all values of the secret ──► still the only one? ──► accepted
                └ another one: contested: no value stays live until the next enrolment

Nothing tells which of two secrets is the provider's, so neither is accepted. An accepted one
replaces the previous value as well, which may be an attacker's that an earlier enrolment accepted.
"""

from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Final, NoReturn

from webhook_inbox.domain.conditions import Absent, Equals, Present, either, every
from webhook_inbox.domain.errors import ConditionFailed, Reason, Rejected, Unavailable
from webhook_inbox.domain.ports import Change, Key, Table, Vault
from webhook_inbox.domain.timestamps import to_ms, to_seconds

LONGEST: Final = timedelta(hours=1)
KEPT: Final = timedelta(days=35)
SECRET_LIMIT: Final = 1024


def key(source: str) -> Key:
    """Returns the key of a source's enrolment row."""
    return Key(f"enrolment#{source}", "enrolment")


def begin(table: Table, source: str, *, by: str, now: datetime, until: datetime) -> None:
    """Opens a source for one secret until then, in place of an earlier enrolment.

    Raises:
        Unavailable: the table failed.
    """
    place = key(source)
    table.put(
        {
            "pk": place.pk,
            "sk": place.sk,
            "opened_at": to_ms(now),
            "opened_by": by,
            "open_until": to_ms(min(until, now + LONGEST)),
            "expires_at": to_seconds(now + KEPT),
        }
    )


def take(
    table: Table, vault: Vault, *, source: str, secret: str, offered: str, now: datetime
) -> None:
    """Stores an offered secret as the source's only one, if an operator has opened the source.

    The provider may offer the same secret again, since the answer may not have reached it.

    Raises:
        Rejected: the source is not open (not-enrolling); another secret was offered in the same
            enrolment (contested-enrolment); or the text cannot be a secret (malformed).
        Unavailable: the table or the vault failed; the provider has to offer it again.
    """
    if not offered.isascii() or not offered.isprintable() or len(offered) > SECRET_LIMIT:
        raise Rejected(Reason.MALFORMED, "the offered secret is not printable ASCII, or too long")
    row = table.get(key(source))
    if row is None or row["open_until"] <= to_ms(now):
        raise Rejected(
            Reason.NOT_ENROLLING, f"the source is not open for a secret: {_remedy(source)}"
        )
    digest = sha256(f"{source}\0{offered}".encode()).hexdigest()
    ours = {"opened_at": row["opened_at"], "taken": digest}
    unused = every(either(Absent("taken"), Equals("taken", digest)), Absent("contested_at"))
    same = every(Equals("opened_at", row["opened_at"]), unused)
    try:
        table.update(key(source), Change(set={"taken": digest, "taken_at": to_ms(now)}), when=same)
    except ConditionFailed as error:
        if "revoked_at" in (error.old or {}):
            # A stranger may offer secrets all the time; the vault limits writes.
            raise _contested(source) from error
        _contest(table, vault, source, secret, now)
    vault.replace(secret, offered)
    # Another worker may have contested the enrolment, or the operator begun the next one, before
    # the replacement, which then has undone theirs.
    row = table.get(key(source)) or {}
    if "contested_at" in row or any(row.get(name) != value for name, value in ours.items()):
        _contest(table, vault, source, secret, now)


def _contest(table: Table, vault: Vault, source: str, secret: str, now: datetime) -> NoReturn:
    """Leaves the source without a secret until the next enrolment; raises Rejected."""
    faults: list[str] = []

    def mark(name: str) -> None:
        # The condition fails if TTL has just deleted the row.
        with suppress(ConditionFailed):
            table.update(key(source), Change(set={name: to_ms(now)}), when=Present("pk"))

    # The first mark comes first: a worker that sets the other secret at the same time reads it
    # afterwards. A failure must not hide the contest, which is alarmed; the next offer, or the next
    # enrolment, revokes again.
    for act in (partial(mark, "contested_at"), partial(vault.revoke, secret)):
        try:
            act()
        except Unavailable as error:
            faults.append(str(error))
    if not faults:
        with suppress(Unavailable):
            mark("revoked_at")
    raise _contested(source, *faults)


def _contested(source: str, *faults: str) -> Rejected:
    live = f"; one may still be live: {'; '.join(faults)}" if faults else ""
    detail = f"two secrets were offered in this enrolment, so neither is accepted{live}"
    return Rejected(Reason.CONTESTED_ENROLMENT, f"{detail}: {_remedy(source)}")


def _remedy(source: str) -> str:
    return f"webhookctl secrets enrol {source}"
