"""An inbox whose refunds two people approve, and the messages that it sends them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from tests.unit.support.world import FULFIL, MANIFEST, World
from webhook_inbox import Approval, Context, Event
from webhook_inbox.domain.errors import Transient
from webhook_inbox.domain.manifest import ApproversSpec, DestinationSpec, Manifest
from webhook_inbox.domain.model import Run, Status
from webhook_inbox.handlers.approvals.decisions import Approvals
from webhook_inbox.handlers.approvals.request_row import (
    DecisionOutcome,
    GivenDecision,
    RequestRow,
    Word,
)
from webhook_inbox.handlers.approvals.requests import ApprovalRequests, RequestView
from webhook_inbox.ledger.schema import APPROVAL_PREFIX
from webhook_inbox.processor.processor import Processor

FINANCE: Final = ApproversSpec("finance", {"ann": "chat:/ann", "bob": "chat:/bob"})
BOARD: Final = ApproversSpec("board", {"eve": "chat:/eve", "bob": "chat:/bob-at-night"})
TWO: Final = Approval(by="finance", count=2, expires="2d")
API_URL: Final = "https://inbox.example"


def approved_by(*groups: ApproversSpec, **settings: Any) -> Manifest:
    """Returns a manifest with these groups."""
    return replace(
        MANIFEST,
        approvers={group.name: group for group in groups},
        destinations={"chat": DestinationSpec("chat", "https://chat.example")},
        handlers={**MANIFEST.handlers, FULFIL.name: replace(FULFIL, **settings)},
    )


@dataclass
class Chat:
    """The system that messages are sent to; `down` names the paths that fail.

    Attributes:
        sent: the path and the body of each message.
        keys: the idempotency key of each message.
        down: the paths that fail, and "" for all.
        answer: the JSON of each answer.
    """

    sent: list[tuple[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    down: set[str] = field(default_factory=set)
    answer: Any = None

    def post(self, path: str, *, json: Any, effect: None, headers: Mapping[str, str]) -> "Chat":
        """Takes a message as `DestinationClient.post` does."""
        assert effect is None
        if self.down & {path, ""}:
            raise Transient(f"POST {path}: 503")
        self.sent.append((path, json))
        self.keys.append(headers["Idempotency-Key"])
        return self

    def json(self) -> Any:
        """Returns the body of the answer."""
        return self.answer

    @property
    def paths(self) -> list[str]:
        """The paths of the messages, in order."""
        return [path for path, _ in self.sent]


class ApprovingWorld(World):
    """An inbox whose handler refunds once its people have approved.

    Attributes:
        chat: the system that messages are sent to.
        refunds: the arguments of each refund.
        args: the arguments that the handler gives now.
        approval: what the handler requires.
    """

    def __init__(self, *groups: ApproversSpec, approval: Approval = TWO, **settings: Any) -> None:
        self.chat = Chat()
        self.refunds: list[Any] = []
        self.args: Any = {"order": "o-1", "cents": 20_000}
        self.approval = approval
        super().__init__(approved_by(*(groups or (FINANCE,)), **settings))
        self.behaviours[FULFIL.name] = self.refund

    def refund(self, _: Event, ctx: Context) -> None:
        """Refunds, as the handler of these tests."""
        args = self.args
        ctx.effect("refund", lambda _: self.refunds.append(args), args=args, approve=self.approval)

    def deploy(self, manifest: Manifest) -> None:
        """See `World`."""
        self.ports = replace(self.ports, clients=lambda *_: self.chat)
        super().deploy(manifest)

    def new_processor(self, **adapters: Any) -> Processor:
        """See `World`."""
        return super().new_processor(api_url=API_URL, **adapters)

    # -- people

    @property
    def requests(self) -> ApprovalRequests:
        """The requests, as the page of the links reads and decides them."""
        return ApprovalRequests(self.manifest, self.ports)

    @property
    def approvals(self) -> Approvals:
        """The approvals, as `webhookctl hold` decides them."""
        return Approvals(self.manifest, self.ports)

    def asked(self, *events: str) -> RequestRow:
        """Delivers an event whose refund is then asked; returns the request."""
        for event_id in events or ("evt-1",):
            self.deliver(event_id)
        self.work()
        return self.request()

    def request(self) -> RequestRow:
        """Returns the newest request."""
        rows = [RequestRow(row) for row in self.table if row["sk"].startswith(APPROVAL_PREFIX)]
        return max(rows, key=lambda each: (each.opened_at, each.address.round))

    def view(self) -> RequestView:
        """Returns the newest request as people see it."""
        found = self.requests.view(self.request().address)
        assert found is not None
        return found

    def says(self, person: str, word: Word = Word.APPROVE, reason: str = "seen") -> DecisionOutcome:
        """Lets a person decide the newest request by the link."""
        return self.requests.decide(self.request().address, person, word, reason)

    # -- time and history

    def wait(self, **span: float) -> None:
        """Lets the reconciler run each minute for so long, and workers work."""
        end = self.now + timedelta(**span)
        while self.now < end:
            self.clock.advance(seconds=60)
            self.reconcile()
            self.work()

    def look_at(self, moment: datetime) -> None:
        """Moves the clock to a moment; one pass of the reconciler, and workers work."""
        self.clock.advance(seconds=(moment - self.now).total_seconds())
        self.reconcile()
        self.work()

    @property
    def status(self) -> Status:
        """The status of the run."""
        return self.run().status

    @property
    def history(self) -> list[str]:
        """The actions on the event, oldest first, as "action by actor"."""
        entries = self.overview().actions
        return [f"{entry.action} by {entry.actor.name}" for entry in entries]

    def held(self) -> Run:
        """Returns the run, which is held."""
        assert self.status is Status.HELD, json.dumps(self.run().last_error)
        return self.run()


def given(world: World) -> GivenDecision:
    """Returns an approval by a link, now."""
    return GivenDecision(Word.APPROVE, world.now, "seen", "link")
