"""Status URLs: for callers of one's own; the holder reads the status of one event and no more."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import replace
from datetime import timedelta
from urllib.parse import urlsplit

import pytest

from tests.unit.support.world import ACME, World, with_source
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.errors import Permanent, Unavailable
from webhook_inbox.domain.secrets import TOKEN_KEY, SecretCache
from webhook_inbox.ingest.event_status import EventStatuses
from webhook_inbox.ledger.schema import EVENT_LIFE

HOST = {"host": "abc123.execute-api.eu-west-1.amazonaws.com"}


def asking(world: World) -> EventStatuses:
    return EventStatuses(world.table, SecretCache(store=world.vault, clock=world.clock))


@pytest.fixture
def world() -> World:
    made = World(with_source(replace(ACME, callers=True)))
    made.vault.rotate(TOKEN_KEY, "a-key-of-this-stack")
    return made


def url_of(world: World, event_id: str = "evt-1", **parts: object) -> str:
    return world.deliver(event_id, headers={**HOST, **parts}).status_url  # type: ignore[dict-item]


def token_of(world: World, event_id: str = "evt-1") -> str:
    return url_of(world, event_id).rpartition("/")[2]


def test_a_caller_gets_a_url_of_the_host_that_it_called(world: World) -> None:
    url = urlsplit(url_of(world))
    assert (url.scheme, url.netloc) == ("https", HOST["host"])
    assert url.path.startswith("/status/")
    assert url_of(world, host="127.0.0.1:8787").startswith("http://127.0.0.1:8787/status/")


def test_a_provider_gets_none() -> None:
    world = World()
    world.vault.rotate(TOKEN_KEY, "a-key-of-this-stack")
    assert url_of(world) == ""


@pytest.mark.parametrize("host", ["", "evil/path", "a@b", "a\r\nb", "a b", "x" * 300, "[::1]"])
def test_an_odd_host_makes_no_url_and_the_event_is_accepted(world: World, host: str) -> None:
    receipt = world.deliver(headers={"host": host})
    assert (receipt.status, receipt.status_url) == (202, "")


def test_the_status_follows_the_event_and_has_nothing_else(world: World) -> None:
    token = token_of(world)
    received = world.now
    told = {"status": "accepted", "received_at": "2026-01-01T00:00:00.000Z"}
    assert asking(world).read(token, world.now) == told

    world.clock.advance(seconds=2)
    world.run_until_quiet()
    done = asking(world).read(token, world.now)
    assert done == {**told, "status": "done", "done_at": "2026-01-01T00:00:02.001Z"}
    assert received.isoformat().startswith("2026-01-01T00:00:00")


def test_a_dead_event_says_so_without_its_error(world: World) -> None:
    world.script("acme.fulfil", Permanent("the customer does not exist"))
    token = token_of(world)
    world.run_until_quiet()
    assert asking(world).read(token, world.now) == {
        "status": "dead_letter",
        "received_at": "2026-01-01T00:00:00.000Z",
    }


def test_a_repeated_delivery_gets_a_url_of_the_same_event(world: World) -> None:
    first = token_of(world)
    world.clock.advance(seconds=5)
    again = token_of(world)
    assert asking(world).read(again, world.now) == asking(world).read(first, world.now)


def test_a_conflict_and_a_rejected_delivery_get_none(world: World) -> None:
    url_of(world)
    assert world.deliver(body=b'{"other": 1}', headers=HOST).status_url == ""
    assert world.deliver("evt-2", secret="a-guess", headers=HOST).status_url == ""


def test_a_token_costs_nothing_more_once_the_key_is_cached(world: World) -> None:
    url_of(world)
    world.plan.calls.clear()
    url_of(world, "evt-2")
    assert world.plan.operations() == ["PutItem", "SendMessageBatch"]


def test_a_status_costs_one_read_and_one_query_and_writes_nothing(world: World) -> None:
    token = token_of(world)
    world.plan.calls.clear()
    assert asking(world).read(token, world.now)
    assert world.plan.operations() == ["GetSecretValue", "GetItem", "Query"]


@pytest.mark.parametrize("broken", ["no value", "outage"])
def test_without_the_key_the_event_is_accepted_without_a_url(world: World, broken: str) -> None:
    if broken == "no value":
        world.vault.remove(TOKEN_KEY)
    else:
        world.deliver("evt-0", headers={})
        world.plan.fail("GetSecretValue", Fault.BEFORE)
    receipt = world.deliver(headers=HOST)
    assert (receipt.status, receipt.status_url) == (202, "")


def forged(token: str, twist: str) -> str:
    subject, _, proof = token.partition(".")
    text = urlsafe_b64decode(subject + "=" * (-len(subject) % 4)).decode()
    source, until, event_id = text.split("#", 2)
    changed = {
        "other event": f"{source}#{until}#evt-2",
        "other source": f"github#{until}#{event_id}",
        "longer": f"{source}#{int(until) + 10}#{event_id}",
    }
    if twist in changed:
        return f"{urlsafe_b64encode(changed[twist].encode()).decode().rstrip('=')}.{proof}"
    return {
        "last digit": token[:-1] + ("A" if token[-1] != "A" else "B"),
        "unused bits": token[:-1] + chr(ord(token[-1]) + 1),
        "padding": token + "=",
        "half": subject,
        "no subject": f".{proof}",
        "swapped": f"{proof}.{subject}",
        "newline": token + "\n",
        "empty": "",
        "long": "A" * 100_000 + "." + proof,
        "unicode": token.replace(token[0], "é", 1),
        "path": "../completions/x",
    }[twist]


@pytest.mark.parametrize(
    "twist",
    [
        "other event", "other source", "longer", "last digit", "unused bits", "padding", "half",
        "no subject", "swapped", "newline", "empty", "long", "unicode", "path",
    ],
)  # fmt: skip
def test_a_changed_token_is_of_no_event_and_reads_no_row(world: World, twist: str) -> None:
    world.deliver("evt-2", headers=HOST)
    token = token_of(world)
    world.plan.calls.clear()
    assert asking(world).read(forged(token, twist), world.now) is None
    assert set(world.plan.operations()) <= {"GetSecretValue"}


def test_a_token_of_another_stage_or_key_is_of_no_event(world: World) -> None:
    token = token_of(world)
    world.vault.remove(TOKEN_KEY)
    world.vault.rotate(TOKEN_KEY, "a-key-of-another-stack")
    assert asking(world).read(token, world.now) is None
    world.vault.remove(TOKEN_KEY)
    assert asking(world).read(token, world.now) is None


def test_a_token_is_of_its_event_until_the_second_rotation_of_the_key(world: World) -> None:
    token = token_of(world)
    world.vault.rotate(TOKEN_KEY, "the-next-key")
    assert asking(world).read(token, world.now)
    world.vault.rotate(TOKEN_KEY, "the-key-after-that")
    assert asking(world).read(token, world.now) is None


def test_a_genuine_token_takes_one_read_of_the_key(world: World) -> None:
    token = token_of(world)
    world.plan.calls.clear()
    assert asking(world).read(token, world.now)
    assert world.plan.operations().count("GetSecretValue") == 1


def test_a_token_ends_with_its_event(world: World) -> None:
    token = token_of(world)
    assert asking(world).read(token, world.now + EVENT_LIFE - timedelta(seconds=2))
    world.clock.advance(seconds=EVENT_LIFE.total_seconds())
    # The id is used again; the old URL does not show the new event.
    url_of(world)
    assert asking(world).read(token, world.now) is None


def test_an_outage_is_told_apart_from_a_wrong_token(world: World) -> None:
    token = token_of(world)
    world.plan.fail("Query", Fault.BEFORE)
    with pytest.raises(Unavailable):
        asking(world).read(token, world.now)
