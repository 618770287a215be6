"""S3 in memory."""

from webhook_inbox.memory.faults import Call, Faults, no_faults


class MemoryBlobs:
    """A bucket. `objects` is what it holds, for assertions and damage."""

    def __init__(self, *, faults: Faults = no_faults) -> None:
        self.faults = faults
        self.objects: dict[str, bytes] = {}

    def put(self, key: str, data: bytes) -> None:
        """See the port."""
        with Call(self.faults, "s3", "PutObject"):
            self.objects[key] = data

    def get(self, key: str) -> bytes | None:
        """See the port."""
        with Call(self.faults, "s3", "GetObject"):
            return self.objects.get(key)
