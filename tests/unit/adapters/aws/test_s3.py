"""Keys of a bucket that come in several pages."""

from typing import Any

from webhook_inbox.adapters.aws.s3 import S3Blobs


class PagedClient:
    """A client that lists two keys in two pages."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []

    def list_objects_v2(self, **request: Any) -> dict[str, Any]:
        self.requests.append(request)
        if "ContinuationToken" in request:
            return {"IsTruncated": False, "Contents": [{"Key": "bodies/s/b/2"}]}
        return {
            "IsTruncated": True,
            "NextContinuationToken": "more",
            "Contents": [{"Key": "bodies/s/b/1"}],
        }


def test_every_page_is_read() -> None:
    client = PagedClient()

    keys = S3Blobs(client, "bucket").list_keys("bodies/s/b/")

    assert keys == ["bodies/s/b/1", "bodies/s/b/2"]
    first = {"Bucket": "bucket", "Prefix": "bodies/s/b/"}
    assert client.requests == [first, {**first, "ContinuationToken": "more"}]
