"""Blobs and secrets in memory."""

from collections.abc import Mapping, Sequence
from typing import Final

from webhook_inbox.adapters.memory.faults import Faults, FaultyCall, no_faults
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.quotas import text_size
from webhook_inbox.domain.secret_document import Secrets, removed, replaced, rotated
from webhook_inbox.domain.secrets import GENERATED

# https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html
KEY_BYTES: Final = 1024


class MemoryBlobs:
    """A bucket. Tests may read and change `objects`."""

    def __init__(self, *, faults: Faults = no_faults) -> None:
        self.faults = faults
        self.objects: dict[str, bytes] = {}

    def put(self, key: str, data: bytes) -> None:
        """See the port."""
        with FaultyCall(self.faults, "s3", "PutObject"):
            _check(key, "PutObject")
            self.objects[key] = data

    def get(self, key: str) -> bytes | None:
        """See the port."""
        with FaultyCall(self.faults, "s3", "GetObject"):
            _check(key, "GetObject")
            return self.objects.get(key)

    def delete(self, key: str) -> None:
        """See the port."""
        with FaultyCall(self.faults, "s3", "DeleteObject"):
            _check(key, "DeleteObject")
            self.objects.pop(key, None)

    def list_keys(self, prefix: str) -> Sequence[str]:
        """See the port."""
        with FaultyCall(self.faults, "s3", "ListObjectsV2"):
            return sorted(key for key in self.objects if key.startswith(prefix))


def _check(key: str, operation: str) -> None:
    if not 0 < text_size(key) <= KEY_BYTES:
        raise Unavailable("s3", operation, "KeyTooLongError, or none at all")


class MemorySecrets:
    """Secrets with a current and a previous value."""

    def __init__(
        self, values: Mapping[str, tuple[str, ...]] | None = None, *, faults: Faults = no_faults
    ) -> None:
        self.faults = faults
        self._values: Secrets = dict(values or {})

    def fetch(self) -> Secrets:
        """See the port."""
        with FaultyCall(self.faults, "secretsmanager", "GetSecretValue"):
            return {name: self.live(name) for name in self._values if name not in GENERATED}

    def generated(self, name: str, *, previous: bool = False) -> str:
        """See the port."""
        with FaultyCall(self.faults, "secretsmanager", "GetSecretValue"):
            values = self.live(name)[previous:] if name in GENERATED else ()
            return values[0] if values else ""

    def replace(self, name: str, value: str) -> None:
        """See the port."""
        with FaultyCall(self.faults, "secretsmanager", "PutSecretValue"):
            self._values = replaced(self._values, name, value)

    def revoke(self, name: str) -> None:
        """See the port."""
        with FaultyCall(self.faults, "secretsmanager", "PutSecretValue"):
            self.remove(name)

    def live(self, name: str) -> tuple[str, ...]:
        """Returns the live values of one secret."""
        values = self._values.get(name, ())
        found = tuple(filter(str.strip, values))
        # A rotation keeps its times.
        return values if found == values else found

    def rotate(self, name: str, value: str) -> None:
        """Sets the current value; the old one becomes the previous."""
        self._values = rotated(self._values, name, value)

    def remove(self, name: str) -> None:
        """Removes the secret."""
        self._values = removed(self._values, name)
