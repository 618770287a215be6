"""The calls and the billed units of each step, counted at the HTTP layer.

The functions call a proxy before the local runtime's AWS, so their client does not matter. What
`webhookctl cost` computes with is what is counted here: where they differ, change the constant in
`webhookctl/cost/units.py`, and say in the commit why the step's price changed.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NoReturn
from uuid import uuid4

import pytest

from tests.functions.account import Account, open_account
from tests.functions.inbox import SECRET, Inbox
from tests.functions.invocations import http_event
from tests.functions.metering.meter import Meter
from tests.functions.metering.recorder import recording
from tests.functions.metering.units import index_entry
from webhook_inbox import Permanent
from webhook_inbox.adapters.aws.clients import steady
from webhook_inbox.adapters.aws.dynamodb import DynamoTable
from webhook_inbox.adapters.aws.s3 import S3Blobs
from webhook_inbox.adapters.aws.sqs import SqsQueue
from webhook_inbox.adapters.memory import ManualClock
from webhook_inbox.adapters.system import SystemClock, SystemRandomness, ThreadParallel
from webhook_inbox.domain import replay_cost
from webhook_inbox.domain.audit import Actor, Proof
from webhook_inbox.domain.model import ApprovalOutcome
from webhook_inbox.domain.ports import Change, Item, Key, Ports
from webhook_inbox.domain.quotas import item_size
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.handlers.approvals.decisions import Approvals
from webhook_inbox.handlers.approvals.hold import holds
from webhook_inbox.ingest.rejected import PER_MINUTE
from webhook_inbox.ledger.queries import Ledger
from webhook_inbox.ledger.schema import RECEIVED_SHARDS, received_bucket
from webhook_inbox.reconciler import retention
from webhook_inbox.reconciler.received import CURSORS
from webhook_inbox.reconciler.report import Action, ReconcilerReport
from webhookctl.cost import units
from webhookctl.cost.body import sample_body
from webhookctl.cost.units import Step
from webhookctl.local.processes.ministack import Ministack

CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
BODY = 3 * 1024
MINUTE = timedelta(minutes=1)
# Times and random ids make a row or a line a few bytes longer or shorter.
SLACK = 0.03


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    ministack = Ministack(tmp_path_factory.mktemp("ministack"))
    ministack.credentials = dict.fromkeys(CREDENTIALS, "test")
    with ministack as running:
        yield running.endpoint


@pytest.fixture
def account(endpoint: str) -> Account:
    opened = open_account(endpoint, name=uuid4().hex)
    for name in ("acme", "github"):
        opened.set_secret(name, SECRET)
    return opened


@pytest.fixture
def meter(account: Account, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Meter]:
    made = Meter(account.clients["dynamodb"], account.table_name)
    with recording(endpoint, made) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        yield made


@dataclass
class Metered:
    """An inbox whose steps are counted, each by itself."""

    inbox: Inbox
    meter: Meter
    clock: ManualClock
    number: int = 0

    def deliver(
        self,
        event_type: str = "lab.fine",
        *,
        source: str = "acme",
        size: int = BODY,
        again: bool = False,
        status: int = 202,
    ) -> Step:
        """Counts the delivery of a new event, or of the last one again.

        The status 401 is that of a body that was changed.
        """
        self.number += not again
        # The same content at the same moment would be a retry of ingest's own write.
        self.clock.advance(seconds=1 if again else 0)
        body = sample_body(size, number=self.number, event_type=event_type)
        headers = self.inbox.sign(source, body, event_id=self.event_id, event_type=event_type)
        sent = body + b" " if status == 401 else body
        self.take()
        answer = self.inbox.request(http_event(f"/webhooks/{source}", headers=headers, body=sent))
        assert answer.status == status
        return self.meter.take()

    def run(self) -> Step:
        """Counts the run of the one message that waits."""
        [message] = self.inbox.account.receive()
        self.take()
        assert self.inbox.process(message) == []
        return self.meter.take()

    def take(self) -> Step:
        """Forgets what the log has, and returns what was counted."""
        self.inbox.output.read()
        return self.meter.take()

    def logged(self) -> tuple[int, int]:
        """Returns the lines of the last step's log, and their bytes."""
        text = self.inbox.output.capture.readouterr().out
        lines = [line for line in text.splitlines() if line.startswith("{")]
        return len(lines), sum(map(len, lines))

    @property
    def event_id(self) -> str:
        return f"evt_1NG9Xa2eZvKYlo2CtR6pWk{self.number:02d}"

    @property
    def event(self) -> Item:
        row = self.inbox.account.event("acme", self.event_id)
        assert row is not None
        return row

    def age(self, received_at: datetime) -> None:
        """Makes the last event one that was received then."""
        bucket = received_bucket(received_at, self.event_id)
        moved = {"received_at": to_ms(received_at), "received_bucket": bucket}
        self.inbox.account.table.put({**self.event, **moved})


@pytest.fixture
def metered(
    inbox: Inbox, meter: Meter, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> Metered:
    """An inbox whose environments have read what they read every 5 seconds or less often."""
    monkeypatch.setenv("DASHBOARD", "")
    made = Metered(inbox, meter, clock)
    for event_type in ("lab.fine", "lab.effect"):
        made.deliver(event_type)
        made.run()
    return made


def test_the_calls_that_docs_promise() -> None:
    """A step that needs more is a regression, whatever the constants say."""
    promised = {
        units.NEW: 2,
        units.GUARDED: 3,
        units.DUPLICATE: 1,
        units.DUPLICATE_YOUNG: 2,
        units.REJECTED_UNKEPT: 0,
    }
    assert {step: len(step.calls) for step in promised} == promised
    written = [units.RUN, units.RUN_WITH_EFFECT]
    assert [(step.writes, step.index_writes) for step in written] == [(2, 0), (4, 0)]


# -- ingest


def test_a_new_event(metered: Metered) -> None:
    assert metered.deliver() == units.NEW


def test_a_new_event_of_a_guarded_source(metered: Metered) -> None:
    assert metered.deliver("ping", source="github") == units.GUARDED


def test_a_large_body_and_its_run(metered: Metered) -> None:
    assert metered.deliver(size=100 * 1024) == units.LARGE
    assert metered.run() == units.RUN_OF_LARGE


@pytest.mark.parametrize(
    ("minutes", "step"), [(14, units.DUPLICATE_YOUNG), (16, units.DUPLICATE)], ids=str
)
def test_a_duplicate(metered: Metered, minutes: int, step: Step) -> None:
    metered.deliver()
    metered.run()
    metered.age(metered.clock.now() - timedelta(minutes=minutes))

    assert metered.deliver(again=True, status=200) == step


def test_a_duplicate_before_its_run_has_begun(metered: Metered) -> None:
    metered.deliver()
    assert metered.deliver(again=True, status=200) == units.DUPLICATE_UNSENT


def test_a_rejected_delivery(metered: Metered) -> None:
    assert metered.deliver(status=401) == units.REJECTED


def test_a_flood_of_forged_deliveries_costs_no_calls(metered: Metered) -> None:
    full = Change(set={"well_formed": PER_MINUTE, "expires_at": 1 << 40})
    key = Key("rejected-count#acme", f"{metered.clock.now():%Y-%m-%dT%H:%M}")
    metered.inbox.account.table.update(key, full)

    first, *later = [metered.deliver(status=401) for _ in range(3)]

    # The first of a minute reads that its share is used up.
    assert first == Step(calls=(units.UPDATE,), writes=1)
    assert later == [units.REJECTED_UNKEPT] * 2


# -- processor


def test_a_run_without_effects(metered: Metered) -> None:
    metered.deliver()
    assert metered.run() == units.RUN


def test_a_run_with_an_effect(metered: Metered) -> None:
    metered.deliver("lab.effect")
    assert metered.run() == units.RUN_WITH_EFFECT


def test_what_new_environments_ask(inbox: Inbox, meter: Meter, clock: ManualClock) -> None:
    metered = Metered(inbox, meter, clock)
    assert without(metered.deliver(), units.NEW) == units.SECRETS
    registering = Step(calls=(units.UPDATE,), writes=1)
    first = without(metered.run(), units.RUN)
    assert without(without(first, units.PAUSE), registering) == units.LISTED


def without(step: Step, other: Step) -> Step:
    """Returns a step without the calls of another one."""
    assert not Counter(other.calls) - Counter(step.calls)
    return Step(
        calls=tuple((Counter(step.calls) - Counter(other.calls)).elements()),
        writes=step.writes - other.writes,
        index_writes=step.index_writes - other.index_writes,
        reads=step.reads - other.reads,
        sqs=step.sqs - other.sqs,
    )


# -- a person's decisions


@pytest.fixture
def dead(metered: Metered, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Makes runs that die at their first attempt; their messages are in the DLQ."""
    inbox = metered.inbox

    def refuse(*_: Any) -> NoReturn:
        raise Permanent("422: no such order")

    def make(runs: int) -> None:
        for _ in range(runs):
            metered.deliver()
            [message] = inbox.account.receive()
            with monkeypatch.context() as patch:
                patch.setattr(inbox.lab, "saw", refuse)
                assert inbox.process(message) == [message["MessageId"]]
            # SQS does this after further receives; other tests cover the move to the DLQ.
            inbox.account.delete(message)
            inbox.account.clients["sqs"].send_message(
                QueueUrl=inbox.account.dead_letters, MessageBody=message["Body"]
            )

    return make


def test_a_replay_of_dead_runs_and_their_attempts(
    metered: Metered, dead: Callable[[int], None]
) -> None:
    def replay(runs: int) -> Step:
        dead(runs)
        metered.take()
        report = metered.inbox.invoke("replay", {"status": ["dead_letter"]}, remaining=300)
        assert (report["counts"], report["dlq_removed"]) == ({"replayed": runs}, runs)
        return metered.meter.take()

    def attempts() -> list[Step]:
        steps = []
        for message in metered.inbox.account.receive():
            metered.take()
            assert metered.inbox.process(message) == []
            steps.append(metered.meter.take())
        return steps

    replay(1)  # A new environment reads the pauses.
    attempts()
    one = replay(1)
    assert attempts() == [units.RUN_REPLAYED]
    four = replay(4)
    assert attempts() == [units.RUN_REPLAYED] * 4

    # Three runs more. How many share a read, or a send, depends on the rate.
    updates = Counter(four.calls)[units.UPDATE] - Counter(one.calls)[units.UPDATE]
    deletes = Counter(four.calls)[units.DELETE] - Counter(one.calls)[units.DELETE]
    assert (updates, deletes) == (3, 3)
    each = units.REPLAYED
    more = (four.writes - one.writes, four.index_writes - one.index_writes, four.reads - one.reads)
    assert more == (3 * each.writes, 3 * each.index_writes, 3 * each.reads)
    assert 0 <= four.sqs - one.sqs <= 3 * each.sqs


def test_the_price_of_a_replay_is_of_these_units() -> None:
    replayed, attempt = units.REPLAYED, units.RUN_REPLAYED
    written = [step.writes + step.index_writes for step in (replayed, attempt)]
    assert sum(written) == replay_cost.WRITES
    assert replayed.reads + attempt.reads == replay_cost.READS
    # The new message is received and deleted, unless it is in a batch.
    assert replayed.sqs + 2 == replay_cost.MESSAGES


def operating(account: Account) -> Ports:
    """Returns the ports of a process that operates the inbox by metered clients."""
    return Ports(
        table=DynamoTable(steady("dynamodb"), account.table_name),
        blobs=S3Blobs(steady("s3"), account.bucket),
        clock=SystemClock(),
        randomness=SystemRandomness(),
        queues={"default": SqsQueue(steady("sqs"), account.queue)},
    )


def test_an_approval_and_its_attempt(metered: Metered, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox = metered.inbox
    metered.deliver()
    with monkeypatch.context() as patch:
        patch.setattr(inbox.lab, "saw", lambda _, context: context.hold("is it theirs?"))
        metered.run()
    [hold] = holds(Ledger(table=inbox.account.table))
    approvals = Approvals(inbox.manifest, operating(inbox.account))

    metered.take()
    decision = approvals.approve(hold, by=Actor("jo", Proof.CLAIMED), reason="it is")

    assert decision.outcome is ApprovalOutcome.APPROVED
    assert metered.meter.take() == units.APPROVED
    assert metered.run() == units.RUN_REPLAYED


# -- reconciler

Pass = Callable[[float], Step]


@pytest.fixture
def first_pass(clock: ManualClock) -> datetime:
    """The first pass: later than all events of `metered`, and its hour has room for the others."""
    return clock.now() + timedelta(minutes=40)


@pytest.fixture
def reconcile(metered: Metered, clock: ManualClock, first_pass: datetime) -> Pass:
    """Counts a pass so many minutes after the first one, which has registered the handlers."""
    inbox = metered.inbox
    positions = {
        str(shard): to_ms(first_pass - timedelta(minutes=5)) for shard in range(RECEIVED_SHARDS)
    }
    inbox.account.table.update(CURSORS, Change(set={"first": positions, "second": positions}))

    def run(minutes: float) -> Step:
        wait = first_pass + timedelta(minutes=minutes) - clock.now()
        clock.advance(seconds=wait.total_seconds())
        metered.take()
        assert inbox.invoke("reconciler", {}, remaining=300)["complete"]
        return metered.meter.take()

    run(0)
    return run


def test_a_pass_without_events(metered: Metered, reconcile: Pass) -> None:
    step = reconcile(1)
    assert metered.logged() == about(units.PASS_LOG)
    reconcile(2)
    assert len(metered.inbox.output.points()) == units.METRICS_OF_PASS

    # The fifth minute of the second look, which is half an hour behind.
    assert without(without(reconcile(30), step), units.FIFTH_PASS) == Step(calls=())
    for _ in metered.inbox.manifest.handlers:
        step = without(step, units.PASS_OF_HANDLER)
    assert without(step, units.PASS) == Step(calls=())


def test_the_two_looks_at_events(metered: Metered, reconcile: Pass, first_pass: datetime) -> None:
    events = 5
    for _ in range(events):
        metered.deliver()
        metered.run()
        metered.age(first_pass + timedelta(minutes=4.5))

    # At 33, the second look ends before the events; at 38, it is at them.
    idle, first, fifth, second = map(reconcile, (1, 8, 33, 38))

    for look, without_events in ((first, idle), (second, fifth)):
        assert look.writes == without_events.writes
        # The entries of a page of the index are added up, and these are below a unit.
        assert look.reads - without_events.reads == units.LOOK_AT_RUN * events


def test_the_erasure_of_a_payload_whose_retention_has_passed(metered: Metered) -> None:
    inbox, now = metered.inbox, metered.clock.now()
    day, account = timedelta(days=1), metered.inbox.account
    source = replace(inbox.manifest.sources["acme"], retention=int(day.total_seconds()))
    positions = {str(shard): to_ms(now - day - 10 * MINUTE) for shard in range(RECEIVED_SHARDS)}

    ports = replace(operating(account), parallel=ThreadParallel(1))

    def erase(events: int) -> Step:
        for _ in range(events):
            metered.deliver()
            metered.run()
            metered.age(now - day - 5 * MINUTE)
        account.table.update(retention.CURSORS, Change(set={"positions": {"acme/0": positions}}))
        expired = retention.ExpiredPayloads(
            replace(inbox.manifest, sources={"acme": source}),
            ports,
            report=(report := ReconcilerReport()),
            out_of_time=lambda: False,
            now=now,
        )
        metered.take()
        expired.erase()
        assert report.counts.get(Action.ERASED, 0) == events
        return metered.meter.take()

    without_events = erase(0)
    assert without(erase(1), without_events) == units.ERASED


# -- bytes and metrics


def about(logged: tuple[int, int]) -> tuple[int, object]:
    lines, size = logged
    return lines, pytest.approx(size, rel=SLACK)


def test_the_log_of_an_event_and_its_run(metered: Metered) -> None:
    metered.deliver()
    assert metered.logged() == about(units.DELIVERY_LOG)
    metered.run()
    assert metered.logged() == about(units.RUN_LOG)
    metered.deliver(status=401)
    assert metered.logged() == about(units.REJECTED_LOG)


def test_a_dashboards_metrics_are_in_the_lines(
    inbox: Inbox, meter: Meter, clock: ManualClock
) -> None:
    metered = Metered(inbox, meter, clock)
    for _ in range(2):  # a cold start has a field more
        metered.deliver()
        delivered = metered.logged()[1]
        metered.run()
        ran = metered.logged()[1]
    more = [delivered - units.DELIVERY_LOG[1], ran - units.RUN_LOG[1]]
    assert more == pytest.approx([units.DELIVERY_METRICS, units.RUN_METRICS], rel=SLACK)


def test_the_rows_of_an_event(metered: Metered) -> None:
    metered.deliver("lab.effect")
    metered.run()
    effect, event, run = metered.inbox.account.rows(metered.event["pk"])
    entry = index_entry("by_received", event)
    assert entry is not None
    sizes = [item_size(row) for row in (event, entry, run, effect)]
    sizes[0] -= len(event["body"])
    pinned = [units.EVENT_BYTES, units.ENTRY_BYTES, units.RUN_BYTES, units.EFFECT_BYTES]
    assert sizes == pytest.approx(pinned, rel=SLACK)


@pytest.mark.parametrize("size", [1024, BODY, 5000, 10 * 1024, 20 * 1024])
def test_the_units_of_a_body_follow_from_its_stored_size(metered: Metered, size: int) -> None:
    assert metered.deliver(size=size).writes == units.event_writes(size)


def test_without_a_dashboard_events_and_runs_make_no_metrics(metered: Metered) -> None:
    metered.deliver()
    metered.run()
    assert metered.inbox.output.points() == []


def test_the_metrics_of_a_dashboard_that_events_and_runs_make(
    inbox: Inbox, meter: Meter, clock: ManualClock
) -> None:
    metered = Metered(inbox, meter, clock)
    metered.deliver()
    found = metered.inbox.output.points()
    metered.run()
    found += metered.inbox.output.points()

    of = Counter(next(iter(sorted(point.dimensions.keys() - {"outcome"})), "") for point in found)
    assert of == {
        "": units.METRICS,
        "source": units.METRICS_OF_SOURCE,
        "handler": units.METRICS_OF_HANDLER,
    }
