"""One run: delivers, injects faults, waits and checks."""

import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from scripts.realinput.chaos import Chaos, moved_by_sqs, webhookctl
from scripts.realinput.delivery import Sender, wait_until
from scripts.realinput.judgement import Claim, Expected, Observer, claims
from scripts.realinput.payloads import Payload
from scripts.realinput.session import FUNCTIONS, Session
from webhook_inbox.adapters.aws.account import loopback_client
from webhook_inbox.configuration.compile import compile_manifest
from webhookctl.errors import CommandError
from webhookctl.local.inbox import LocalInbox

# The sink stops once one in so many events was delivered.
SHARE_BEFORE_OUTAGE: Final = 4


@dataclass(slots=True)
class Result:
    """The result of a run."""

    counts: dict[str, object] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """True if every claim holds."""
        return all(claim.holds for claim in self.claims)


class Run:
    """One run of all payloads through a session."""

    def __init__(self, session: Session, payloads: Sequence[Payload], *, seed: int) -> None:
        """Takes the session, the payloads and the seed of their randomness."""
        self._session = session
        self._payloads = payloads
        self._randomness = random.Random(seed)  # noqa: S311 - to be repeatable
        self._sender = Sender(session.front, session.secrets)
        self._observer = Observer(
            Expected.of(payloads, compile_manifest(FUNCTIONS, stage="local")),
            client=loopback_client(
                "dynamodb", endpoint=session.endpoint, credentials=session.credentials
            ),
            table=session.outputs["TableName"],
            sink=session.sink,
        )
        self.result = Result()

    def plain(self, *, end: float) -> None:
        """Delivers and checks, without faults."""
        self._deliver(end)
        self._wait(end)
        self._judge()
        requests = [effect["requests"] for found in self._effects() for effect in found]
        self._claim("no handler was called twice", set(requests) <= {1})

    def chaotic(self, *, end: float, outage: float) -> None:
        """Delivers under faults, replays the dead runs, and checks."""
        inbox = self._session.inbox
        if inbox is None:
            message = "chaos needs a session of its own"
            raise CommandError(message)
        chaos = Chaos(inbox, self._randomness, outage=outage, end=end)
        some = len(self._payloads) // SHARE_BEFORE_OUTAGE
        with chaos.during(when=lambda: self._sender.events_begun >= some):
            self._deliver(end)
        self._wait(end)
        self.result.counts |= {
            "kills": chaos.kills,
            "workers killed": chaos.killed + chaos.killed_ingest,
            "of these, ingest workers": chaos.killed_ingest,
            "attempts lost with their worker": self._outcomes()["lost"],
            "attempts failed without the sink": self._outcomes()["failed"],
        }
        self._claim("workers were killed during handlers", self._outcomes()["lost"] > 0)
        self._replay(inbox, end)
        self._judge()
        requests = [effect["requests"] for found in self._effects() for effect in found]
        self.result.counts["effects requested again"] = sum(number > 1 for number in requests)

    def _replay(self, inbox: LocalInbox, end: float) -> None:
        dead = self._observer.dead
        events = {run.event_id for run in dead}
        self.result.counts["dead runs"] = len(dead)
        self._claim("some runs died", bool(dead))
        in_dlq = wait_until(lambda: moved_by_sqs(inbox, dead), end=end)
        self._claim("SQS moved each message to the dead-letter queue", in_dlq)
        listing = ("inbox", "list", "--status", "dead_letter", "--limit", "100000")
        listed = {event["event_id"] for event in webhookctl(self._session.home, *listing)}
        self._claim("`inbox list --status dead_letter` lists exactly these", listed == events)
        webhookctl(
            self._session.home,
            "replay",
            "--status",
            "dead_letter",
            "--yes",
            "--rate",
            "100",
            "--reason",
            "sink back",
        )
        self._observer.refresh_dead()
        self._wait(end, after="the replay")
        replayed = [run for run in self._observer.runs if run.replays]
        self.result.counts["runs replayed"] = len(replayed)

    def _deliver(self, end: float) -> None:
        begun = time.monotonic()
        self._sender.deliver_all(self._payloads, self._randomness, end=end)
        seconds = time.monotonic() - begun
        answers = self._sender.answers
        taken = sum(number for word, number in answers.items() if not word.isdigit())
        self.result.counts |= {
            "events": len(self._payloads),
            "deliveries": taken,
            "seconds to deliver": f"{seconds:.1f}",
            **{f"answered {word}": answers[word] for word in sorted(answers)},
        }

    def _wait(self, end: float, *, after: str = "the last delivery") -> None:
        begun = time.monotonic()
        in_time = wait_until(self._observer.settled, end=end)
        self.result.counts[f"seconds after {after}"] = f"{time.monotonic() - begun:.1f}"
        self._claim(f"every run ended after {after}", in_time)

    def _judge(self) -> None:
        expected = self._observer.expected
        self.result.counts |= {
            "event rows": sum(self._observer.event_rows()[key] for key in expected.stored),
            "runs": len(self._observer.runs),
            "runs done": sum(run.status == "done" for run in self._observer.runs),
            "sink effects": sum(map(len, self._effects())),
        }
        alone = self._session.inbox is not None
        self.result.claims += claims(self._observer, self._sender.by_event, alone=alone)

    def _effects(self) -> list[list[dict[str, Any]]]:
        stored = self._observer.expected.stored
        return [found for name, found in self._observer.effects().items() if name[:2] in stored]

    def _outcomes(self) -> Counter[str]:
        return Counter(a.outcome for run in self._observer.runs for a in run.attempts)

    def _claim(self, text: str, holds: bool) -> None:  # noqa: FBT001 - a claim and whether it holds
        self.result.claims.append(Claim(text, holds))
