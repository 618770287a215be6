"""Large bodies."""

import pytest

from tests.contract.backends import aws_differs
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Blobs


def test_a_body_of_five_megabytes_comes_back_whole(blobs: Blobs) -> None:
    data = bytes(range(256)) * 4 * 1024 * 5

    blobs.put("bodies/s/abc", data)

    assert blobs.get("bodies/s/abc") == data


def test_an_empty_body_is_not_an_absent_one(blobs: Blobs) -> None:
    blobs.put("bodies/s/empty", b"")

    assert blobs.get("bodies/s/empty") == b""
    assert blobs.get("bodies/s/none") is None


def test_the_last_put_counts(blobs: Blobs) -> None:
    blobs.put("k", b"first")
    blobs.put("k", b"second")

    assert blobs.get("k") == b"second"


def test_a_key_may_hold_any_text(blobs: Blobs) -> None:
    key = "bodies/ünï code+plus%2Fpercent/☃"

    blobs.put(key, b"x")

    assert blobs.get(key) == b"x"


def test_a_key_may_be_1024_bytes_long(blobs: Blobs) -> None:
    key = "é" * 512

    blobs.put(key, b"x")

    assert blobs.get(key) == b"x"


@pytest.mark.parametrize("key", ["x" * 1025, "é" * 513], ids=["ASCII", "UTF-8"])
@aws_differs(
    "https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html",
    moto="takes it",
    ministack="takes it",
)
def test_a_longer_key_is_refused(blobs: Blobs, key: str) -> None:
    with pytest.raises(Unavailable, match="KeyTooLong"):
        blobs.put(key, b"x")
    with pytest.raises(Unavailable, match="KeyTooLong"):
        blobs.get(key)


def test_an_empty_key_is_refused(blobs: Blobs) -> None:
    with pytest.raises(Unavailable):
        blobs.put("", b"x")


def test_a_deleted_body_is_absent_and_may_be_deleted_again(blobs: Blobs) -> None:
    blobs.put("bodies/s/gone", b"personal")

    blobs.delete("bodies/s/gone")
    blobs.delete("bodies/s/gone")

    assert blobs.get("bodies/s/gone") is None


def test_keys_are_listed_by_their_prefix(blobs: Blobs) -> None:
    for key in ("bodies/s/b/2", "bodies/s/b/1", "bodies/s/bc/1", "bodies/s/a+ü/1"):
        blobs.put(key, b"x")

    assert blobs.list_keys("bodies/s/b/") == ["bodies/s/b/1", "bodies/s/b/2"]
    assert blobs.list_keys("bodies/s/a+ü/") == ["bodies/s/a+ü/1"]
    assert blobs.list_keys("bodies/s/none/") == []


def test_a_deleted_key_is_no_longer_listed(blobs: Blobs) -> None:
    blobs.put("bodies/s/b/1", b"x")
    blobs.delete("bodies/s/b/1")

    assert blobs.list_keys("bodies/s/b/") == []
