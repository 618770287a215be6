"""The causes that make a run a dead letter.

    DeathCause ──► ledger/settle: death ──► by the lease's holder: settle
                                       └──► without a lease: give_up

Nothing else writes the status. A message in the DLQ is not a cause: SQS moves the message of a run
that is dead, or one that names no run. The reconciler resends a live run whose message was moved.
"""

from enum import Enum
from typing import Final

# The steps before a replay, by the first word of a dead run's error.
REMEDIES: Final = {
    "permanent": "retrying will not help; fix the cause, deploy,",
    "exhausted": "every attempt failed; after fixing the cause,",
    "expired": "it waited for too long; if its event expired, ask the provider to resend it; else",
    "lost": "its messages were never received; check that the processor runs, then",
}


class DeathCause(Enum):
    """Why a run is dead.

    Attributes:
        word: the first word of the run's error, by which its remedy is found.
        meaning: the cause, as the operator's page has it.
    """

    PERMANENT = (
        "permanent",
        "an attempt raised `Permanent`: the handler itself, a destination's answer such as 422, a"
        " body that is invalid or gone, a missing ordering key, an approval that expired, a job"
        ' that failed, a gap with `on_gap="dead"`, batch items that were not accepted, or a wrong'
        " use of `ctx`",
    )
    UNKNOWN_HANDLER = "permanent", "the deployment has not had its handler for an hour"
    EXHAUSTED = (
        "exhausted",
        "its last attempt failed, and its handler's `max_attempts`, or the error itself, allows no"
        " other",
    )
    UNREPORTED = (
        "exhausted",
        "its last worker stopped without a result, or a deployment lowered `max_attempts`, and no"
        " attempt is left",
    )
    OVER_AGE = "expired", "it would have to wait past its handler's `max_age`"
    EVENT_EXPIRED = "expired", "it still waited, or was held, when its event expired after 35 days"
    NEVER_RECEIVED = "lost", "the reconciler sent it six times, and no worker received it"

    def __init__(self, word: str, meaning: str) -> None:
        self.word = word
        self.meaning = meaning

    def error_text(self, detail: str) -> str:
        """Returns the error of a run that this made a dead letter."""
        return f"{self.word}: {detail}"
