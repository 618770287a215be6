"""Approval links from the announcement to the effect, through ingest and a processor."""

import html
import re
from urllib.parse import urlencode

import pytest

from tests.functions.faults import Fault, Faults
from tests.functions.inbox import Answer, Inbox
from tests.functions.invocations import http_event
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.secrets import APPROVAL_KEY
from webhookctl.local.processes.sink import Sink

# API Gateway alone counts these requests; Powertools warns of an invocation without a metric.
pytestmark = pytest.mark.filterwarnings("ignore:No application metrics")
HOST = "hooks.example"
FORM = {"content-type": "application/x-www-form-urlencoded", "host": HOST}
ORDER = {"id": "o-1", "cents": 20_000, "note": "<b>\u202e"}


@pytest.fixture
def links(inbox: Inbox, sink: Sink) -> dict[str, str]:
    """The path of each person's link, as announced."""
    inbox.account.set_secret(APPROVAL_KEY, "a-key-that-the-stack-made")
    inbox.deliver("lab.refund", order=ORDER)
    inbox.work()
    sent = [each["body"] for each in sink.effects.all().values()]
    assert all(each["link"].startswith(f"https://{HOST}/approvals/") for each in sent)
    return {each["person"]: each["link"].removeprefix(f"https://{HOST}") for each in sent}


def request(inbox: Inbox, path: str, method: str = "GET", **form: str) -> Answer:
    event = http_event(path, method=method, headers=FORM, body=urlencode(form).encode())
    token = path.rpartition("/")[2]
    event |= {"routeKey": "ANY /approvals/{token}", "pathParameters": {"token": token}}
    return inbox.request(event)


def decide(inbox: Inbox, path: str, word: str) -> Answer:
    return request(inbox, path, "POST", decision=word, confirm="yes", reason="checked")


def status(inbox: Inbox) -> Status:
    run = inbox.account.run("acme", "evt-1", "lab.refund")
    assert run is not None
    return run.status


def refunds(sink: Sink) -> list[object]:
    return [each["body"] for each in sink.effects.all().values() if each["path"] == "/refunds"]


def test_two_people_approve_by_their_links_and_the_effect_happens_once(
    inbox: Inbox, sink: Sink, links: dict[str, str]
) -> None:
    assert set(links) == {"ann", "bob"}
    for path in (*links.values(), *links.values()):
        page = request(inbox, path)
        assert page.status == 200
        assert '"cents": 20000' in html.unescape(re.sub("</?bdi>", "", page.body))
    assert (status(inbox), refunds(sink)) == (Status.HELD, [])

    assert decide(inbox, links["ann"], "approve").status == 200
    assert decide(inbox, links["ann"], "approve").status == 200
    assert decide(inbox, links["ann"], "deny").status == 409
    inbox.work()
    assert (status(inbox), refunds(sink)) == (Status.HELD, [])

    assert decide(inbox, links["bob"], "approve").status == 200
    inbox.work()
    assert (status(inbox), refunds(sink)) == (Status.DONE, [ORDER])
    assert decide(inbox, links["bob"], "deny").status == 409
    assert request(inbox, links["bob"]).status == 410


def test_one_denial_skips_the_run(inbox: Inbox, sink: Sink, links: dict[str, str]) -> None:
    assert decide(inbox, links["bob"], "deny").status == 200
    assert decide(inbox, links["ann"], "approve").status == 410
    inbox.work()

    assert (status(inbox), refunds(sink)) == (Status.SKIPPED, [])


@pytest.mark.parametrize("operation", ["GetItem", "PutItem", "UpdateItem", "SendMessageBatch"])
def test_an_outage_loses_no_decision(
    inbox: Inbox, sink: Sink, faults: Faults, links: dict[str, str], operation: str
) -> None:
    decide(inbox, links["ann"], "approve")
    faults.set(operation, Fault.THROTTLED)
    assert decide(inbox, links["bob"], "approve").status in {200, 503}

    faults.clear()
    assert decide(inbox, links["bob"], "approve").status == 200
    run = inbox.account.run("acme", "evt-1", "lab.refund")
    assert run is not None
    inbox.account.change(run, due_at=0)
    inbox.invoke("reconciler", {}, remaining=300)
    inbox.work()
    assert (status(inbox), refunds(sink)) == (Status.DONE, [ORDER])


def test_the_token_is_in_no_output_no_row_and_no_message_of_a_queue(
    inbox: Inbox, faults: Faults, links: dict[str, str]
) -> None:
    path = links["ann"]
    request(inbox, path)
    request(inbox, path + "x")
    request(inbox, path, "POST", decision="approve", confirm="yes", reason=f"see {path}")
    faults.set("GetItem", Fault.THROTTLED)
    request(inbox, path)
    faults.clear()
    queued = inbox.account.receive()
    inbox.output.read()

    secret = path.rpartition(".")[2]
    assert secret not in inbox.output.text
    assert secret not in repr(inbox.account.rows())
    assert secret not in repr(queued)
    assert "approval recorded" in inbox.output.text


def test_a_link_of_another_stack_is_not_found(inbox: Inbox, links: dict[str, str]) -> None:
    client = inbox.account.clients["secretsmanager"]
    name = f"webhook-inbox/test/{APPROVAL_KEY}"
    for value in ("another", "and-another"):
        client.put_secret_value(SecretId=name, SecretString=value)
    inbox.started.pop("ingest")

    for method in ("GET", "POST"):
        answer = request(inbox, links["ann"], method, decision="approve", confirm="yes")
        assert answer.status == 404
    assert status(inbox) is Status.HELD
