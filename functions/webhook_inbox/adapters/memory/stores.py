"""Blobs and secrets in memory."""

from collections.abc import Mapping
from typing import Final

from webhook_inbox.adapters.memory.faults import Faults, FaultyCall, no_faults
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.quotas import text_size

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


def _check(key: str, operation: str) -> None:
    if not 0 < text_size(key) <= KEY_BYTES:
        raise Unavailable("s3", operation, "KeyTooLongError, or none at all")


class MemorySecrets:
    """Secrets with a current and a previous value."""

    def __init__(
        self, values: Mapping[str, tuple[str, ...]] | None = None, *, faults: Faults = no_faults
    ) -> None:
        self.faults = faults
        self._values = dict(values or {})

    def fetch(self, name: str) -> tuple[str, ...]:
        """See the port."""
        with FaultyCall(self.faults, "secretsmanager", "GetSecretValue"):
            current, *previous = self._values.get(name) or ("",)
            # A value that was set twice counts once; a blank one is ignored, or revokes.
            live = (current, *filter(str.strip, previous)) if current.strip() else ()
            return tuple(dict.fromkeys(live))

    def replace(self, name: str, value: str) -> None:
        """See the port."""
        self.revoke(name)
        with FaultyCall(self.faults, "secretsmanager", "PutSecretValue"):
            self.rotate(name, value)

    def revoke(self, name: str) -> None:
        """See the port."""
        with FaultyCall(self.faults, "secretsmanager", "PutSecretValue"):
            self.rotate(name, "")

    def rotate(self, name: str, value: str) -> None:
        """Sets the current value; the old one becomes the previous."""
        self._values[name] = (value, *self._values.get(name, ())[:1])

    def remove(self, name: str) -> None:
        """Removes the secret."""
        self._values.pop(name, None)
