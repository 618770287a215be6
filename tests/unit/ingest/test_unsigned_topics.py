"""One body under several topics: each handled one runs, and no number of made-up ones does (G6).

Shopify and WooCommerce sign the body only. A checkout sends one body as `orders/create` and as
`orders/paid`; anyone who captured it can send it under any topic and id.
"""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.providers.cases import signed
from tests.unit.support.world import MANIFEST, World, handler
from webhook_inbox.domain.manifest import HandlerSpec, SourceSpec
from webhook_inbox.ingest.receipt import IngestOutcome, Receipt

HEADERS = {
    "shopify": ("x-shopify-event-id", "x-shopify-topic"),
    "woocommerce": ("x-wc-webhook-delivery-id", "x-wc-webhook-topic"),
}
CREATE, PAID = "orders/create", "orders/paid"
each_provider = pytest.mark.parametrize("name", sorted(HEADERS))


class Shop(World):
    """A source whose sample's body arrives under any id and topic."""

    def __init__(
        self, name: str, *handlers: tuple[str, ...], types: tuple[str, ...] = ("*",), **rule: Any
    ) -> None:
        self.case = signed(name)
        self.names = HEADERS[name]
        source = SourceSpec(name, name, name, types=types, **rule)
        listed: dict[str, HandlerSpec] = {
            f"h{n}": handler(f"h{n}", *types, source=name) for n, types in enumerate(handlers)
        }
        super().__init__(replace(MANIFEST, sources={name: source}, handlers=listed))
        self.vault.rotate(name, self.case.secrets[0])

    def arrives(self, event_id: str, topic: str) -> Receipt:
        """Delivers the body under an id and a topic."""
        id_name, topic_name = self.names
        headers = {**self.case.delivery.headers, id_name: event_id, topic_name: topic}
        sent = replace(self.case.delivery, source=self.case.provider_name, headers=headers)
        return self.ingest.receive(replace(sent, received_at=self.now))

    def ran(self) -> list[tuple[str, str]]:
        """Returns the (handler, event id) of each run, after all work."""
        self.run_until_quiet()
        return [(name, event_id) for name, event_id, _ in self.handled]


@each_provider
@pytest.mark.parametrize("pattern", ["*", "orders/*"])
def test_made_up_topics_start_no_further_event(name: str, pattern: str) -> None:
    shop = Shop(name, (pattern,))
    shop.arrives("genuine", CREATE)
    outcomes = {shop.arrives(f"e{n}", f"orders/t{n}").outcome for n in range(20)}
    assert outcomes == {IngestOutcome.HELD}
    assert shop.ran() == [("h0", "genuine")]


@each_provider
def test_nor_do_they_if_their_types_are_listed_by_the_source(name: str) -> None:
    shop = Shop(name, ("*",), types=("orders/*",))
    shop.arrives("genuine", CREATE)
    assert shop.arrives("forged", "orders/t").outcome is IngestOutcome.HELD


@each_provider
@pytest.mark.parametrize(
    ("handlers", "types"),
    [
        (((CREATE,), (PAID,)), ("*",)),
        (((CREATE, PAID),), ("*",)),
        ((("orders/*",), (PAID,)), ("*",)),
        ((("*",),), (CREATE, PAID)),
    ],
    ids=["two handlers", "a handler of two types", "one also of a wildcard", "types of the source"],
)
def test_one_body_under_two_topics_that_are_declared_runs_twice(
    name: str, handlers: tuple[tuple[str, ...], ...], types: tuple[str, ...]
) -> None:
    shop = Shop(name, *handlers, types=types)
    outcomes = [shop.arrives(topic, topic).outcome for topic in (CREATE, PAID)]
    assert outcomes == [IngestOutcome.ACCEPTED] * 2
    assert {event_id for _, event_id in shop.ran()} == {CREATE, PAID}


@each_provider
def test_and_each_of_them_once(name: str) -> None:
    shop = Shop(name, (CREATE,), (PAID,))
    for topic in (CREATE, PAID):
        shop.arrives(topic, topic)
        assert shop.arrives(f"forged {topic}", topic).outcome is IngestOutcome.HELD
    assert len(shop.ran()) == 2


@each_provider
def test_the_second_topic_of_a_wildcard_runs_where_the_source_says_so(name: str) -> None:
    shop = Shop(name, ("orders/*",), identical_body="run")
    outcomes = [shop.arrives(topic, topic).outcome for topic in (CREATE, PAID)]
    assert outcomes == [IngestOutcome.ACCEPTED] * 2
    assert len(shop.ran()) == 2


@each_provider
def test_a_topic_that_is_not_stored_keeps_no_other_out(name: str) -> None:
    shop = Shop(name, (PAID,), types=(PAID,))
    assert shop.arrives("1", CREATE).outcome is IngestOutcome.IGNORED
    assert shop.arrives("2", PAID).outcome is IngestOutcome.ACCEPTED
