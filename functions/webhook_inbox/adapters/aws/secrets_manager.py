"""Secrets in Secrets Manager: a document for each reader, and the keys that the stack generates."""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import Any, Final

from webhook_inbox.adapters.aws import errors
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.secret_document import Secrets, parse, removed, replaced, write

SERVICE: Final = "secretsmanager"
# Each attempt fails only if another writer succeeds.
ATTEMPTS: Final = 10
DESCRIPTION: Final = "webhook-inbox: set its values with `webhookctl secrets set`"


class SecretDocument:
    """One document by its name; it need not exist.

    Writers do not lock. The id of a new version is derived from the version that was read, and
    Secrets Manager accepts each id once: of two writers that read the same version, the second one
    fails, reads again and repeats its change.
    """

    def __init__(self, client: Any, name: str, *, call: errors.Caller = errors.once) -> None:
        self.name = name
        self._client = client
        self._call = call

    def read(self, *, leniently: bool = False) -> Secrets:
        """Returns the secrets; none where the document does not exist.

        Leniently, a name whose value is malformed has none.

        Raises:
            MarkedForDeletion: it will be deleted.
            Unavailable: it cannot be read, or is malformed.
        """
        return self._read(leniently=leniently)[0]

    def create(self) -> None:
        """Creates an empty document where there is none. Raises as `change`."""
        if not self._read()[1]:
            with suppress(errors.Exists):
                self._write(write({}), _token("", 0), create=True)

    def change(self, edit: Callable[[Secrets], Secrets]) -> tuple[Secrets, Secrets]:
        """Replaces the secrets by what `edit` returns for them; returns those before and after.

        `edit` may be called more than once. The document is created where it does not exist.

        Raises:
            ConfigurationError: it would be too large.
            MarkedForDeletion: it will be deleted.
            Unavailable: it cannot be read or written, or is malformed.
        """
        conflicts: Counter[str] = Counter()
        before, version = self._read()
        for _ in range(ATTEMPTS):
            after = edit(before)
            if after == before:
                return before, after
            token = _token(version, conflicts[version])
            try:
                self._write(write(after), token, create=not version and not conflicts[version])
            except errors.Exists:
                conflicts[version] += 1
                before, version = self._successor(token)
            else:
                return before, after
        cause = f"other writers changed {self.name} meanwhile, {ATTEMPTS} times; repeat the change"
        raise Unavailable(SERVICE, "PutSecretValue", cause)

    def _successor(self, token: str) -> tuple[Secrets, str]:
        """Returns the other writer's version, or the current one after a rollback."""
        # By its id: a read of the current version may not see a write that has just been made.
        try:
            answer = self._version(VersionId=token)
        except errors.Missing:
            return self._read()
        current = "AWSCURRENT" in answer.get("VersionStages", ())
        return self._parsed(answer) if current else self._read()

    def _read(self, *, leniently: bool = False) -> tuple[Secrets, str]:
        """Returns the secrets and the id of their version, "" without one."""
        try:
            answer = self._version(VersionStage="AWSCURRENT")
        except errors.MarkedForDeletion:
            raise
        except errors.Missing:
            return {}, ""
        return self._parsed(answer, leniently=leniently)

    def _version(self, **which: str) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = self._call(
            SERVICE,
            "GetSecretValue",
            lambda: self._client.get_secret_value(SecretId=self.name, **which),
        )
        return answer

    def _parsed(self, answer: Mapping[str, Any], *, leniently: bool = False) -> tuple[Secrets, str]:
        try:
            secrets = parse(text_of(answer), leniently=leniently)
        except ValueError as error:
            # Not chained: an original error may contain the secret's bytes.
            cause = f"the secret {self.name} {error}"
            raise Unavailable(SERVICE, "GetSecretValue", cause) from None
        return secrets, str(answer.get("VersionId", ""))

    def _write(self, text: str, token: str, *, create: bool) -> None:
        operation, attempt = (
            ("CreateSecret", partial(self._client.create_secret, Description=DESCRIPTION))
            if create
            else ("PutSecretValue", self._client.put_secret_value)
        )
        named = {"Name" if create else "SecretId": self.name, "ClientRequestToken": token}
        answer = self._call(SERVICE, operation, lambda: attempt(SecretString=text, **named))
        if "AWSCURRENT" not in answer.get("VersionStages", ("AWSCURRENT",)):
            # The same text under the same id changes nothing: someone has moved the label back.
            raise errors.Exists(f"{SERVICE} {operation}: the version is not the current one")


def _token(version: str, conflicts: int) -> str:
    """Returns the id of the version that follows `version`; another one after each conflict."""
    return sha256(f"{version}\0{conflicts}".encode()).hexdigest()


class SecretsManagerStore:
    """The ports `SecretStore` and `Vault`.

    Args:
        client: the client of Secrets Manager.
        document: the name of the reader's document.
        keys: the ARNs of the generated keys by name.
        call: makes the calls.
    """

    def __init__(
        self,
        client: Any,
        document: str,
        *,
        keys: Mapping[str, str],
        call: errors.Caller = errors.once,
    ) -> None:
        self._document = SecretDocument(client, document, call=call)
        self._client = client
        self._keys = keys
        self._call = call

    def fetch(self) -> Secrets:
        """See the port."""
        try:
            return self._document.read(leniently=True)
        except errors.MarkedForDeletion:
            return {}

    def generated(self, name: str, *, previous: bool = False) -> str:
        """See the port."""
        if name not in self._keys:
            return ""
        stage = "AWSPREVIOUS" if previous else "AWSCURRENT"
        get = partial(self._client.get_secret_value, SecretId=self._keys[name], VersionStage=stage)
        try:
            value = str(self._call(SERVICE, "GetSecretValue", get).get("SecretString") or "")
        except errors.Missing:
            return ""
        return value if value.strip() else ""

    def replace(self, name: str, value: str) -> None:
        """See the port."""
        self._document.change(lambda secrets: replaced(secrets, name, value))

    def revoke(self, name: str) -> None:
        """See the port."""
        self._document.change(lambda secrets: removed(secrets, name))


def text_of(answer: Mapping[str, Any]) -> str:
    """Returns a version's text; raises ValueError for a binary one."""
    if answer.get("SecretBinary"):
        raise ValueError("is binary (SecretBinary); store it as text")
    return str(answer.get("SecretString") or "")
