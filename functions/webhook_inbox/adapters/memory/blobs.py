"""S3 in memory."""

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
