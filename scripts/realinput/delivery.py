"""Delivers each event one to five times concurrently and retries until acknowledged."""

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException
from typing import Any, Final
from urllib.parse import urlsplit

from scripts.realinput.payloads import Payload

MOST: Final = 5
# Concurrent events, each with its deliveries.
EVENTS_AT_ONCE: Final = 6
PATIENCE: Final = 300.0  # seconds; a busy machine answers late, and an inbox that is down never
PAUSE: Final = 0.5


class Sender:
    """Posts to an inbox and counts the answers."""

    def __init__(self, front: str, secrets: Mapping[str, str]) -> None:
        """Takes the URL of the inbox and the secrets by source."""
        self._front = front
        self._secrets = secrets
        self._lock = threading.Lock()
        self._end = 0.0
        self.answers: Counter[str] = Counter()
        self.by_event: dict[str, Counter[str]] = {}

    @property
    def events_begun(self) -> int:
        """The number of events delivered at least once."""
        with self._lock:
            return len(self.by_event)

    def deliver_all(
        self, payloads: Sequence[Payload], randomness: random.Random, *, end: float
    ) -> None:
        """Delivers every event one to five times, the deliveries of one event concurrently.

        No delivery starts after `end`, a monotonic time.
        """
        self._end = end
        jobs = [(payload, randomness.randint(1, MOST)) for payload in payloads]
        with ThreadPoolExecutor(EVENTS_AT_ONCE) as pool:
            for done in [pool.submit(self._deliver, *job) for job in jobs]:
                done.result()

    def _deliver(self, payload: Payload, times: int) -> None:
        with ThreadPoolExecutor(times) as pool:
            numbers = range(times)
            statuses = list(
                pool.map(lambda number: self._until_acknowledged(payload, number), numbers)
            )
        with self._lock:
            self.by_event[payload.event_id] = Counter(statuses)

    def _until_acknowledged(self, payload: Payload, number: int) -> str:
        """Posts until the inbox acknowledges, as a provider retries; returns the status."""
        end = min(time.monotonic() + PATIENCE, self._end)
        while time.monotonic() < end:
            status, content = self._post(payload, number)
            word = content.get("status", "") if status < 300 else str(status)
            with self._lock:
                self.answers[word] += 1
            if status < 500:
                return word
            time.sleep(PAUSE)
        return ""

    def _post(self, payload: Payload, number: int) -> tuple[int, dict[str, Any]]:
        headers, body = payload.request(self._secrets[payload.source], number)
        parts = urlsplit(self._front)
        connection = HTTPConnection(str(parts.hostname), parts.port, timeout=PATIENCE)
        try:
            connection.request("POST", f"/webhooks/{payload.source}", body=body, headers=headers)
            answer = connection.getresponse()
            return answer.status, _parsed(answer.read())
        except (OSError, HTTPException):
            return 599, {}
        finally:
            connection.close()


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def wait_until(holds: Callable[[], bool], *, end: float) -> bool:
    """Waits for a condition until a monotonic time; returns whether it was met."""
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(PAUSE)
    return True
