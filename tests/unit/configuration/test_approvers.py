"""The groups of inbox.toml, and the `Approval(…)` of handlers that name them."""

from pathlib import Path

import pytest

from tests.unit.configuration.inbox_files import fault, load
from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import ApproversSpec, Manifest

TOPIC = "arn:aws:sns:eu-central-1:123456789012:finance"
CHAT = '[destinations.slack]\nbase_url = "https://slack.com/api"\n'
GROUP = f"""
[approvers.finance]
people = {{ ann = "slack:U0123456", "bob.r" = "sns:{TOPIC}" }}
"""
BOARD = '[approvers.board]\npeople = { eve = "slack:U9" }\n'
LATER = GROUP + 'escalate_after = "4h"\nescalate_to = "board"\n'

pytestmark = pytest.mark.usefixtures("in_the_project")


def test_a_group_has_people_and_the_group_that_is_asked_next() -> None:
    found = load(CHAT + LATER + BOARD).approvers
    people = {"ann": "slack:U0123456", "bob.r": f"sns:{TOPIC}"}
    assert found["finance"] == ApproversSpec("finance", people, 4 * 3600, "board")
    assert found["board"] == ApproversSpec("board", {"eve": "slack:U9"})


def test_a_stage_has_people_of_its_own() -> None:
    own = '[stages.prod.approvers.finance.people]\nann = "slack:U7"\n'
    assert load(CHAT + GROUP + own, stage="prod").approvers["finance"].people["ann"] == "slack:U7"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[approvers.finance]\n", "[approvers.finance] people: missing; give how each person"),
        ("[approvers.finance]\npeople = {}\n", "[approvers.finance] people: "),
        (GROUP, 'people.ann: no destination "slack"; add [destinations.slack]'),
        (CHAT + GROUP.replace("slack:U", "slak:U"), 'did you mean "slack"?'),
        (CHAT + GROUP.replace("slack:U0123456", "U0123456"), '"U0123456" is no address'),
        (CHAT + GROUP.replace("arn:aws:sns", "arn:aws:sqs"), "is not the ARN of a topic"),
        (CHAT + GROUP.replace("ann =", "Ann ="), '"Ann" is not a person\'s name'),
        (CHAT + LATER, 'escalate_to: no group "board"; add [approvers.board]'),
        (CHAT + LATER.replace('"board"', '"finance"'), "escalate_to: the group itself"),
        (CHAT + GROUP + 'escalate_after = "4h"\n', "escalate_after and escalate_to go together"),
        (CHAT + LATER.replace('"4h"', '"soon"') + BOARD, '"soon" is not a duration'),
        (
            CHAT + GROUP.replace(f"sns:{TOPIC}", "slack:U0123456"),
            '[approvers.finance] "slack:U0123456" is the address of ann and bob.r',
        ),
        (
            CHAT + LATER + BOARD.replace("U9", "U0123456"),
            '[approvers.finance] "slack:U0123456" is the address of ann and eve',
        ),
        (CHAT + GROUP + 'escalate_too = "x"\n', 'unknown key; did you mean "escalate_to"?'),
    ],
)
def test_a_group_that_cannot_be_asked_is_refused(text: str, why: str) -> None:
    assert why in fault(text)


def test_a_manifest_without_groups_is_as_before() -> None:
    assert "approvers" not in Manifest().to_data()


def test_groups_survive_in_the_manifest() -> None:
    manifest = Manifest(approvers=load(CHAT + LATER + BOARD).approvers)
    assert Manifest.from_data(manifest.to_data()) == manifest


# -- what handlers name

HEAD = "from webhook_inbox import Approval, Router\nshop = Router('shop')\n@shop.on('*')\n"


def compiled(tmp_path: Path, approval: str) -> Manifest:
    root = tmp_path / "functions"
    (root / "handlers").mkdir()
    (root / "handlers" / "__init__.py").write_text("MODULES = ('shop',)\n")
    code = f"def pay(event, ctx):\n    ctx.effect('pay', print, args=1, approve={approval})\n"
    (root / "handlers" / "shop.py").write_text(HEAD + code)
    source = '[sources.shop]\nprovider = "github"\n'
    (root / "inbox.toml").write_text(source + CHAT + GROUP)
    return compile_manifest(root, stage="local")


@pytest.mark.parametrize(
    "approval",
    [
        "Approval('finance', 2)",
        "Approval(by='finance', count=2, expires='12h')",
        "event.large and Approval(by=event.group, count=event.count)",
    ],
)
def test_an_approval_that_the_group_can_give_is_fine(tmp_path: Path, approval: str) -> None:
    assert "finance" in compiled(tmp_path, approval).approvers


@pytest.mark.parametrize(
    ("approval", "why"),
    [
        (
            "Approval(by='finanze')",
            'inbox.toml has no group "finanze" (it has: finance); did you mean "finance"?'
            " Otherwise add [approvers.finanze]",
        ),
        (
            "Approval('finance', 3)",
            "count=3, and [approvers.finance] has 2 people; add people or ask fewer",
        ),
        ("Approval('finance', count=0)", "count=0; use 1 or more"),
        ("Approval('finance', expires='soon')", 'expires: "soon" is not a duration'),
        ("Approval('finance', expires='30d')", "expires: 30 days"),
    ],
)
def test_one_that_it_cannot_give_is_refused_with_its_line(
    tmp_path: Path, approval: str, why: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        compiled(tmp_path, approval)
    assert str(refused.value).startswith("functions/handlers/shop.py:5: Approval: ")
    assert why in str(refused.value)
