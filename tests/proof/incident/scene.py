"""The incidents: a running inbox, its destination and its provider under load."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.proof.incident import project
from tests.proof.incident.erp import Erp
from tests.proof.incident.operator import Walk, listed, webhookctl
from tests.proof.incident.provider import SLOW, Provider
from tests.waiting import DEADLINE, eventually
from tests.webhookctl.local.test_session import GITHUB, READY, Session
from webhookctl.local import dev_secrets

RELOADED: Final = "reloaded: processor"
WRONG: Final = "not-the-provider-s-value"
# How long the bad deployment stays at least; CI has no ten minutes for it.
BAD_SECONDS: Final = float(os.environ.get("BAD_DEPLOYMENT_SECONDS", "0"))


@dataclass
class Incident:
    """A running inbox, its destination, its provider and its operator."""

    session: Session
    erp: Erp
    provider: Provider

    @property
    def root(self) -> Path:
        return self.session.root

    def walk(self, anchor: str) -> Walk:
        return Walk(self.root, anchor)

    def deploy(self, handlers: str) -> None:
        """Deploys handlers, and waits until they run."""
        before = self.session.text.count(RELOADED)
        project.write_handlers(self.root, handlers)
        assert eventually(lambda: self.session.text.count(RELOADED) > before), self.session.text

    def dead(self) -> list[dict[str, Any]]:
        return listed(self.root, "inbox", "list", "--status", "dead_letter", "--limit", "10000")

    def status(self, event_id: str) -> str:
        [event] = listed(self.root, "inbox", "inspect", event_id)
        return str(event["status"])

    def break_deployment(self) -> None:
        """Deploys a handler that fails for every event, and waits until runs are dead."""
        assert eventually(lambda: len(self.erp.orders) >= 3), self.session.text
        fixed_at = time.monotonic() + BAD_SECONDS
        self.deploy(project.BROKEN)
        assert eventually(lambda: len(self.dead()) >= 5)
        assert eventually(lambda: time.monotonic() >= fixed_at, seconds=DEADLINE + BAD_SECONDS)

    def break_destination(self) -> None:
        """Lets the destination answer 503 until runs are dead and its circuit is open."""
        self.erp.down = True
        assert eventually(lambda: len(self.dead()) >= 2)

        def opened() -> bool:
            [erp] = listed(self.root, "destinations", "list")
            return erp["circuit"] in {"open", "recovering"}

        # The runs that failed before it opened are dead; the others wait for it.
        assert eventually(opened), self.session.text

    def break_secret(self) -> None:
        """Sets the secret to a wrong value, and waits until deliveries are rejected."""
        self.provider.interval = SLOW
        webhookctl(self.root, "secrets", "set", "github", "--replace", stdin=WRONG)

        def rejects() -> bool:
            self.provider.forge()
            return self.provider.rejected() >= 3

        assert eventually(rejects)

    @property
    def missing(self) -> dict[str, int]:
        """The orders that were sent and not made exactly once, with their number."""
        orders = self.erp.orders
        return {title: orders[title] for title in list(self.provider.sent) if orders[title] != 1}

    @property
    def unsettled(self) -> set[str]:
        """The events that were sent and are not done."""
        done = listed(self.root, "inbox", "list", "--status", "done", "--limit", "10000")
        return set(self.provider.sent) - {each["event_id"] for each in done}

    def end(self) -> None:
        """Ends the load; every event is done, and its order was made once."""
        self.provider.stop()
        assert eventually(lambda: self.missing == {}), self.missing
        assert set(self.erp.orders.values()) == {1}
        # An order is made before its run is settled.
        assert eventually(lambda: self.unsettled == set()), self.unsettled
        assert len(self.provider.sent) > 50


@contextmanager
def incident_in(place: Path) -> Iterator[Incident]:
    """Runs an inbox in an empty directory, under load."""
    with Erp() as erp:
        root = project.write(place, erp=erp.url)
        session = Session(root)
        try:
            assert session.says(READY), session.text
            secret = dev_secrets.choose(GITHUB, {}, root / ".local")["github"]
            with Provider(session.front, secret) as provider:
                yield Incident(session, erp, provider)
        finally:
            session.stop()
