"""The calls and the billed units of each step, counted at the HTTP layer.

The functions call a proxy before the local runtime's AWS, so their client does not matter.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from tests.functions.account import Account, open_account
from tests.functions.inbox import SECRET, Inbox
from tests.functions.metering.meter import Meter
from tests.functions.metering.recorder import recording
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ledger.schema import received_bucket
from webhookctl.cost.body import sample_body
from webhookctl.cost.units import Step
from webhookctl.local.processes.ministack import Ministack

CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


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
    inbox: Inbox
    meter: Meter
    number: int = 0

    def deliver(self, event_type="lab.fine", *, source="acme", size=3072, number=None) -> Step:
        if number is None:
            self.number += 1
            number = self.number
        body = sample_body(size, number=number, event_type=event_type)
        event_id = f"evt_1NG9Xa2eZvKYlo2CtR6pWk{number:02d}"
        headers = self.inbox.sign(source, body, event_id=event_id, event_type=event_type)
        self.meter.take()
        answer = self.inbox.post(source, body, headers)
        assert answer.status in {200, 202}, answer.body
        return self.meter.take()

    def run(self) -> Step:
        [message] = self.inbox.account.receive()
        self.meter.take()
        assert self.inbox.process(message) == []
        return self.meter.take()


@pytest.fixture
def metered(inbox: Inbox, meter: Meter) -> Metered:
    made = Metered(inbox, meter)
    # What a new environment reads once: secrets, pauses, the list of handlers.
    for event_type in ("lab.fine", "lab.effect"):
        made.deliver(event_type)
        made.run()
    return made


def test_show(metered: Metered):
    out = {}
    out["new"] = metered.deliver()
    out["young unsent dup"] = metered.deliver(number=metered.number)
    for m in metered.inbox.account.receive():
        metered.meter.take()
        metered.inbox.process(m)
        out["run"] = metered.meter.take()
        break
    out["young dup"] = metered.deliver(number=metered.number)
    row = metered.inbox.account.event("acme", f"evt_1NG9Xa2eZvKYlo2CtR6pWk{metered.number:02d}")
    at = datetime.now(UTC) - timedelta(minutes=16)
    metered.inbox.account.table.put({**row, "received_at": to_ms(at), "received_bucket": received_bucket(at, row["event_id"])})
    out["old dup"] = metered.deliver(number=metered.number)
    out["effect new"] = metered.deliver("lab.effect")
    out["effect"] = metered.run()
    out["guarded"] = metered.deliver("ping", source="github")
    out["large"] = metered.deliver(size=102400)
    out["1K"] = metered.deliver(size=1024)
    out["10K"] = metered.deliver(size=10240)
    out["100K run"] = 0
    for m in metered.inbox.account.receive():
        metered.meter.take()
        metered.inbox.process(m)
        out["run " + m["Body"]] = metered.meter.take()
    with open("/tmp/i15/steps.txt", "w") as f:
        for k, v in out.items():
            print(k, v, file=f)
