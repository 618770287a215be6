"""An inbox over the doubles that has something to show on every page of the console."""

import json
from dataclasses import dataclass, field, replace
from datetime import timedelta
from email.utils import format_datetime
from functools import partial
from typing import Any

from tests.unit.support import holding
from tests.unit.support.world import handler
from tests.webhookctl.commands.stage import MANIFEST, PREFIX, STACK_ID, Inbox, Lambda, MemoryTarget
from tests.webhookctl.commands.test_doctor import Account, passed
from webhook_inbox.client.connection import Selection
from webhook_inbox.client.target import Target
from webhook_inbox.domain.errors import Permanent, Skipped
from webhook_inbox.domain.manifest import BreakerSpec, DestinationSpec
from webhook_inbox.domain.ports import Clock
from webhook_inbox.domain.secrets import TOKEN_KEY
from webhookctl.invocation import Invocation
from webhookctl.invocation import World as Outside

RIGHT = "the-secret-that-the-provider-has"
SEEDED = replace(
    MANIFEST,
    sources={
        **MANIFEST.sources,
        "acme": replace(MANIFEST.sources["acme"], tenant=("header", "x-tenant")),
    },
    handlers={
        **MANIFEST.handlers,
        "acme.fulfil": replace(MANIFEST.handlers["acme.fulfil"], destinations=("crm",)),
        "acme.refund": handler("acme.refund", "refund.asked"),
        "stripe.book": replace(MANIFEST.handlers["stripe.book"], destinations=("erp",)),
    },
    destinations={
        "crm": DestinationSpec("crm", "https://crm.acme.io", rate=2.0, breaker=BreakerSpec()),
        "erp": DestinationSpec("erp", "https://erp.acme.io", breaker=BreakerSpec()),
    },
)
# The user's handlers, compiled under the path that they have in Lambda.
ORDERS = """
def fulfil(event, ctx):
    order = event.json()
    if order.get("slow"):
        raise TimeoutError("the CRM did not answer within 10 s")
    if order.get("unknown"):
        raise Permanent(f"the ERP answered 422: customer {order['unknown']} does not exist")
    if order.get("skip"):
        raise Skipped("an order of a test")
    ship(order)
    ask = bool(order.get("ask"))
    ctx.effect("book", lambda _: {"booking": 7}, args={"id": event.id}, approve=ask)


def ship(order):
    return order["address"]
"""


@dataclass
class Names:
    """The ids of events and rows that tests refer to.

    Attributes:
        done: an event that is done, with an effect.
        retrying: one whose run waits for its next attempt.
        dead: one with a dead run, whose error has a line of the user's.
        doubtful: one that is held, since its effect is in doubt.
        asking: one that is held, since its effect needs an approval.
        rejected: the id of a rejected delivery that is valid with the current secrets.
        holds: the approval request of each event that is held.
    """

    done: str = "evt_done"
    retrying: str = "evt_retrying"
    dead: str = "evt_dead_0"
    doubtful: str = "evt_doubtful"
    asking: str = "evt_asking"
    rejected: str = ""
    holds: dict[str, str] = field(default_factory=dict)


@dataclass
class ShownInbox:
    """An inbox that a console shows.

    Attributes:
        target: its resources.
        clock: its clock.
        names: the ids of its events.
    """

    target: Target
    clock: Clock
    names: Names

    def call(self) -> Invocation:
        """Returns the invocation of a command for the inbox."""
        target = self.target
        selection = Selection(local=True) if target.local else Selection(stack=target.name)
        return Invocation(Outside(lambda _: target, self.clock), selection)


@dataclass
class SeededInbox(ShownInbox):
    """The inbox over the doubles.

    Attributes:
        world: all that is around it.
    """

    world: Inbox


def seeded(*, other: Any, stage: str = "test", local: bool = False) -> SeededInbox:
    """Returns an inbox in which every status and every kind of row occurs.

    `other` makes the clients of the services without a double here: STS and Secrets Manager.
    """
    world = Inbox()
    world.deploy(SEEDED)
    target = target_of(world, other, stage=stage, local=local)
    found = SeededInbox(target, world.clock, Names(), world)
    _runs(world, found.names)
    _held(world, found.names)
    _actions(world, found)
    passed(world, age=timedelta(seconds=20))
    held = found.call().client.holds.list()
    found.names.holds = {each.event_id: each.hold for each in held}
    return found


def target_of(world: Inbox, other: Any, *, stage: str, local: bool) -> Target:
    account = Account(other)
    account.invoke = Lambda(world).invoke  # type: ignore[attr-defined]
    account.describe_stacks = partial(_stack, account, world)  # type: ignore[attr-defined]
    account.get_metric_data = _without_data  # type: ignore[attr-defined]
    doubles: dict[str, Any] = {
        "table": world.table,
        "blobs": world.blobs,
        "queues": world.queues,
        "dlqs": world.dlqs,
    }
    api = "http://127.0.0.1:8787" if local else "https://inbox.example"
    return MemoryTarget(
        name="local" if local else f"WebhookInbox-{stage}",
        local=local,
        stage=stage,
        table_name="ledger",
        bucket_name="bodies",
        secret_prefix=PREFIX,
        generated_keys={TOKEN_KEY: PREFIX + TOKEN_KEY},
        replay_function="replay-function",
        urls={name: f"{api}/webhooks/{name}" for name in world.manifest.sources},
        client=lambda service: doubles.get(service) or account(service),
        api_url=api,
        queue_urls={lane: f"https://sqs.example/{lane}" for lane in world.queues},
        dlq_urls={lane: f"https://sqs.example/{lane}-dlq" for lane in world.queues},
        processors={"default": "processor"},
        reconciler="reconciler",
        log_groups={"reconciler": "the-reconciler-logs", "ingest": "the-ingest-logs"},
        read_manifest=lambda: world.manifest,
        stack_id=STACK_ID,
    )


def _stack(account: Account, world: Inbox, **_: Any) -> dict[str, Any]:
    """Returns the answer of CloudFormation, whose date is the time."""
    date = {"date": format_datetime(world.now, usegmt=True)}
    return {**account.answers["describe_stacks"], "ResponseMetadata": {"HTTPHeaders": date}}


def _without_data(*, MetricDataQueries: list[dict[str, Any]], **_: Any) -> dict[str, Any]:  # noqa: N803
    found = [{"Id": each["Id"], "Timestamps": [], "Values": []} for each in MetricDataQueries]
    return {"MetricDataResults": found}


def _runs(world: Inbox, names: Names) -> None:
    """Delivers events whose runs end in every way."""
    compiled: dict[str, Any] = {"Permanent": Permanent, "Skipped": Skipped}
    exec(compile(ORDERS, "/var/task/handlers/orders.py", "exec"), compiled)
    world.behaviours["acme.fulfil"] = compiled["fulfil"]
    orders: dict[str, dict[str, Any]] = {
        names.done: {"address": "1 High St", "lines": [{"sku": "a-1", "count": 2}]},
        **{f"evt_dead_{n}": {"total": n} for n in range(3)},
        "evt_unknown_0": {"unknown": "c-9"},
        "evt_unknown_1": {"unknown": "c-12"},
        "evt_skipped": {"skip": True},
        names.asking: {"address": "2 High St", "ask": True},
    }
    for event_id, order in orders.items():
        _order(world, event_id, order)
        world.clock.advance(minutes=4)
    for _ in range(6):
        world.pass_minutes(1)
    world.deliver("gh_1", source="github", type_="issues.opened")
    world.deliver("gh_2", source="github", type_="star.created")
    world.work()
    _order(world, names.retrying, {"slow": True})


def _order(world: Inbox, event_id: str, order: dict[str, Any]) -> None:
    body = json.dumps({"id": event_id, "type": "paid", **order}).encode()
    world.deliver(event_id, body=body, headers={"x-tenant": "acct_7"})
    world.work()


def _held(world: Inbox, names: Names) -> None:
    """Leaves a run that waits for a person since its effect is in doubt, and a rejection."""
    request = holding.hold(
        world, names.doubtful, type_="refund.asked", shows='{"charge": "ch_3", "amount": 4200}'
    )
    holding.effect(world, request.run, error="ReadTimeout: no answer within 10 s")
    world.deliver("evt_rejected", secret=RIGHT, body=b'{"id": "evt_rejected"}')
    world.deliver("evt_forged", secret="of-a-stranger")
    first, _ = sorted(row["sk"] for row in world.rows("rejected#"))
    names.rejected = first.replace("#", "-")


def _actions(world: Inbox, found: SeededInbox) -> None:
    """Performs what an operator did before, so that the audit and the pauses have rows."""
    client = found.call().client
    by, reason = client.actor(), "the ERP moves to its new host"
    client.handlers.pause("github.announce", reason=reason, by=by)
    client.tenants.pause("acct_9", reason=reason, by=by)
    client.destinations.open("erp", reason=reason, by=by)
    client.events.erase("evt_unknown_1", source="acme", reason="a request", by=by)
    world.deliver("gh_3", source="github", type_="issues.closed", body=b'{"action": "closed"}')
    world.deliver(
        "in_1", source="stripe", type_="invoice.paid", body=b'{"id":"in_1","type":"invoice.paid"}'
    )
    world.work()
    world.clock.advance(seconds=2)
