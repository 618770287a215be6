"""Incidents under load on the local runtime, resolved with the runbook's commands alone.

The scenes share one session and run in this order. Each takes its commands from docs/runbook.md.
"""

import getpass
import re
import time
from collections.abc import Iterator
from itertools import groupby

import pytest

from tests.proof.incident import project
from tests.proof.incident.operator import Printed, listed
from tests.proof.incident.scene import BAD_SECONDS, Incident, incident_in
from tests.waiting import DEADLINE, eventually
from webhook_inbox.domain.secrets import REFRESH_PAUSE

POISON, IGNORED, UNHANDLED = "poison", "ignored", "unhandled"
STEPS = [
    "pause",
    "resume",
    "replay",
    "open circuit",
    "close circuit",
    "replay",
    "skip",
    "replay",
    "set secret",
    "release",
    "rotate secret",
    "revoke secret",
]
NEW = "the-new-value-after-the-theft"


@pytest.fixture(scope="module")
def incident(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Incident]:
    with incident_in(tmp_path_factory.mktemp("incident")) as running:
        yield running


def nothing(printed: Printed) -> bool:
    """Tells whether `inbox errors` found nothing."""
    return "No failing or dead runs found." in printed.text


def test_a_bad_deployment(incident: Incident) -> None:
    incident.break_deployment()
    walk = incident.walk("bad-deployment")
    assert "KeyError at functions/handlers/orders.py" in walk.give("inbox errors").text
    walk.give("handlers pause")
    incident.deploy(project.ORDERS)
    walk.give("handlers resume")
    first = walk.give("replay --handler", CLASS="KeyError")
    assert "since then: 1 done" in first.text
    walk.give("replay --selection", ID=first.selection)
    assert eventually(lambda: incident.dead() == [], seconds=DEADLINE + BAD_SECONDS)
    walk.repeat("inbox errors", until=nothing)
    walk.end()


def test_a_downstream_outage(incident: Incident) -> None:
    incident.break_destination()
    walk = incident.walk("downstream-down")
    assert re.search("open|recovering", walk.give("destinations list").text)
    walk.give("destinations open")
    incident.erp.down = False
    walk.give("destinations close")
    first = walk.give("replay --error-contains")
    assert "since then: 1 done" in first.text
    walk.give("replay --selection", ID=first.selection)
    assert eventually(lambda: incident.dead() == [])
    assert "closed" in walk.give("destinations list").text
    walk.repeat("inbox errors", until=nothing)
    walk.end()


def test_a_poison_event(incident: Incident) -> None:
    assert incident.provider.send(POISON, {"number": 1})[0] == 202
    assert eventually(lambda: incident.status(POISON) == "dead_letter")

    walk = incident.walk("poison-event")
    assert "KeyError" in walk.give("inbox errors").text
    walk.give("inbox inspect", EVENT_ID=POISON)
    walk.give("skip", EVENT_ID=POISON)
    assert getpass.getuser() in walk.give("inbox inspect", EVENT_ID=POISON).text
    walk.end()
    assert incident.status(POISON) == "skipped"


def test_an_unknown_type(incident: Incident) -> None:
    provider = incident.provider
    assert provider.order(IGNORED, action="closed") == 200
    assert provider.order(UNHANDLED, action="labeled") == 202

    walk = incident.walk("unknown-type")
    assert "issues.closed" in walk.give("inbox ignored").text
    project.write_types(incident.root, project.MORE_TYPES, erp=incident.erp.url)
    project.write_handlers(incident.root, project.MORE_ORDERS)
    walk.leave("sources reconcile")

    def ordered() -> bool:
        # The answer to the accepted delivery may be lost; the next one is then a duplicate.
        provider.order(IGNORED, action="closed")
        return incident.erp.orders[IGNORED] == 1

    assert eventually(ordered, what=lambda: incident.session.text)
    walk.give("replay EVENT_ID", EVENT_ID=UNHANDLED)
    assert eventually(lambda: incident.erp.orders[UNHANDLED] == 1)
    assert "done" in walk.give("inbox inspect", EVENT_ID=UNHANDLED).text
    walk.end()


def test_a_rotated_secret_with_the_wrong_value(incident: Incident) -> None:
    provider = incident.provider
    incident.break_secret()
    walk = incident.walk("bad-secret")
    assert "invalid-signature" in walk.give("rejected list").text
    walk.give("secrets set", stdin=provider.secret)
    # Exit status 1: the forged deliveries among them are invalid.
    assert re.search(r" [1-9]\d* valid", walk.give("rejected release", code=1).text)
    assert eventually(lambda: provider.order("after-the-correction") in {200, 202})
    # Another worker of ingest may still reject with the wrong value.
    walk.repeat("rejected release", until=lambda _: incident.missing == {})
    assert "after-the-correction" in walk.give("inbox list").text
    walk.end()


def test_a_stolen_secret(incident: Incident) -> None:
    provider, stolen = incident.provider, incident.provider.secret
    walk = incident.walk("stolen-secret")
    assert "one value" in walk.give("secrets status").text
    walk.give("secrets rotate", stdin=NEW)
    usable = time.monotonic() + REFRESH_PAUSE.total_seconds()
    renewed = {"number": 1, "title": "renewed"}
    assert eventually(lambda: provider.send("renewed", renewed, secret=NEW)[0] == 202)
    # A worker of ingest that has just read the secrets does not read them again before.
    assert eventually(lambda: time.monotonic() > usable)
    provider.secret = NEW
    walk.give("secrets revoke")
    walk.give("inbox list")
    issue = {"number": 1, "title": "theft"}

    def refused() -> bool:
        return provider.forge() and provider.send("theft", issue, secret=stolen)[0] == 401

    assert eventually(refused)
    assert "one value" in walk.give("secrets status").text
    walk.end()


def test_every_event_is_done_once_and_the_audit_has_each_step(incident: Incident) -> None:
    incident.end()
    rows = listed(incident.root, "audit", "--limit", "1000")
    rows.reverse()
    assert {(row["by"], row["proof"]) for row in rows} == {(getpass.getuser(), "local")}
    assert [row for row in rows if not row["counts"]] == []
    assert [step for step, _ in groupby(row["action"] for row in rows)] == STEPS
    replayed = [row["counts"] for row in rows if row["action"] == "replay"]
    assert all(counts["replayed"] >= 1 for counts in replayed[:-1]), replayed
    released = next(row for row in rows if row["action"] == "release")
    assert released["counts"]["accepted"] >= 3
