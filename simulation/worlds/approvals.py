"""Small worlds about requests that people decide: `approve=Approval(…)`."""

from dataclasses import replace
from typing import Final

from simulation.engine.acting import Behavior
from simulation.worlds.builders import FIRST, world
from simulation.worlds.scenario import FAILS, Deployment, handler, manifest
from webhook_inbox.domain.manifest import ApproversSpec, DestinationSpec
from webhook_inbox.handlers.effects.plan import Approval

CHAT: Final = DestinationSpec("chat", "https://chat.example")
FINANCE: Final = ApproversSpec("finance", {"ann": "chat:/ann", "bob": "chat:/bob"})
BOARD: Final = ApproversSpec("board", {"eve": "chat:/eve"})
LATER: Final = replace(FINANCE, escalate_after=3600.0, escalate_to="board")
SOON: Final = ApproversSpec("finance", {"ann": "chat:/ann"}, 3600.0, "board")
ALONE: Final = ApproversSpec("finance", {"ann": "chat:/ann"})
TWO: Final = Approval(by="finance", count=2)
ONE: Final = Approval(by="finance")
SHORT: Final = Approval(by="finance", expires="1m")
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
        workers=0,
        receivers=1,
        faults=(),
        budget={"decisions": 2},
        begun=True,
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
        begun=True,
    ),
    world(
        "a decision at the end of a request",
        HERE,
        on=asking("short", SHORT, ALONE),
        workers=1,
        receivers=1,
        faults=(),
        budget={"decisions": 1, "jumps": 1},
        begun=True,
    ),
    world(
        "a request with other arguments",
        HERE,
        on=asking("escalating", ONE, SOON, BOARD),
        then=(asking("other amount", ONE, SOON, BOARD, amount="2"),),
        workers=1,
        receivers=1,
        faults=(),
        budget={"decisions": 1, "deployments": 1},
        begun=True,
    ),
    world(
        "a request that escalates",
        HERE,
        on=asking("escalating", ONE, LATER, BOARD),
        workers=1,
        receivers=1,
        faults=(),
        budget={},
    ),
    world(
        "a request that escalates, with a fault",
        HERE,
        on=asking("escalating", ONE, LATER, BOARD),
        workers=1,
        receivers=1,
        faults=("before", "killed"),
        budget={"faults": 1},
    ),
    world(
        "a message that fails",
        HERE,
        on=ASKS_ONE,
        workers=1,
        receivers=1,
        faults=("before", "after", "frozen"),
        budget={"faults": 1},
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
