"""`client.rejected`: what is shown has no secrets, and a release is audited and accepted once."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.support.world import FULFIL
from tests.webhookctl.commands.conftest import _alone, cli, inbox
from tests.webhookctl.commands.stage import CALLER, MANIFEST, Cli, Inbox
from tests.webhookctl.commands.test_rejected import RIGHT, reject, set_secret
from webhook_inbox.client.client import InboxClient
from webhook_inbox.client.connection import Selection
from webhook_inbox.client.errors import NotFound, Refused, WrongArgument
from webhook_inbox.client.rejected import Rejection, RejectionFilter, ReleaseOutcome
from webhook_inbox.domain.errors import Reason, Unavailable
from webhook_inbox.ingest.receipt import STORED, IngestOutcome
from webhook_inbox.ingest.release import ReleaseVerdict

__all__ = ["_alone", "cli", "inbox"]


@pytest.fixture
def client(cli: Cli, inbox: Inbox) -> InboxClient:
    """A client that may change the inbox, whose secrets are right again."""
    set_secret("acme", RIGHT)
    return InboxClient(cli._connect(Selection()), write=True, clock=inbox.clock)


def several(inbox: Inbox, count: int = 3) -> None:
    for number in range(count):
        reject(inbox, f"evt-{number}", body=b'{"n": %d}' % number)
        inbox.clock.advance(minutes=1)


def only(client: InboxClient) -> Rejection:
    [found] = client.rejected.list()
    return found


def audited(inbox: Inbox) -> list[str]:
    return [row["action"] for row in inbox.rows("audit#")]


def test_a_list_says_whether_its_limit_ended_it(client: InboxClient, inbox: Inbox) -> None:
    several(inbox)
    newest = client.rejected.list(limit=2)
    times = [each.received_at for each in newest]
    assert times == sorted(times, reverse=True)
    assert (newest.full, newest.partial) == (True, False)
    late = client.rejected.list(RejectionFilter(since=inbox.now - timedelta(seconds=90)))
    assert (len(list(late)), late.full) == (1, False)
    assert list(client.rejected.list(RejectionFilter(reasons=(Reason.STALE,)))) == []
    with pytest.raises(WrongArgument, match="no source odd"):
        client.rejected.list(RejectionFilter(source="odd"))


def test_a_list_whose_budget_is_spent_is_partial(
    client: InboxClient, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    several(inbox)
    monkeypatch.setattr("webhook_inbox.client.budget.ROWS", 2)
    found = client.reading(timedelta(seconds=60)).rejected.list()
    assert len(list(found)) == 2
    assert found.partial


def test_one_delivery_is_found_by_its_id(client: InboxClient, inbox: Inbox) -> None:
    several(inbox, 1)
    found = client.rejected.get(only(client).id)
    assert (found.source, found.reason) == ("acme", Reason.INVALID_SIGNATURE)
    assert found.headers["x-acme-signature"] == "(stored, not shown)"
    for id_ in ("", "0-1", "9" * 5000):
        with pytest.raises(NotFound, match="no rejected delivery"):
            client.rejected.get(id_)


def test_personal_fields_are_masked_unless_the_audit_names_the_reader(
    client: InboxClient, cli: Cli, inbox: Inbox
) -> None:
    reject(inbox, body=b'{"email": "ada@example.com"}')
    acme = replace(MANIFEST.sources["acme"], personal=("email",))
    cli.manifest = replace(MANIFEST, sources={**MANIFEST.sources, "acme": acme})
    client = InboxClient(cli._connect(Selection()), write=True, clock=inbox.clock)
    id_ = only(client).id
    assert b"ada@example.com" not in client.rejected.body(id_)
    inbox.plan.fail("PutItem")
    with pytest.raises(Unavailable):
        client.rejected.body(id_, personal_to=client.actor())
    with pytest.raises(Refused, match="only reads"):
        client.reading().rejected.body(id_, personal_to=client.actor())
    assert audited(inbox) == []
    assert b"ada@example.com" in client.rejected.body(id_, personal_to=client.actor())
    assert audited(inbox) == ["show-personal"]


def test_verifying_tells_what_a_release_would_do_and_writes_nothing(
    client: InboxClient, inbox: Inbox
) -> None:
    several(inbox, 2)
    inbox.deliver("forged", secret="of-a-stranger")
    before = inbox.rows("")
    results = list(client.reading().rejected.verify())
    assert [each.result for each in results] == ["valid", "valid", "invalid"]
    assert [each.event_id for each in results] == ["evt-0", "evt-1", None]
    assert [each.result.is_fine for each in results] == [True, True, False]
    assert client.rejected.verify(limit=1).full is False
    assert inbox.rows("") == before
    diagnosis = client.reading().rejected.diagnose(results[0].id, source="acme")
    assert diagnosis.failed is None


def test_a_reading_client_releases_nothing(client: InboxClient, inbox: Inbox) -> None:
    several(inbox, 1)
    with pytest.raises(Refused, match="only reads"):
        client.reading().rejected.release(by=client.actor())
    assert audited(inbox) == []


def test_a_release_is_audited_and_accepted_once(client: InboxClient, inbox: Inbox) -> None:
    several(inbox, 2)
    inbox.plan.fail("PutItem")
    with pytest.raises(Unavailable, match="0 were accepted so far"):
        client.rejected.release(by=client.actor()).complete()
    assert only_events(inbox) == []
    operation = client.rejected.release(reason="right again", by=client.actor("kim"))
    assert [each.result for each in operation] == ["accepted", "accepted"]
    assert dict(operation.counts) == {"accepted": 2}
    [row] = inbox.rows("audit#")
    assert (row["by"], row["reason"], row["counts"]) == (CALLER, "right again", {"accepted": 2})
    again = client.rejected.release(by=client.actor()).complete()
    assert dict(again.counts) == {"released": 2}


def only_events(inbox: Inbox) -> list[str]:
    now = inbox.now
    found = inbox.ledger.received(now - timedelta(hours=1), now + timedelta(minutes=1))
    return [each.event_id for each in found]


def test_a_stopped_release_leaves_the_rest(client: InboxClient, inbox: Inbox) -> None:
    several(inbox)
    operation = client.rejected.release(by=client.actor())
    assert next(operation).event_id == "evt-0"
    operation.stop()
    assert list(operation) == []
    assert only_events(inbox) == ["evt-0"]


def test_the_kinds_of_errors(client: InboxClient, inbox: Inbox) -> None:
    several(inbox, 1)
    by = client.actor()
    with pytest.raises(NotFound, match="no rejected delivery 0-1"):
        client.rejected.release(RejectionFilter(ids=("0-1",)), by=by)
    with pytest.raises(Refused, match="has no source acme"):
        client.rejected.verify(manifest=replace(MANIFEST, sources={}))
    more = replace(MANIFEST, handlers={"acme.fulfil": replace(FULFIL, lane="bulk")})
    with pytest.raises(Refused, match="no lane bulk: deploy first"):
        client.rejected.release(manifest=more, by=by)
    assert audited(inbox) == []


def test_the_outcomes_are_those_of_the_release() -> None:
    verdicts = {ReleaseOutcome(each) for each in ReleaseVerdict}
    taken = {*STORED, IngestOutcome.REPLAYED, IngestOutcome.CONFLICT}
    assert set(ReleaseOutcome) == verdicts | {ReleaseOutcome(each) for each in taken}
    assert {each for each in ReleaseOutcome if each.is_stored} == {
        ReleaseOutcome(each) for each in (*STORED, "replayed", "released")
    }
