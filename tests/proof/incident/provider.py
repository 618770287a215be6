"""The provider of the incidents: it signs and sends events, also as a steady load."""

import hashlib
import hmac
import json
import threading
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import count
from typing import Any, Self

from tests.webhookctl.local.projects import post

# Below the 60 rejected deliveries that a source keeps in a minute, where that matters.
SLOW, STEADY = 2.0, 0.3


@dataclass
class Provider:
    """Sends GitHub's events with the secret that it knows.

    Attributes:
        sent: the titles of the orders that it sent, with the status of the last answer.
        interval: seconds between two deliveries of the load.
    """

    url: str
    secret: str
    interval: float = STEADY
    sent: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._ended, self._forged = threading.Event(), 0.0
        self._numbers = count(1)
        self._thread = threading.Thread(target=self._load, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the load."""
        self._ended.set()
        self._thread.join()

    def order(self, title: str, *, action: str = "opened") -> int:
        """Sends an event whose handling is one order, and returns the answer's status."""
        status, _ = self.send(title, {"number": 1, "title": title}, action=action)
        self.sent[title] = status
        return status

    def send(
        self, event_id: str, issue: dict[str, Any], *, action: str = "opened", secret: str = ""
    ) -> tuple[int, Any]:
        """Sends an event of the type `issues`, signed with a secret, by default its own."""
        body = json.dumps({"action": action, "issue": issue}).encode()
        signature = hmac.new((secret or self.secret).encode(), body, hashlib.sha256).hexdigest()
        headers = {
            "Content-Type": "application/json",
            "X-GitHub-Event": "issues",
            "X-GitHub-Delivery": event_id,
            "X-Hub-Signature-256": f"sha256={signature}",
        }
        return post(f"{self.url}/webhooks/github", body, headers)

    def forge(self) -> bool:
        """Sends a forgery, one in two seconds at most, and returns whether it did.

        The inbox then reads its secrets again.
        """
        if time.monotonic() - self._forged < SLOW:
            return False
        self._forged = time.monotonic()
        self.send("forged", {"number": 1}, secret="no-secret-of-the-inbox")
        return True

    def rejected(self) -> int:
        """Returns how many orders were not accepted."""
        return len(self.refused)

    @property
    def refused(self) -> list[str]:
        """The titles of the orders that were not accepted."""
        sent = list(self.sent.items())
        return [title for title, status in sent if status == HTTPStatus.UNAUTHORIZED]

    def _load(self) -> None:
        while not self._ended.wait(self.interval):
            self.order(f"order-{next(self._numbers)}")
