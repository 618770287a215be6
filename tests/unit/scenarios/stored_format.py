"""One row and one message of every kind: the stored format, frozen as version 1.

`stored_format_v1.json` is what the scenario below stores. It is frozen at the first release.
BEFORE the first release, `python -m tests.unit.scenarios.stored_format` rewrites the file.
AFTER the first release the file must not be regenerated: tables and queues of that format exist,
and every later version reads them. If the format changes then, add a migration, freeze the new
format as `stored_format_v2.json`, and keep this file and its tests.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any, Final, NoReturn
from unittest.mock import patch

import httpx

from tests.unit.support.holding import deciding
from tests.unit.support.people import person
from tests.unit.support.world import ACME, GITHUB, World, handler
from webhook_inbox import Approval
from webhook_inbox.client.health.smoke.traces import Traces
from webhook_inbox.destinations.client.factory import HttpClients
from webhook_inbox.domain.errors import Permanent, Skipped, Transient
from webhook_inbox.domain.manifest import (
    BLOCK,
    SERIAL,
    ApproversSpec,
    BreakerSpec,
    DestinationSpec,
    HandlerSpec,
    Manifest,
    Order,
)
from webhook_inbox.domain.ports import Item, Outgoing
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.handlers.approvals.hold import ApprovalRequest
from webhook_inbox.handlers.approvals.request_row import RequestRow, Word
from webhook_inbox.handlers.approvals.requests import ApprovalRequests
from webhook_inbox.handlers.context import Context
from webhook_inbox.handlers.event import Event
from webhook_inbox.ingest import enrolment, ignored
from webhook_inbox.ledger.pauses import PauseRequest, Subject, pause, resume
from webhook_inbox.queue.message import RunMessage

FILE: Final = Path(__file__).with_name("stored_format_v1.json")
VERSION: Final = 1

FULFIL: Final = "acme.fulfil"
SHIP: Final = "acme.ship"
BILL: Final = "acme.bill"
RESULT: Final = {"charge": "ch_1"}
LONG_ID: Final = "evt-long-" + "x" * 512  # its key has its hash instead
OFFERED: Final = "b537207f20cbfa02357cf448134da559"


def _serial(name: str, type_: str, lane: str, *, on_dead: str = "continue") -> HandlerSpec:
    order = Order(SERIAL, "customer.id", on_dead=on_dead)
    return handler(name, type_, lane=lane, max_attempts=3, order=order)


_HANDLERS: Final = (
    handler(FULFIL, "paid", max_attempts=3),
    handler("acme.call", "call", destinations=("crm",)),
    handler("acme.bulk", "bulk", destinations=("erp",)),
    handler("acme.export", "export"),
    handler("acme.sync", "sync", order=Order("latest", "customer.id", "version")),
    handler("acme.count", "count", order=Order("sequence", "customer.id", "number")),
    _serial(BILL, "bill", "bill", on_dead=BLOCK),
    _serial(SHIP, "ship", "ship"),
    handler("github.announce", "issues*", source="github"),
)
MANIFEST: Final = Manifest(
    stage="test",
    version="1",
    sources={"acme": ACME, "github": replace(GITHUB, retention=86400.0 * 30)},
    handlers={spec.name: spec for spec in _HANDLERS},
    destinations={
        "crm": DestinationSpec(
            "crm", "https://crm.example", breaker=BreakerSpec(failures=1, recovery=3600)
        ),
        "erp": DestinationSpec("erp", "https://erp.example", rate=1 / 60),
        "cms": DestinationSpec("cms", "https://cms.example"),
    },
    approvers={
        "finance": ApproversSpec("finance", {"ann": "cms:/ann"}, 1.0, "board"),
        "board": ApproversSpec("board", {"bob": "cms:/bob"}),
    },
)

# The frozen messages: the last one that was sent for each of these runs.
MESSAGES: Final = {
    "standard, first": (FULFIL, "evt-fresh"),
    "standard, later generation": (FULFIL, "evt-pending"),
    "standard, delayed": (FULFIL, "evt-failed"),
    "FIFO, first": (SHIP, "ship-fresh"),
    "FIFO, later generation": (SHIP, "ship-pending"),
    "FIFO, apart": (BILL, "bill-pending"),
    "FIFO, without ordering key": (SHIP, "ship-keyless"),
}


class Killed(BaseException):
    """The worker process ended."""


def new_world(*, seed: int = 0) -> World:
    """Returns an empty inbox with the scenario's handlers."""
    return World(MANIFEST, seed=seed)


def body_of(event_id: str, **fields: Any) -> bytes:
    """Returns an event's body; `customer` sets the ordering key."""
    customer = fields.pop("customer", None)
    about = {} if customer is None else {"customer": {"id": customer}}
    return json.dumps({"id": event_id, **about, **fields}).encode()


def accept(world: World, event_id: str, type_: str = "paid", **fields: Any) -> None:
    """Delivers an event that has to be accepted."""
    receipt = world.deliver(event_id, type_=type_, body=body_of(event_id, **fields))
    assert receipt.status == 202, receipt


class Scenario:
    """Writes one row and sends one message of every kind.

    Attributes:
        world: the inbox.
        token: the completion token of the job that is still awaited.
        sent: (lane, message) in the order of sending.
    """

    def __init__(self) -> None:
        self.world = world = new_world()
        world.reconcile()
        self.token = ""
        self.sent: list[tuple[str, Outgoing]] = []
        for lane, queue in world.queues.items():
            queue.refuses = self._recording(lane)
        for spec in _HANDLERS:
            world.behaviours[spec.name] = self._handle
        self._fulfil()
        self._wait()
        self._order()
        self._call()
        self._reject()
        self._operate()
        self._send()
        self._ask()

    def frozen(self) -> dict[str, Any]:
        """Returns everything that is stored, as plain JSON."""
        rows = sorted(self.world.table.everything(), key=lambda row: (row["pk"], row["sk"]))
        return {
            "version": VERSION,
            "written_at": to_ms(self.world.now),
            "token": self.token,
            "rows": [_plain(row) for row in rows],
            "objects": _plain(self.world.blobs.objects),
            "messages": [self._last(kind, *run) for kind, run in MESSAGES.items()],
        }

    # -- what is stored

    def _fulfil(self) -> None:
        """Runs of every status, effects of every state, bodies of every encoding."""
        for event_id in ("evt-done", "evt-skipped", "evt-failed", "evt-dead", "evt-shared"):
            accept(self.world, event_id)
        for event_id in ("evt-held", "evt-approved", "evt-pending"):
            accept(self.world, event_id)
        accept(self.world, LONG_ID)
        accept(self.world, "evt-zlib", text="x" * 2000)
        accept(self.world, "evt-large", text=Random(0).randbytes(7400).hex())
        self.world.work()
        self._die("evt-processing")

    def _die(self, event_id: str) -> None:
        """Ends the worker while an effect is under way: neither it nor the run is settled."""
        accept(self.world, event_id)
        message = self.world.taken()
        self.world.plan.fail("UpdateItem", skip=2)  # after the lease and the start of the effect
        self.world.process(message)
        self.world.plan.heal()
        self.world.queues["default"].delete(message.receipt)

    def _wait(self) -> None:
        """A job that has ended, and one that is awaited."""
        accept(self.world, "evt-rendered")
        self.world.work()
        ended = self.world.completions.by_token(self.token, b'{"result": {"pages": 3}}')
        assert ended.outcome == "recorded", ended
        self.world.work()
        accept(self.world, "evt-waiting")
        self.world.work()

    def _order(self) -> None:
        """States, a waiter and blocked ordering keys."""
        world = self.world
        accept(world, "sync-1", "sync", customer="cus_1", version=5)
        accept(world, "count-1", "count", customer="cus_1", number=1)
        world.work()
        accept(world, "count-3", "count", customer="cus_1", number=3)
        accept(world, "bill-dead", "bill", customer="cus_1")
        accept(world, "bill-next", "bill", customer="cus_1")
        accept(world, "bill-pending", "bill", customer="cus_2")
        accept(world, "ship-pending", "ship", customer="cus_2")
        world.work()

    def _call(self) -> None:
        """An open circuit, a used rate, a pause after a 429, and runs that wait for them."""
        for event_id, type_ in (("call-1", "call"), ("bulk-1", "bulk"), ("evt-limited", "paid")):
            accept(self.world, event_id, type_)
            self.world.work()
        accept(self.world, "call-2", "call")
        accept(self.world, "bulk-2", "bulk")
        self.world.work()

    def _operate(self) -> None:
        """A paused handler, a paused and a resumed tenant, and enrolments."""
        world, until = self.world, self.world.now + timedelta(minutes=15)
        request = PauseRequest("acme.export", person("ops"), "the target is down", world.now)
        assert pause(world.table, world.randomness, request) is None
        for tenant in ("acct_7", "acct_8"):
            flood = PauseRequest(tenant, person("ops"), "a flood", world.now, Subject.TENANT)
            assert pause(world.table, world.randomness, flood) is None
        assert resume(world.table, world.randomness, flood)
        accept(world, "export-1", "export")
        world.work()
        for source in ("asana", "taken"):
            enrolment.begin(world.table, source, by="ops", now=world.now, until=until)
        offer(world, "taken")

    def _reject(self) -> None:
        """A conflict, a guarded body and its copy, a rejected delivery, and counts."""
        world = self.world
        conflict = world.deliver("evt-done", body=body_of("evt-done", changed=True))
        assert conflict.outcome == "conflict", conflict
        assert world.deliver("gh-1", source="github").status == 202
        world.work()
        assert world.deliver("gh-copy", source="github").outcome == "held"
        assert world.deliver("evt-forged", secret="another-secret").outcome == "rejected"
        assert world.deliver("gh-star", source="github", type_="star").outcome == "ignored"
        with patch.object(ignored, "TYPES", 1):
            assert world.deliver("gh-fork", source="github", type_="fork").outcome == "ignored"

    def _send(self) -> None:
        """Runs whose messages stay in the queues, and the audit of what operators did."""
        world = self.world
        for handler_name, event_id in (
            (FULFIL, "evt-pending"),
            (BILL, "bill-pending"),
            (SHIP, "ship-pending"),
        ):
            world.replay(
                event_ids=[event_id], handler=handler_name, reason="fixed", requested_by="ops"
            )
        approved = ApprovalRequest(world.run("evt-approved"))
        deciding(world).approve(approved, by=person("ops"), reason="checked")
        accept(world, "evt-fresh")
        accept(world, "ship-fresh", "ship", customer="cus_9")
        accept(world, "ship-keyless", "ship")
        Traces(world.table, world.clock).begin("smoke-1")
        world.replay(status=["dead_letter"], dry_run=True, fix=True, requested_by="ops")

    def _ask(self) -> None:
        """A request that one of two people has approved, escalated, and not announced to both."""
        world = self.world
        world.processor = world.new_processor(clients=_chat, api_url="https://inbox.example")
        accept(world, "evt-asked")
        self._work_on("evt-asked")
        requests = ApprovalRequests(MANIFEST, world.ports)
        [row] = world.table.query("event#acme#evt-asked", sk_prefix="approval#")
        said = requests.decide(RequestRow(row).address, "ann", Word.APPROVE, "checked")
        assert said == "recorded", said
        world.clock.advance(seconds=2)
        world.replay(event_ids=["evt-asked"], requested_by="ops")
        self._work_on("evt-asked")

    def _work_on(self, event_id: str) -> None:
        """Processes the message of one event; those of others stay in the queue."""
        message = self.world.taken()
        while RunMessage.decode(message.body).event_id != event_id:
            message = self.world.taken()
        result = self.world.process(message)
        assert not result.keeps_message, result
        self.world.queues["default"].delete(message.receipt)

    # -- what handlers do

    def _handle(self, event: Event, ctx: Context) -> None:
        act: dict[str, Callable[[Context], Any]] = {
            "evt-done": lambda ctx: ctx.effect("charge", lambda key: RESULT),
            "evt-skipped": lambda _: _raise(Skipped("nothing to do")),
            "evt-failed": lambda ctx: ctx.effect("charge", _refused, args={"amount": 42}),
            "evt-dead": lambda _: _raise(Permanent("no such order")),
            "evt-shared": lambda ctx: ctx.effect("transfer", lambda key: RESULT, key="pay-7"),
            "evt-held": lambda ctx: ctx.effect("refund", lambda key: RESULT, approve=True),
            "evt-asked": lambda ctx: ctx.effect(
                "refund", lambda key: RESULT, args={"amount": 42}, approve=Approval("finance", 2)
            ),
            "evt-approved": lambda ctx: ctx.hold("a large amount", shows="42 EUR"),
            "evt-pending": lambda _: _raise(Permanent("no such order")),
            "evt-processing": lambda ctx: ctx.effect("charge", lambda key: _raise(Killed())),
            "evt-rendered": self._render,
            "evt-waiting": self._render,
            "evt-limited": lambda ctx: self._http(ctx, "cms").get("/"),
            "call-1": lambda ctx: self._http(ctx, "crm").post("/notes", json={"a": 1}),
            "bulk-1": lambda ctx: self._http(ctx, "erp").get("/"),
            "bill-dead": lambda _: _raise(Permanent("no such bill")),
            "bill-pending": lambda _: _raise(Permanent("no such bill")),
            "ship-pending": lambda _: _raise(Permanent("no such order")),
        }
        if event.id in act:
            act[event.id](ctx)

    def _render(self, ctx: Context) -> None:
        def start(_: object, token: object) -> dict[str, str]:
            self.token = str(token)
            return {"job": "job-1"}

        ctx.wait_for("render", start, timeout="2h")

    def _http(self, ctx: Context, destination: str) -> Any:
        status = {"crm": 500, "erp": 200, "cms": 429}[destination]
        answer = httpx.MockTransport(
            lambda _: httpx.Response(status, headers={"Retry-After": "600"})
        )
        clients = HttpClients(clock=self.world.clock, transport=answer)
        return replace(ctx, clients=clients).http(destination)

    # -- messages

    def _recording(self, lane: str) -> Callable[[Outgoing], bool]:
        def record(message: Outgoing) -> bool:
            self.sent.append((lane, message))
            return False

        return record

    def _last(self, kind: str, handler_name: str, event_id: str) -> dict[str, Any]:
        run = {"handler": handler_name, "event_id": event_id}
        return next(
            {"kind": kind, "lane": lane, **asdict(message)}
            for lane, message in reversed(self.sent)
            if run.items() <= json.loads(message.body).items()
        )


def offer(world: World, source: str, secret: str = OFFERED) -> None:
    """Lets a provider offer a secret while an enrolment is open."""
    enrolment.take(
        world.table, world.vault, source=source, secret=source, offered=secret, now=world.now
    )


def _raise(error: BaseException) -> NoReturn:
    raise error


class _Chat:
    """Takes the messages to all people but bob."""

    def post(self, path: str, **_: Any) -> None:
        if path == "/bob":
            raise Transient("503")


def _chat(*_: object) -> _Chat:
    return _Chat()


def _refused(_: object) -> NoReturn:
    raise Transient("429", refused=True, retry_after=300)


# -- the file


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"base64": b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _stored(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"base64"}:
            return b64decode(value["base64"])
        return {name: _stored(each) for name, each in value.items()}
    return [_stored(each) for each in value] if isinstance(value, list) else value


def read(data: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the frozen content with bytes instead of base64."""
    return {name: _stored(value) for name, value in data.items()}


def load() -> dict[str, Any]:
    """Returns the content of the frozen file."""
    return read(json.loads(FILE.read_text()))


def spelled(frozen: Mapping[str, Any]) -> str:
    """Returns the text of the frozen file: one row or message a line."""

    def line(value: Any) -> str:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))

    def lines(values: Iterable[Item]) -> str:
        return "[\n" + ",\n".join(map(line, values)) + "\n]"

    parts = (
        f"{line(name)}: {lines(value) if isinstance(value, list) else line(value)}"
        for name, value in frozen.items()
    )
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(spelled(Scenario().frozen()))
