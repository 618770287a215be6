import json
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from tests.webhookctl.local.assemblies import ECHO, assemble
from webhookctl.errors import CommandError
from webhookctl.local.deployment import deploy
from webhookctl.local.deployment.assembly import Assembly, archive
from webhookctl.local.deployment.deploy import Deployer
from webhookctl.local.processes.ministack import Ministack


def _invoke(ministack: Ministack, function: str) -> str:
    event = {
        "isBase64Encoded": False,
        "rawPath": "/",
        "rawQueryString": "",
        "headers": {},
        "pathParameters": {"source": "s"},
        "requestContext": {"http": {"method": "POST"}},
    }
    answer = ministack.client("lambda").invoke(
        FunctionName=function, Payload=json.dumps(event).encode()
    )
    return str(json.loads(answer["Payload"].read())["body"])


def test_the_outputs_name_what_the_template_made(
    ministack: Ministack, outputs: dict[str, str]
) -> None:
    assert set(outputs) == {"ApiId", "FunctionName", "TableName"}
    assert json.loads(_invoke(ministack, outputs["FunctionName"]))["method"] == "POST"


def test_rows_expire_although_ministack_ignores_it_in_templates(
    ministack: Ministack, outputs: dict[str, str]
) -> None:
    found = ministack.client("dynamodb").describe_time_to_live(TableName=outputs["TableName"])
    assert found["TimeToLiveDescription"]["TimeToLiveStatus"] == "ENABLED"
    assert found["TimeToLiveDescription"]["AttributeName"] == "expires_at"


def test_the_bootstrap_version_is_there_for_templates_that_ask(
    ministack: Ministack, outputs: dict[str, str]
) -> None:
    found = ministack.client("ssm").get_parameter(Name="/cdk-bootstrap/hnb659fds/version")
    assert int(found["Parameter"]["Value"]) >= 6


def test_a_second_deployment_without_changes_changes_nothing(
    deployer: Deployer, outputs: dict[str, str], tmp_path: Path
) -> None:
    assert deployer.deploy(Assembly.read(assemble(tmp_path))) == outputs


def test_changed_code_is_deployed_and_the_rest_stays(
    ministack: Ministack, deployer: Deployer, outputs: dict[str, str], tmp_path: Path
) -> None:
    changed = ECHO.replace('"body": json.dumps(shown)', '"body": "changed"')
    try:
        again = deployer.deploy(Assembly.read(assemble(tmp_path / "changed", code=changed)))
        assert again == outputs
        assert _invoke(ministack, outputs["FunctionName"]) == "changed"
    finally:
        deployer.deploy(Assembly.read(assemble(tmp_path / "again")))
    assert _invoke(ministack, outputs["FunctionName"]) != "changed"


def _refusal(directory: Path, extra: dict[str, Any]) -> str:
    assembly = Assembly.read(assemble(directory / "out", extra=extra))
    with Ministack(directory / "own") as ministack, pytest.raises(CommandError) as caught:
        Deployer(ministack.client).deploy(assembly)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_resources_that_the_emulation_lacks_are_left_out() -> None:
    kinds = ("AWS::CloudWatch::Alarm", "AWS::SNS::Topic", "AWS::CloudWatch::Dashboard")
    template = {"Resources": {kind: {"Type": kind} for kind in kinds}, "Outputs": {}}
    emulated = json.loads(deploy._emulated(json.dumps(template).encode()))
    assert emulated == {"Resources": {kinds[1]: {"Type": kinds[1]}}, "Outputs": {}}


def test_a_template_that_is_refused_says_why(tmp_path: Path) -> None:
    broken = {"Type": "AWS::Absent::Thing", "Properties": {}}
    assert "AWS::Absent::Thing" in _refusal(tmp_path, {"Broken": broken})


def test_a_resource_that_fails_is_named_with_its_reason(tmp_path: Path) -> None:
    properties = {"Code": {"ZipFile": "pass"}, "Role": "r", "Layers": ["absent"]}
    broken = {"Type": "AWS::Lambda::Function", "Properties": properties}
    said = _refusal(tmp_path, {"Broken": broken})
    assert "ended as ROLLBACK_COMPLETE: Broken: " in said


def test_a_directory_that_is_no_assembly_is_one_line_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="is not a cloud assembly: run"):
        Assembly.read(tmp_path)


@pytest.mark.parametrize("count", [0, 2])
def test_an_assembly_has_exactly_one_stack(tmp_path: Path, count: int) -> None:
    file = assemble(tmp_path) / "manifest.json"
    artifacts = json.loads(file.read_text())["artifacts"]
    stack = artifacts.pop("tiny")
    stacks = {f"stack-{number}": stack for number in range(count)}
    file.write_text(json.dumps({"artifacts": {**artifacts, **stacks}}))
    with pytest.raises(CommandError, match=f"has {count} stacks"):
        Assembly.read(tmp_path)


def test_a_template_that_is_no_asset_is_refused(tmp_path: Path) -> None:
    file = assemble(tmp_path) / "tiny.assets.json"
    listing = json.loads(file.read_text())
    del listing["files"]["template"]
    file.write_text(json.dumps(listing))
    with pytest.raises(CommandError, match=r"tiny\.template\.json is not among"):
        Assembly.read(tmp_path)


def _tree(directory: Path, names: list[str]) -> Path:
    for name in names:
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    return directory


def test_the_same_files_zip_to_the_same_bytes_whenever_they_were_written(tmp_path: Path) -> None:
    one = _tree(tmp_path / "one", ["a.py", "b/c.py", "b/d.py"])
    other = _tree(tmp_path / "other", ["b/d.py", "b/c.py", "a.py"])
    for file in other.rglob("*.py"):
        file.touch()
    assert archive(one) == archive(other)
    (other / "a.py").write_text("changed")
    assert archive(one) != archive(other)


def test_a_zip_keeps_names_contents_and_executable_bits(tmp_path: Path) -> None:
    tree = _tree(tmp_path, ["run", "lib/data"])
    (tree / "run").chmod(0o755)
    with zipfile.ZipFile(BytesIO(archive(tree))) as zipped:
        assert zipped.namelist() == ["lib/data", "run"]
        assert zipped.read("lib/data") == b"lib/data"
        modes = {entry.filename: entry.external_attr >> 16 for entry in zipped.infolist()}
    assert modes == {"lib/data": 0o644, "run": 0o755}
