"""Files under a prefix of a bucket, with the user's credentials."""

from dataclasses import dataclass
from typing import IO, Any

from webhook_inbox.adapters.aws.errors import Missing, once


@dataclass(frozen=True, slots=True)
class S3Files:
    """Files under a prefix of a bucket. A file is there as a whole or not at all.

    Every method raises Unavailable if S3 fails, and AccessDenied if it refuses the call.
    """

    client: Any
    bucket: str
    prefix: str

    def read(self, name: str) -> bytes | None:
        """Returns a file's content, None if it is not there."""
        try:
            return once("s3", "GetObject", lambda: self._get(name))
        except Missing:
            return None

    def has(self, name: str) -> bool:
        """Returns whether a file is there."""
        try:
            once("s3", "HeadObject", lambda: self.client.head_object(**self._named(name)))
        except Missing:
            return False
        return True

    def write(self, name: str, content: IO[bytes]) -> None:
        """Writes a file."""
        once(
            "s3",
            "PutObject",
            lambda: self.client.put_object(**self._named(name), Body=content),
        )

    def _get(self, name: str) -> bytes:
        content: bytes = self.client.get_object(**self._named(name))["Body"].read()
        return content

    def _named(self, name: str) -> dict[str, str]:
        return {"Bucket": self.bucket, "Key": f"{self.prefix}{name}"}
