"""The setting `[lanes.NAME] concurrency`, and the lanes that may have it."""

from pathlib import Path

import pytest

from tests.unit.configuration.test_compile import root, write
from tests.unit.configuration.test_serial_lanes import write_serial
from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import Manifest

__all__ = ["root"]


def concurrent(root: Path, lane: str, many: int = 5) -> None:
    with (root / "inbox.toml").open("a") as file:
        file.write(f'\n[lanes."{lane}"]\nconcurrency = {many}\n')


@pytest.mark.parametrize("lane", ["calls", "slow_calls", "slow.calls", "_"])
def test_a_lane_of_one_handler_may_have_concurrency(root: Path, lane: str) -> None:
    write(root, "stripe_pay", source="stripe", function="pay", more=f', lane="{lane}"')
    concurrent(root, lane)

    manifest = compile_manifest(root, stage="dev")

    assert manifest.concurrency == {lane: 5}
    assert Manifest.from_data(manifest.to_data()) == manifest


def test_a_concurrency_of_one_is_that_of_every_lane(root: Path) -> None:
    before = compile_manifest(root, stage="dev")
    write(root, "stripe_pay", source="stripe", function="pay", more=', lane="calls"')
    concurrent(root, "calls", 1)

    assert compile_manifest(root, stage="dev").concurrency == {}
    assert "concurrency" not in before.to_data()


@pytest.mark.parametrize("many", [0, -1, 11])
def test_a_concurrency_out_of_bounds_is_refused(root: Path, many: int) -> None:
    write(root, "stripe_pay", source="stripe", function="pay", more=', lane="calls"')
    concurrent(root, "calls", many)

    with pytest.raises(ConfigurationError, match=r"lanes\.calls.*concurrency"):
        compile_manifest(root, stage="dev")


def test_a_handler_that_ends_its_process_ends_no_run_of_another_handler(root: Path) -> None:
    """G8: handlers are isolated."""
    for module, source in (("stripe_pay", "stripe"), ("github_issues", "github")):
        write(root, module, source=source, function="work", more=', lane="calls"')
    concurrent(root, "calls")

    with pytest.raises(ConfigurationError) as refused:
        compile_manifest(root, stage="dev")

    text = str(refused.value)
    assert "functions/inbox.toml [lanes.calls]" in text
    assert "'stripe.work', 'github.work'" in text
    assert "a lane of its own" in text


@pytest.mark.parametrize(
    ("lane", "more", "why"),
    [
        ("default", "", "the default lane is shared"),
        ("cals", ', lane="calls"', 'did you mean "calls"'),
        ("other", ', lane="calls"', "no handler declares this lane"),
        ("calls", ', lane="calls", order=serial("id")', "is serial"),
    ],
)
def test_other_lanes_have_no_concurrency(root: Path, lane: str, more: str, why: str) -> None:
    kind = write_serial if "serial" in more else write
    more = more.partition(", order")[0]
    kind(root, "stripe_pay", source="stripe", function="pay", more=more)
    concurrent(root, lane)

    with pytest.raises(ConfigurationError, match=why):
        compile_manifest(root, stage="dev")
