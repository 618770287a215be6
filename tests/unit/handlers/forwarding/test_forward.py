"""Events forwarded to a service that verifies them with a library of its own."""

from urllib.parse import unquote

import pytest
from standardwebhooks import Webhook

from webhook_inbox import Router, forward
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.testing import Fake, Inbox
from webhook_inbox.testing.samples import SIGNING


class Bench:
    """A router that forwards everything to one service."""

    def __init__(self, fake: Fake, path: str = "/hooks") -> None:
        router = Router("acme")
        router.on("*", name="acme.forward")(forward("billing", path))
        self.billing = fake
        self.inbox = Inbox(router, destinations={"billing": fake})

    def run(self, body: bytes, **options: str) -> object:
        given = {"event_type": "order.paid", **options}
        return self.inbox.run("acme.forward", body, **given)  # type: ignore[arg-type]


def test_the_body_is_forwarded_as_it_came() -> None:
    bench = Bench(Fake())
    body = b'{"n":1.10,  "n":2}\r\n\xff'

    run = bench.inbox.run(
        "acme.forward",
        body,
        event_type="order.paid",
        event_id="o-1",
        headers={"content-type": "application/json; charset=latin-1"},
    )

    assert run.status == "done"
    [sent] = bench.billing.requests
    assert (sent.method, sent.path, sent.body) == ("POST", "/hooks", body)
    told = {name: sent.headers[name] for name in sent.headers if name.startswith("inbox-")}
    received = told.pop("inbox-received-at")
    assert received.endswith("Z")
    assert told == {
        "inbox-source": "acme",
        "inbox-event-id": "o-1",
        "inbox-event-type": "order.paid",
        "inbox-attempt": "1",
    }
    assert sent.headers["content-type"] == "application/json; charset=latin-1"
    assert sent.key == run.effects["forward"].key == "forward:acme.forward:acme:o-1"


def test_it_is_signed_so_that_a_standard_library_verifies_it() -> None:
    bench = Bench(Fake(sign="billing-signing"))
    # The library judges the time by the clock of this machine, which the inbox begins with.
    bench.run(b'{"n": 1}')
    [sent] = bench.billing.requests
    assert Webhook(SIGNING).verify(sent.body, dict(sent.headers)) == {"n": 1}
    assert unquote(sent.headers["webhook-id"]) == sent.key


def test_a_repetition_has_the_same_id_and_another_attempt() -> None:
    bench = Bench(Fake(sign="billing-signing").answers(500, done=True))
    run = bench.inbox.run("acme.forward", b"{}", event_type="order.paid").settle()
    first, second = bench.billing.requests
    assert run.status == "done"
    assert (first.key, first.headers["webhook-id"]) == (second.key, second.headers["webhook-id"])
    assert [r.headers["inbox-attempt"] for r in (first, second)] == ["1", "2"]
    assert len(bench.billing.done) == 1


def test_what_a_header_cannot_hold_is_quoted() -> None:
    bench = Bench(Fake())
    bench.run(b"", event_type="naïve café", event_id="日")
    [sent] = bench.billing.requests
    assert sent.headers["inbox-event-type"] == "na%C3%AFve caf%C3%A9"
    assert sent.headers["inbox-event-id"] == "%E6%97%A5"


@pytest.mark.parametrize(
    ("status", "becomes"), [(422, "dead_letter"), (404, "dead_letter"), (503, "failed")]
)
def test_the_services_answer_decides(status: int, becomes: str) -> None:
    bench = Bench(Fake().answers(status))
    assert bench.inbox.run("acme.forward", b"{}", event_type="x").status == becomes


def test_a_service_without_keys_is_not_asked_twice() -> None:
    bench = Bench(Fake(idempotency=False).stalls())
    run = bench.inbox.run("acme.forward", b"{}", event_type="x").settle()
    assert (run.status, len(bench.billing.requests)) == ("held", 1)


def test_a_service_that_wants_its_key_in_the_body_cannot_be_forwarded_to() -> None:
    bench = Bench(Fake(idempotency={"field": "dedup_key"}))
    run = bench.inbox.run("acme.forward", b"{}", event_type="x")
    assert (run.status, bench.billing.requests) == ("dead_letter", [])
    assert 'set idempotency = { header = "Idempotency-Key" }' in run.error


def test_without_a_path_it_goes_to_the_base_url() -> None:
    bench = Bench(Fake(), path="")
    bench.run(b"{}")
    assert bench.billing.requests[0].path == "/"


def test_its_destination_is_looked_up_before_a_run_is_begun() -> None:
    bench = Bench(Fake(breaker={"failures": 1}).answers(500))
    bench.run(b"1")
    second = bench.inbox.run("acme.forward", b"2", event_type="x")
    assert (second.status, second.attempts) == ("deferred", 0)


def test_a_ready_made_handler_needs_a_name() -> None:
    router = Router("acme")
    with pytest.raises(ConfigurationError, match=r"forward\('billing'\) has no name of its own"):
        router.on("*")(forward("billing"))
    with pytest.raises(ConfigurationError, match=r'on\(…, name="acme.forward"\)'):
        router.on("*")(forward("billing"))


def test_two_of_them_are_two_handlers() -> None:
    router = Router("acme")
    for name in ("billing", "stock"):
        router.on("*", name=f"acme.{name}", destinations=["audit"])(forward(name))
    assert [(spec.name, spec.destinations) for spec in router.handlers] == [
        ("acme.billing", ("audit", "billing")),
        ("acme.stock", ("audit", "stock")),
    ]


def test_it_belongs_to_the_module_that_registers_it() -> None:
    router = Router("acme")
    router.on("*", name="acme.x")(forward("billing"))
    [spec] = router.handlers
    assert (spec.module, spec.function) == ("", "forward('billing')")
