"""Large bodies in S3."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from webhook_inbox.adapters.aws import errors


class S3Blobs:
    """The port `Blobs` over one bucket.

    A reader needs s3:ListBucket and s3:GetObject: without s3:ListBucket, S3 answers "access
    denied" for a missing object, which counts as a failure of the service. Ingest's own client
    cannot list.
    """

    def __init__(self, client: Any, bucket: str, *, call: errors.Caller = errors.once) -> None:
        self._client = client
        self._bucket = bucket
        self._call = call

    def put(self, key: str, data: bytes) -> None:
        """See the port."""
        self._call(
            "s3",
            "PutObject",
            lambda: self._client.put_object(Bucket=self._bucket, Key=key, Body=data),
        )

    def get(self, key: str) -> bytes | None:
        """See the port."""

        def attempt() -> bytes:
            answer = self._client.get_object(Bucket=self._bucket, Key=key)
            # Reading is part of the attempt, since a slow connection fails here.
            data: bytes = answer["Body"].read()
            return data

        try:
            return self._call("s3", "GetObject", attempt)
        except errors.Missing:
            return None

    def delete(self, key: str) -> None:
        """See the port."""
        self._call(
            "s3", "DeleteObject", lambda: self._client.delete_object(Bucket=self._bucket, Key=key)
        )

    def list_keys(self, prefix: str) -> Sequence[str]:
        """See the port; at most 1,000 keys a call."""
        keys: list[str] = []
        more: dict[str, str] = {}
        while True:
            page = self._call(
                "s3",
                "ListObjectsV2",
                partial(self._client.list_objects_v2, Bucket=self._bucket, Prefix=prefix, **more),
            )
            keys += [found["Key"] for found in page.get("Contents", ())]
            if not page["IsTruncated"]:
                return keys
            more = {"ContinuationToken": page["NextContinuationToken"]}
