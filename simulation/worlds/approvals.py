"""Small worlds about requests that people decide: `approve=Approval(…)`."""

from dataclasses import replace
from typing import Final

from simulation.engine.acting import Behavior
from simulation.worlds.builders import FIRST, world
from simulation.worlds.scenario import FAILS, Deployment, handler, manifest
from webhook_inbox.domain.manifest import ApproversSpec, DestinationSpec
from webhook_inbox.handlers.effects.plan import Approval
from webhook_inbox.replay.request import ReplayRequest

CHAT: Final = DestinationSpec("chat", "https://chat.example")
FINANCE: Final = ApproversSpec("finance", {"ann": "chat:/ann", "bob": "chat:/bob"})
BOARD: Final = ApproversSpec("board", {"eve": "chat:/eve"})
LATER: Final = replace(FINANCE, escalate_after=3600.0, escalate_to="board")
ALONE: Final = ApproversSpec("finance", {"ann": "chat:/ann"})
TWO: Final = Approval(by="finance", count=2)
ONE: Final = Approval(by="finance")
REPLAYED: Final = ReplayRequest(event_ids=("e1",), handler="mail", rate_per_second=500)
HERE: Final = replace(FIRST, preloaded=True)


def asking(name: str, approval: Approval, *groups: ApproversSpec, amount: str = "1") -> Deployment:
    """Returns a deployment whose handler asks people before its effect."""
    return Deployment(
        name,
        manifest(handler("mail"), sink=CHAT, approvers=groups),
        behaviors={
            "mail": Behavior(journals=True, in_doubt="hold", approve=approval, amount=amount)
        },
    )


ASKS_TWO: Final = asking("two", TWO, FINANCE)
ASKS_ONE: Final = asking("one", ONE, ALONE)

APPROVAL_WORLDS: Final = (
    world(
        "two people decide",
        HERE,
        on=ASKS_TWO,
        workers=1,
        receivers=1,
        faults=(),
        budget={"decisions": 2},
    ),
    world(
        "a decision while the run is being held",
        HERE,
        on=ASKS_ONE,
        workers=1,
        receivers=1,
        faults=("killed",),
        budget={"decisions": 1, "faults": 1},
    ),
    world(
        "a decision whose answer is lost",
        HERE,
        on=ASKS_ONE,
        workers=1,
        receivers=1,
        faults=("after", "twice"),
        budget={"decisions": 1, "faults": 1},
    ),
    world(
        "a decision at the end of a request",
        HERE,
        on=ASKS_ONE,
        workers=1,
        receivers=1,
        faults=(),
        budget={"decisions": 1, "jumps": 2},
    ),
    world(
        "a request with other arguments",
        HERE,
        on=ASKS_ONE,
        then=(asking("other amount", ONE, ALONE, amount="2"),),
        requests=(REPLAYED,),
        workers=1,
        receivers=1,
        faults=(),
        budget={"decisions": 1, "deployments": 1, "replays": 1},
    ),
    world(
        "a request that escalates",
        HERE,
        on=asking("escalating", ONE, LATER, BOARD),
        workers=1,
        receivers=1,
        faults=("before", "killed", "frozen"),
        budget={"faults": 1, "jumps": 2},
    ),
    world(
        "an approved effect that fails",
        HERE,
        on=ASKS_ONE,
        outcomes={"mail": (FAILS,)},
        workers=1,
        receivers=1,
        faults=(),
        budget={"decisions": 1, "failures": 1},
    ),
)
