"""Ingest's snapshot: a version and its alias, which the API calls; only where it is asked for."""

import pytest

from tests.infra.conftest import Synthesize
from tests.infra.template import Template, named

ALIAS = "AWS::Lambda::Alias"
VERSION = "AWS::Lambda::Version"
INTEGRATION = "AWS::ApiGatewayV2::Integration"


@pytest.fixture(scope="module")
def restored(synthesize: Synthesize) -> Template:
    return synthesize(snapstart=True)


@pytest.fixture(scope="module")
def alias(restored: Template) -> str:
    """The reference to ingest's alias, whose value is its ARN."""
    [name] = restored.all(ALIAS)
    return f"${{{name}}}"


def test_the_default_has_no_version_alias_or_snapshot(dev: Template) -> None:
    assert not dev.all(ALIAS)
    assert not dev.all(VERSION)
    assert all("SnapStart" not in each for each in dev.all("AWS::Lambda::Function").values())


def test_ingest_alone_has_a_snapshot_of_its_version(restored: Template) -> None:
    functions = restored.all("AWS::Lambda::Function")
    taken = {name: each["SnapStart"] for name, each in functions.items() if "SnapStart" in each}
    [(function, snapstart)] = taken.items()
    [version] = restored.all(VERSION)

    assert snapstart == {"ApplyOn": "PublishedVersions"}
    assert function.startswith("InboxIngest")
    assert named(restored.one(VERSION)["FunctionName"]) == f"${{{function}}}"
    target = restored.one(ALIAS)
    assert (named(target["FunctionName"]), named(target["FunctionVersion"]), target["Name"]) == (
        f"${{{function}}}",
        f"${{{version}.Version}}",
        "live",
    )


def test_the_api_calls_the_alias_and_may_call_nothing_else(restored: Template, alias: str) -> None:
    assert named(restored.one(INTEGRATION)["IntegrationUri"]) == alias
    permissions = restored.all("AWS::Lambda::Permission").items()
    allowed = [each["FunctionName"] for name, each in permissions if name.startswith("InboxApi")]
    assert [named(each) for each in allowed] == [alias]


def test_an_old_version_is_deleted_and_so_is_no_longer_billed(restored: Template) -> None:
    version = restored.resource(VERSION)

    assert {version.get("DeletionPolicy"), version.get("UpdateReplacePolicy")} <= {None, "Delete"}


def test_a_change_of_ingest_publishes_another_version(
    synthesize: Synthesize, restored: Template
) -> None:
    """A version never changes: the alias would keep calling the code of the first deployment."""
    other = synthesize(snapstart=True, python="3.12")
    same = synthesize(snapstart=True)

    assert set(same.all(VERSION)) == set(restored.all(VERSION))
    assert set(other.all(VERSION)).isdisjoint(restored.all(VERSION))


def test_alarms_dashboard_outputs_and_rights_stay_those_of_the_function(
    dev: Template, restored: Template
) -> None:
    """The metrics of a function's name include those of its versions and aliases."""
    for kind in ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard", "AWS::Logs::LogGroup"):
        assert restored.all(kind) == dev.all(kind)
    assert restored.outputs == dev.outputs
    assert restored.rights("ingest") == dev.rights("ingest")


def test_the_local_stage_has_none(synthesize: Synthesize) -> None:
    """Its runtime changes the functions themselves, and a version never changes."""
    assert not synthesize(snapstart=True, stage="local").all(ALIAS)
