"""The tables `[lanes.NAME]`: a lane's workers and the runs of an invocation, and their bounds."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.configuration.test_compile import root, write
from tests.unit.configuration.test_serial_lanes import write_serial
from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import LaneSpec, Manifest

__all__ = ["root"]


def table(root: Path, lane: str, *, stage: str = "", **keys: Any) -> None:
    place = f'stages.{stage}.lanes."{lane}"' if stage else f'lanes."{lane}"'
    lines = "".join(f"{key} = {value}\n" for key, value in keys.items())
    with (root / "inbox.toml").open("a") as file:
        file.write(f"\n[{place}]\n{lines}")


def refusal(root: Path) -> str:
    with pytest.raises(ConfigurationError) as refused:
        compile_manifest(root, stage="dev")
    return str(refused.value)


@pytest.mark.parametrize("lane", ["calls", "slow_calls", "slow.calls", "_"])
def test_a_lane_of_one_handler_may_make_several_runs_at_a_time(root: Path, lane: str) -> None:
    write(root, "stripe_pay", source="stripe", function="pay", more=f', lane="{lane}"')
    table(root, lane, runs_per_invocation=5)

    manifest = compile_manifest(root, stage="dev")

    assert manifest.lane(lane) == LaneSpec(workers=2, runs_per_invocation=5)
    assert manifest.lane("default") == LaneSpec(workers=2, runs_per_invocation=1)
    assert Manifest.from_data(manifest.to_data()) == manifest


@pytest.mark.parametrize("workers", [2, 1000])
def test_each_lane_may_have_its_number_of_workers(root: Path, workers: int) -> None:
    """Also the default lane and a serial one."""
    write_serial(root, "stripe_pay", source="stripe", function="pay")
    write(root, "github_issues", source="github", function="work", more=', lane="calls"')
    for lane in ("default", "calls", "stripe.pay"):
        table(root, lane, workers=workers)

    manifest = compile_manifest(root, stage="dev")

    assert {manifest.lane(lane) for lane in manifest.lanes} == {LaneSpec(workers=workers)}
    assert Manifest.from_data(manifest.to_data()) == manifest


def test_a_lane_of_several_handlers_may_have_workers(root: Path) -> None:
    for module, source in (("stripe_pay", "stripe"), ("github_issues", "github")):
        write(root, module, source=source, function="work", more=', lane="calls"')
    table(root, "calls", workers=4, runs_per_invocation=1)

    assert compile_manifest(root, stage="dev").lane("calls") == LaneSpec(workers=4)


def test_a_lane_without_a_table_has_the_defaults(root: Path) -> None:
    write(root, "stripe_pay", source="stripe", function="pay", more=', lane="calls"')

    manifest = compile_manifest(root, stage="dev")

    assert manifest.lane("calls") == manifest.lane("default") == LaneSpec(2, 1)
    assert "lane_specs" not in manifest.to_data()


def test_a_stage_may_have_more_workers(root: Path) -> None:
    write(root, "stripe_pay", source="stripe", function="pay", more=', lane="calls"')
    table(root, "calls", runs_per_invocation=5)
    table(root, "calls", stage="prod", workers=50)

    assert compile_manifest(root, stage="dev").lane("calls") == LaneSpec(2, 5)
    assert compile_manifest(root, stage="prod").lane("calls") == LaneSpec(50, 5)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("runs_per_invocation", 0, "greater than or equal to 1; give how many runs"),
        ("runs_per_invocation", -1, "greater than or equal to 1"),
        ("runs_per_invocation", 11, "less than or equal to 10"),
        ("runs_per_invocation", "true", "valid integer"),
        ("workers", 0, "greater than or equal to 2; give how many invocations"),
        ("workers", 1, "greater than or equal to 2"),
        ("workers", 1001, "less than or equal to 1000"),
        ("workers", '"4"', "valid integer"),
        ("worker", 4, 'unknown key; did you mean "workers"'),
        ("concurrency", 4, "unknown key; remove it (the keys here are runs_per_invocation, work"),
    ],
)
def test_other_keys_and_values_are_refused(root: Path, key: str, value: Any, words: str) -> None:
    write(root, "stripe_pay", source="stripe", function="pay", more=', lane="calls"')
    table(root, "calls", **{key: value})

    text = refusal(root)

    assert "inbox.toml [lanes.calls] " + key in text
    assert words in text


def test_a_handler_that_ends_its_process_ends_no_run_of_another_handler(root: Path) -> None:
    """G8: handlers are isolated."""
    for module, source in (("stripe_pay", "stripe"), ("github_issues", "github")):
        write(root, module, source=source, function="work", more=', lane="calls"')
    table(root, "calls", runs_per_invocation=5)

    text = refusal(root)

    assert "functions/inbox.toml [lanes.calls] runs_per_invocation" in text
    assert "'stripe.work', 'github.work'" in text
    assert "a lane of its own" in text


@pytest.mark.parametrize(
    ("lane", "more", "why"),
    [
        ("default", "", "the default lane is shared"),
        ("calls", ', lane="calls", order=serial("id")', "is serial"),
    ],
)
def test_other_lanes_make_one_run_at_a_time(root: Path, lane: str, more: str, why: str) -> None:
    kind = write_serial if "serial" in more else write
    more = more.partition(", order")[0]
    kind(root, "stripe_pay", source="stripe", function="pay", more=more)
    table(root, lane, runs_per_invocation=5)

    assert why in refusal(root)


@pytest.mark.parametrize("key", ["workers", "runs_per_invocation"])
@pytest.mark.parametrize(
    ("lane", "why"),
    [("cals", 'did you mean "calls"'), ("other", "no handler declares this lane (the lanes are")],
)
def test_a_lane_of_no_handler_is_refused(root: Path, lane: str, why: str, key: str) -> None:
    write(root, "stripe_pay", source="stripe", function="pay", more=', lane="calls"')
    table(root, lane, **{key: 5})

    assert why in refusal(root)
