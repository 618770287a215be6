"""Accepts a secret that a provider delivers, only while an operator has opened the source.

Anyone who can reach the endpoint can offer a secret; accepted without an operator, it would let
anyone sign. An operator opens the source for some minutes, and only the first secret that is
offered in that time is accepted.
"""

from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

from webhook_inbox.domain.conditions import Absent, Equals, either, every
from webhook_inbox.domain.errors import ConditionFailed, Reason, Rejected
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
    """Stores an offered secret as the source's, if an operator has opened the source.

    The provider may offer the same secret again, since the answer may not have reached it.

    Raises:
        Rejected: the source is not open, or has accepted another secret (not-enrolling); or the
            offered text cannot be a secret (malformed).
        Unavailable: the table or the vault failed.
    """
    if not offered.isascii() or not offered.isprintable() or len(offered) > SECRET_LIMIT:
        raise Rejected(Reason.MALFORMED, "the offered secret is not printable ASCII, or too long")
    row = table.get(key(source))
    if row is None or row["open_until"] <= to_ms(now):
        raise Rejected(
            Reason.NOT_ENROLLING, f"the source is not open for a secret: {_remedy(source)}"
        )
    digest = sha256(f"{source}\0{offered}".encode()).hexdigest()
    unused = either(Absent("taken"), Equals("taken", digest))
    same = every(Equals("opened_at", row["opened_at"]), unused)
    try:
        table.update(key(source), Change(set={"taken": digest, "taken_at": to_ms(now)}), when=same)
    except ConditionFailed as error:
        detail = f"another secret was accepted before: {_remedy(source)}"
        raise Rejected(Reason.NOT_ENROLLING, detail) from error
    vault.rotate(secret, offered)


def _remedy(source: str) -> str:
    return f"webhookctl secrets enrol {source}"
