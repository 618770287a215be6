"""Bodies arrive whole, lie where they are cheap, and are what was accepted."""

import json
import zlib
from hashlib import sha256
from pathlib import Path

import pytest

from tests.unit.support.world import World
from webhook_inbox.adapters.memory import Fault, MemoryBlobs
from webhook_inbox.domain.errors import Permanent, Unavailable
from webhook_inbox.domain.model import Status
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.ledger import payloads
from webhook_inbox.ledger.vocabulary import WORDS

MIB = 1024 * 1024
EVENTS = Path(__file__).resolve().parents[3] / "events" / "ingest"
SAMPLES = sorted(path for path in EVENTS.glob("*/*.json") if path.stat().st_size >= 256)


def noise(size: int, seed: bytes = b"") -> bytes:
    """Returns bytes that no compression shortens."""
    blocks = (sha256(seed + number.to_bytes(8, "big")).digest() for number in range(size // 32 + 1))
    return b"".join(blocks)[:size]


def json_of(size: int) -> bytes:
    return json.dumps({"id": "evt-1", "text": noise(size // 2).hex()}).encode()


def stored(body: bytes) -> tuple[bytes, MemoryBlobs]:
    """Packs and unpacks a body through a bucket."""
    blobs = MemoryBlobs()
    packed = payloads.pack(body, prefix="bodies/acme/")
    return payloads.unpack(packed.store(blobs), blobs), blobs


# -- through the whole inbox


@pytest.mark.parametrize("body", [json_of(4 * MIB), noise(4 * MIB)], ids=["json", "binary"])
def test_four_megabytes_arrive_whole(world: World, body: bytes) -> None:
    seen: list[bytes] = []
    world.behaviours["acme.fulfil"] = lambda event, ctx: seen.append(event.body)
    assert world.deliver(body=body).outcome is IngestOutcome.ACCEPTED
    world.work()
    assert seen == [body]
    assert world.run().status is Status.DONE


def test_a_large_body_lies_under_a_key_that_ends_in_its_hash(world: World) -> None:
    body = noise(20_000)
    world.deliver(body=body)
    (key,) = world.blobs.objects
    event = sha256(b"evt-1").hexdigest()[:32]
    received = "1767225600000"
    assert key == f"bodies/acme/{event}/{received}-{sha256(body).hexdigest()}"
    row = world.event_row()
    assert row is not None
    assert "body" not in row


def test_a_duplicate_of_a_large_event_uploads_nothing(world: World) -> None:
    world.deliver(body=noise(20_000))
    world.plan.operations()
    assert world.deliver(body=noise(20_000)).outcome is IngestOutcome.DUPLICATE
    assert "PutObject" not in world.plan.operations()


def test_other_large_content_under_a_known_id_is_a_conflict(world: World) -> None:
    world.deliver(body=noise(20_000))
    assert world.deliver(body=noise(20_000, b"other")).outcome is IngestOutcome.CONFLICT
    assert len(world.blobs.objects) == 2


def test_a_large_body_of_an_expired_event_is_stored_again(world: World) -> None:
    world.deliver(body=noise(20_000))
    world.blobs.objects.clear()
    world.clock.advance(days=36)
    assert world.deliver(body=noise(20_000)).outcome is IngestOutcome.ACCEPTED
    assert len(world.blobs.objects) == 1


def test_an_object_that_was_tampered_with_is_refused_and_the_run_is_dead(world: World) -> None:
    world.deliver(body=noise(20_000))
    (key,) = world.blobs.objects
    world.blobs.objects[key] = noise(20_000, b"tampered")
    world.work()
    assert world.handled == []
    assert world.run().status is Status.DEAD_LETTER
    assert "not what was accepted" in world.run().last_error


def test_an_object_that_is_gone_is_a_permanent_failure(world: World) -> None:
    world.deliver(body=noise(20_000))
    world.blobs.objects.clear()
    world.work()
    assert world.run().status is Status.DEAD_LETTER
    assert "is gone" in world.run().last_error


@pytest.mark.parametrize("fault", list(Fault))
def test_a_bucket_that_is_down_costs_no_attempt(world: World, fault: Fault) -> None:
    world.deliver(body=noise(20_000))
    world.plan.fail("GetObject", fault)
    world.work()
    run = world.run()
    assert (run.status, run.attempt_count) == (Status.DEFERRED, 0)
    assert "cannot be read" in run.last_error
    world.run_until_quiet()
    assert world.run().status is Status.DONE
    assert world.run().attempt_count == 1


# -- packing


@pytest.mark.parametrize(
    "body",
    [b"", b"x", b"{}" * 200, b"a" * 423, b"a" * 425, noise(8192), noise(8193), json_of(30_000)],
    ids=lambda body: f"{len(body)} bytes",
)
def test_a_body_is_unpacked_as_it_was_packed(body: bytes) -> None:
    assert stored(body)[0] == body


@pytest.mark.parametrize(
    ("size", "encoding"), [(255, "raw"), (256, "words1"), (32_768, "words1"), (32_769, "raw")]
)
def test_the_size_of_a_body_decides_how_it_is_compressed(size: int, encoding: str) -> None:
    packed = payloads.pack(b"a" * size, prefix="bodies/acme/")
    assert packed.attributes["body_encoding"] == encoding
    blobs = MemoryBlobs()
    blobs.objects[packed.blob_key] = packed.blob
    assert payloads.unpack(packed.attributes, blobs) == b"a" * size


def test_the_dictionary_never_changes() -> None:
    # Rows that were written with it would become unreadable: other words are another encoding.
    digest = "954902062d2dc974b9494547c87ac26e4973c39aabc2a1977c6b8601f86e7023"
    assert sha256(WORDS).hexdigest() == digest
    assert len(WORDS) <= 32 * 1024


def test_a_body_is_read_that_was_compressed_without_the_dictionary() -> None:
    item = {"body": zlib.compress(b"a" * 5000), "body_encoding": "zlib"}
    assert payloads.unpack(item, MemoryBlobs()) == b"a" * 5000


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_dictionary_makes_every_sample_smaller(sample: Path) -> None:
    body = sample.read_bytes()
    packed = payloads.pack(body, prefix="bodies/acme/").attributes["body"]
    assert len(packed) < len(zlib.compress(body, 6))


def test_a_body_that_compression_does_not_help_stays_as_it_is() -> None:
    assert payloads.pack(noise(3000), prefix="bodies/acme/").attributes["body_encoding"] == "raw"


def test_what_compresses_to_8_kib_stays_in_the_row() -> None:
    packed = payloads.pack(b"a" * 30_000, prefix="bodies/acme/")
    assert packed.blob_key == ""
    assert len(packed.attributes["body"]) <= payloads.INLINE_LIMIT


@pytest.mark.parametrize(("size", "encoding"), [(30_000, "words1"), (200_000, "raw")])
def test_only_the_smaller_objects_are_compressed(size: int, encoding: str) -> None:
    packed = payloads.pack(json_of(size), prefix="bodies/acme/")
    assert packed.blob_key.startswith("bodies/acme/")
    assert packed.attributes["body_encoding"] == encoding


def test_the_size_is_the_bodys_own() -> None:
    assert payloads.pack(b"a" * 5000, prefix="bodies/acme/").attributes["body_size"] == 5000


def test_equal_bodies_of_two_sources_lie_apart() -> None:
    assert payloads.event_prefix("a", "evt-1") != payloads.event_prefix("b", "evt-1")


def test_a_key_of_an_earlier_version_has_no_time() -> None:
    assert payloads.received_ms(f"{payloads.event_prefix('a', 'evt-1')}0123abcd") == 0


@pytest.mark.parametrize(
    "damage",
    [lambda data: data[:-10], lambda data: b"\x00" + data, lambda _: b"", lambda data: data[::-1]],
    ids=["cut", "shifted", "empty", "reversed"],
)
def test_a_damaged_object_is_a_permanent_failure(damage: object) -> None:
    body = json_of(200_000)
    packed = payloads.pack(body, prefix="bodies/acme/")
    blobs = MemoryBlobs()
    blobs.objects[packed.blob_key] = damage(packed.blob)  # type: ignore[operator]
    with pytest.raises(Permanent):
        payloads.unpack(packed.attributes, blobs)


def test_a_damaged_row_is_a_permanent_failure() -> None:
    for encoding in ("zlib", "words1"):
        item = {"body": b"not zlib", "body_encoding": encoding}
        with pytest.raises(Permanent, match="decompressed"):
            payloads.unpack(item, MemoryBlobs())


def test_a_row_that_is_cut_off_is_a_permanent_failure() -> None:
    item = payloads.pack(b"a" * 5000, prefix="bodies/acme/").attributes
    with pytest.raises(Permanent, match="cut off"):
        payloads.unpack({**item, "body": item["body"][:-5]}, MemoryBlobs())


def test_an_encoding_of_a_later_version_is_a_permanent_failure() -> None:
    item = payloads.pack(b"a" * 5000, prefix="bodies/acme/").attributes
    with pytest.raises(Permanent, match="words2"):
        payloads.unpack({**item, "body_encoding": "words2"}, MemoryBlobs())


def test_a_bucket_that_does_not_answer_is_unavailable() -> None:
    packed = payloads.pack(noise(20_000), prefix="bodies/acme/")
    with pytest.raises(Unavailable):
        payloads.unpack(packed.attributes, MemoryBlobs(faults=lambda *_: "before"))
