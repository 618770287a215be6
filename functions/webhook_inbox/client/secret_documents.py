"""The documents of an inbox's secrets, which the command line creates and changes."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any, Final, TypeVar

from webhook_inbox.adapters.aws.errors import MarkedForDeletion
from webhook_inbox.adapters.aws.secrets_manager import SecretDocument
from webhook_inbox.client.errors import Refused
from webhook_inbox.domain.errors import AccessDenied, Unavailable
from webhook_inbox.domain.secret_document import Secrets, removed, replaced, revoked, rotated

T = TypeVar("T")
RIGHTS: Final = "GetSecretValue, PutSecretValue and, for the first value, CreateSecret"


class SecretChange(StrEnum):
    """The effect of setting a secret."""

    CREATED = "created"  # had no value
    REPLACED = "replaced"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class SecretDocuments:
    """The documents by reader, see `secret_document`; `client` is that of Secrets Manager.

    Every method raises Refused where a document cannot be read or written, without a value of
    it.
    """

    client: Any
    prefix: str

    def id(self, reader: str) -> str:
        """Returns the document's name in Secrets Manager."""
        return self.prefix + reader

    def read(self, reader: str) -> Secrets:
        """Returns the secrets of a reader; none without a document."""
        return self._explained(reader, self._document(reader).read)

    def set(self, reader: str, name: str, value: str, *, replace: bool = False) -> SecretChange:
        """Sets a secret; the value before stays live, unless with `replace`."""
        edit = partial(replaced if replace else rotated, name=name, value=value)
        return self._changed(reader, name, edit)

    def rotate(
        self, reader: str, name: str, value: str, *, now: datetime, until: datetime
    ) -> SecretChange:
        """Sets a secret; the value before stays live until the given time."""
        edit = partial(rotated, name=name, value=value, since=now, until=until)
        return self._changed(reader, name, edit)

    def revoke_previous(self, reader: str, name: str) -> bool:
        """Removes the previous value of a secret; returns False where it has none."""
        change = self._changed(reader, name, partial(revoked, name=name))
        return change is not SecretChange.UNCHANGED

    def _changed(self, reader: str, name: str, edit: Callable[[Secrets], Secrets]) -> SecretChange:
        change = partial(self._document(reader).change, edit)
        before, after = self._explained(reader, change)
        if before == after:
            return SecretChange.UNCHANGED
        return SecretChange.REPLACED if name in before else SecretChange.CREATED

    def put(self, reader: str, values: dict[str, str]) -> None:
        """Sets secrets, each as its only live value."""
        live = {name: (value,) for name, value in values.items()}
        self._explained(reader, partial(self._document(reader).change, lambda old: {**old, **live}))

    def create(self, reader: str) -> None:
        """Creates a document where there is none; ingest may change it, and not create it."""
        self._explained(reader, self._document(reader).create)

    def remove(self, reader: str, name: str) -> None:
        """Removes a secret."""
        edit = partial(removed, name=name)
        self._explained(reader, partial(self._document(reader).change, edit))

    def _document(self, reader: str) -> SecretDocument:
        return SecretDocument(self.client, self.id(reader))

    def _explained(self, reader: str, act: Callable[[], T]) -> T:
        try:
            return act()
        except MarkedForDeletion:
            raise Refused(
                f"the secret {self.id(reader)} is marked for deletion: run `aws secretsmanager"
                f" restore-secret --secret-id {self.id(reader)}`, and then repeat the command"
            ) from None
        except Unavailable as error:
            if error.__cause__ is None:  # malformed, or changed by others all the time
                raise Refused(str(error)) from None
            if isinstance(error, AccessDenied):
                raise Refused(
                    f"{error}: a value is set by reading {self.id(reader)} and writing it again:"
                    f" request {RIGHTS} on it, or choose another --profile"
                ) from error
            raise
