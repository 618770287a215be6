"""The incidents of `test_incidents`, resolved in a browser by the console alone."""

import getpass
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.conftest import browser
from tests.proof.incident import project
from tests.proof.incident.browser_operator import REASON, BrowserOperator
from tests.proof.incident.operator import listed
from tests.proof.incident.scene import Incident, incident_in
from tests.waiting import eventually

__all__ = ["browser"]

LINK = re.compile(r"Console: (http://127\.0\.0\.1:\d+/\?token=\S+)")
HANDLER, DESTINATION, SOURCE = "github.order", "erp", "github"
ACTIONS = {
    "pause",
    "resume",
    "replay",
    "open circuit",
    "close circuit",
    "set secret",
    "release",
}


@pytest.fixture(scope="module")
def incident(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Incident]:
    with incident_in(tmp_path_factory.mktemp("incident")) as running:
        yield running


@pytest.fixture
def operator(incident: Incident, browser: Browser) -> Iterator[BrowserOperator]:
    link = LINK.search(incident.session.text)
    assert link is not None, incident.session.text
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-US")
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    made = BrowserOperator(page)
    made.enter(link[1])
    yield made
    context.close()
    assert errors == []


def test_a_bad_deployment(incident: Incident, operator: BrowserOperator) -> None:
    incident.break_deployment()
    operator.waits_for("Dead letters", "KeyError at functions/handlers/orders.py")
    operator.acts("Handlers", HANDLER, "Pause the handler")
    incident.deploy(project.ORDERS)
    operator.acts("Handlers", HANDLER, "Resume the handler")
    operator.replays_group("KeyError")
    operator.replays_until_none_is_dead()


def test_a_downstream_outage(incident: Incident, operator: BrowserOperator) -> None:
    incident.break_destination()
    operator.waits_for("Destinations", "open")
    operator.acts("Destinations", DESTINATION, "Open the circuit")
    incident.erp.down = False
    operator.acts("Destinations", DESTINATION, "Close the circuit")
    operator.replays_group("answered 503")
    operator.replays_until_none_is_dead()
    assert operator.sees("Destinations", "closed")


def test_a_rotated_secret_with_the_wrong_value(
    incident: Incident, operator: BrowserOperator
) -> None:
    right = incident.provider.secret
    incident.break_secret()
    operator.waits_for("Rejected", "invalid-signature")
    assert "no delivery is valid: correct the secret first" in operator.verifies()
    operator.sets_secret(SOURCE, right)
    assert re.search("Release the [1-9]", operator.verifies())
    assert eventually(lambda: incident.provider.order("after-the-correction") in {200, 202})
    operator.releases_until(
        lambda: all(incident.erp.orders[title] == 1 for title in incident.provider.refused)
    )


def test_every_event_is_done_once_and_the_audit_has_each_step(incident: Incident) -> None:
    incident.end()
    rows = listed(incident.root, "audit", "--limit", "1000")
    named = [row for row in rows if row["reason"] == REASON]
    assert {row["action"] for row in named} == ACTIONS
    assert {(row["by"], row["proof"]) for row in named} == {(getpass.getuser(), "local")}
    assert [row for row in named if not row["counts"]] == []
