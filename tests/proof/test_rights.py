"""Each right of each role is needed: without it, the function's outcomes differ.

The rights are read from the deployed roles, so a right that no outcome needs fails here until it is
removed or is listed with the reason why the local runtime cannot tell.
"""

from collections.abc import Iterator

import pytest

from tests.proof.rights.facts import facts_of
from tests.proof.rights.inbox import Right, RightsInbox

FUNCTIONS = (
    "reconciler",  # first: it looks after the runs that the others leave
    "ingest",
    "processor default",
    "processor fragile",
    "processor accounts",
    "replay",
)
LOGS = "the local runtime collects a function's logs itself"
POLLING = "the local runtime polls with its own rights, as no function calls this on its own queue"
# By kind of function, action and kind of resource.
NOT_EVALUATED = {
    **{
        (kind, action, "logs"): LOGS
        for kind in ("ingest", "processor", "replay", "reconciler")
        for action in ("logs:CreateLogStream", "logs:PutLogEvents")
    },
    ("processor", "sqs:ReceiveMessage", "queue"): POLLING,
    ("processor", "sqs:DeleteMessage", "queue"): POLLING,
    ("processor", "sqs:GetQueueAttributes", "queue"): POLLING,
    **{
        (kind, "s3:ListBucket", "bucket"): "S3 answers 403 for a missing object without it; the"
        " local runtime answers 404"
        for kind in ("processor", "replay")
    },
}


@pytest.fixture(scope="module")
def inbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RightsInbox]:
    with RightsInbox(tmp_path_factory.mktemp("rights")) as running:
        running.enrol()
        running.serve_lanes_by_hand()
        yield running


def test_every_function_is_examined(inbox: RightsInbox) -> None:
    assert sorted(FUNCTIONS) == sorted(inbox.functions_by_name())


def test_every_exception_is_of_a_right_that_is_granted(inbox: RightsInbox) -> None:
    assert set(NOT_EVALUATED) <= {_kind(right) for right in inbox.granted()}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_right_is_needed(inbox: RightsInbox, function: str) -> None:
    facts_of(inbox, function)  # The first outcomes are those of a cold process.
    usual = facts_of(inbox, function)
    assert facts_of(inbox, function) == usual, "outcomes are the same each time"
    needless = [
        str(right)
        for right in inbox.granted()
        if right.function == function and _kind(right) not in NOT_EVALUATED
        if not _is_needed(inbox, right, usual)
    ]
    inbox.restart(function)
    assert facts_of(inbox, function) == usual, "the rights are restored"
    assert needless == []


def _is_needed(inbox: RightsInbox, right: Right, usual: object) -> bool:
    with inbox.lacking(right):
        if facts_of(inbox, right.function) != usual:
            return True
        # A process keeps the secrets and the rows that it has read.
        inbox.restart(right.function)
        return facts_of(inbox, right.function) != usual


def _kind(right: Right) -> tuple[str, str, str]:
    return right.function.partition(" ")[0], right.action, right.on
