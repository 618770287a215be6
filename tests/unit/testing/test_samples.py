"""Every sample file is a delivery of its provider's, with any signer."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.unit.testing.shop import shop
from webhook_inbox import providers
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import HandlerSpec, Manifest, SourceSpec
from webhook_inbox.ingest import events
from webhook_inbox.testing import Fake, Inbox, KitError
from webhook_inbox.testing.samples import Draft, delivery, draft, trusting

EVENTS = Path(__file__).parents[3] / "events" / "ingest"
NOW = datetime(2026, 11, 21, tzinfo=UTC)
# The samples that are no events, with their meaning to the inbox.
NO_EVENTS = ("challenge", "validation", "handshake", "verification")


def samples() -> list[Path]:
    found = []
    for path in sorted(EVENTS.glob("*/*.json")):
        try:
            providers.load(SourceSpec(path.parent.name, path.parent.name, "s"))
        except ConfigurationError:
            continue  # one that only inbox.toml declares
        if not any(word in path.stem for word in NO_EVENTS):
            found.append(path)
    return found


@pytest.mark.parametrize("path", samples(), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_sample_is_named_as_its_provider_names_it(path: Path) -> None:
    name = path.parent.name
    source, spec = SourceSpec(name, name, "s"), HandlerSpec("h", "m", "f", name, ("*",))
    manifest = Manifest(sources={name: source}, handlers={"h": spec})
    made = draft(path, spec, type_=None, event_id="", near=None)

    sent = delivery(made, source, {}, fresh="fresh-1", now=NOW)

    provider = trusting("")(source)
    named = events.event_of(
        sent, provider, provider.verify(sent, ()), manifest=manifest, spec=source
    )
    assert named.event is not None
    assert named.event.event_id
    assert named.event.runs in {("h",), ("split",)}


def test_there_are_many_samples() -> None:
    assert len(samples()) > 70


@pytest.mark.parametrize("provider_name", ["adyen", "linear", "pusher"])
def test_what_no_provider_could_send_is_refused(provider_name: str) -> None:
    source = SourceSpec(provider_name, provider_name, "s")
    with pytest.raises(KitError, match=f"{provider_name} cannot send such an event: "):
        delivery(Draft(b"not JSON", "x", ""), source, {}, fresh="f", now=NOW)


def inbox() -> Inbox:
    return Inbox(shop, destinations={"crm": Fake(), "old": Fake()})


@pytest.mark.parametrize("given", [b'{"sku": "tea"}', {"sku": "tea"}])
def test_an_event_is_bytes_or_data(given: bytes | dict[str, str]) -> None:
    world = inbox()
    run = world.run("shop.fulfil", given)
    assert world.destinations["crm"].requests[0].json == {"sku": "tea"}
    assert run.event_id == "evt-1"


def test_an_event_is_a_file_whose_name_says_its_type(tmp_path: Path) -> None:
    file = tmp_path / "paid__cups.json"
    file.write_bytes(b'{"sku": "cups"}')
    world = inbox()
    assert world.run("shop.fulfil", file).status == "done"
    assert world.run("shop.fulfil", str(file)).event_id == "evt-2"


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(KitError, match=r"nowhere\.json: no such file, here or above the handlers"):
        inbox().run("shop.fulfil", "events/nowhere.json")


def test_a_type_that_nothing_says_is_the_handlers_own() -> None:
    assert inbox().run("shop.fulfil", []).row.type == "paid"


@pytest.mark.parametrize("body", [{"type": "lost"}, []])
def test_a_type_may_be_given(body: object) -> None:
    run = inbox().run("shop.fulfil", body, event_type="paid", event_id="evt-7")  # type: ignore[arg-type]
    assert (run.row.type, run.event_id) == ("paid", "evt-7")
