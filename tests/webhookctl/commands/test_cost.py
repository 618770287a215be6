"""`cost`: what it prints, where it reads the stack, and what it refuses."""

import json
import re
from pathlib import Path

import pytest

from tests.webhookctl.commands.stage import Cli
from webhook_inbox.domain.manifest import METADATA, Manifest, SourceSpec

APP = """
import json, os
from pathlib import Path

out = Path(os.environ["CDK_OUTDIR"])
stage = json.loads(os.environ["CDK_CONTEXT_JSON"])["stage"]
assert stage == "prod"
(out / "Inbox.template.json").write_text(Path("template.json").read_text())
(out / "manifest.json").write_text(json.dumps({"artifacts": {
    "Inbox": {"type": "aws:cloudformation:stack", "properties": {
        "templateFile": "Inbox.template.json"}},
}}))
"""


def function(name: str, memory: int) -> dict[str, object]:
    handler = f"{name}.lambda_function.lambda_handler"
    properties = {"Handler": handler, "MemorySize": memory}
    return {"Type": "AWS::Lambda::Function", "Properties": properties}


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def project(outside: Path) -> Path:
    """A project whose app synthesizes a stack with much memory."""
    (outside / ".git").mkdir()
    (outside / "functions").mkdir()
    (outside / "functions" / "inbox.toml").write_text("")
    (outside / "app.py").write_text(APP)
    sources = {name: SourceSpec(name, name, name) for name in ("github", "stripe")}
    mapping = {"BatchSize": 10}
    template = {
        "Metadata": {METADATA: json.dumps(Manifest(stage="prod", sources=sources).to_data())},
        "Resources": {
            "Ingest": function("ingest", 3008),
            "Processor": function("processor", 2048),
            "Reconciler": function("reconciler", 512),
            "Mapping": {"Type": "AWS::Lambda::EventSourceMapping", "Properties": mapping},
            "Logs": {"Type": "AWS::Logs::LogGroup", "Properties": {"RetentionInDays": 7}},
        },
    }
    (outside / "template.json").write_text(json.dumps(template))
    return outside


def test_outside_of_a_project_it_estimates_a_new_one(cli: Cli, outside: Path) -> None:
    shown = cli("cost", "--handlers", "2", "--effects", "1")
    assert shown.code == 0
    assert "events together" in shown.out
    assert "- Stack: a new project, with 512 MB for ingest" in shown.out


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize("events", ["1", "1000000000000"])
def test_no_figure_has_an_exponent(cli: Cli, events: str) -> None:
    shown = cli(
        "cost",
        *("--events-per-month", events, "--handlers", "100", "--effects", "100"),
        *("--handler-ms", "55000", "--batch", "10", "--body", "6MB"),
    )
    assert shown.code == 0
    assert re.findall(r"\S*\de[+-]?\d\S*", shown.out) == []


@pytest.mark.usefixtures("project")
def test_in_a_project_it_reads_the_projects_own_stack(cli: Cli) -> None:
    shown = cli("cost", "--stage", "prod", "--json")
    assert shown.code == 0, shown.err
    stack = json.loads(shown.out)["stack"]
    names = ("sources", "lanes", "ingest", "processor", "reconciler", "batch", "log_days")
    assert [stack[name] for name in names] == [2, 1, 3008, 2048, 512, 10, 7]
    assert (stack["alarm_metrics"], stack["dashboards"]) == (0, 0)


@pytest.mark.usefixtures("outside")
def test_json_has_the_lines_and_their_sums(cli: Cli) -> None:
    data = json.loads(cli("cost", "--events-per-month", "5000000", "--json").out)
    sums = {name: sum(line["dollars"] for line in data[name]) for name in ("events", "idle")}
    assert data["dollars"]["events"] == pytest.approx(sums["events"], abs=1e-4)
    assert data["dollars"]["idle"] == pytest.approx(sums["idle"], abs=1e-4)
    assert data["dollars"]["per_million"] == pytest.approx(sums["events"] / 5, abs=1e-4)
    assert data["prices"]["region"] == "us-east-1"


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize(
    ("size", "bytes_"),
    [("500", 500), ("800B", 800), ("3KB", 3072), ("3kb", 3072), ("6MB", 6 * 1024 * 1024)],
)
def test_a_size_has_a_unit_or_none(cli: Cli, size: str, bytes_: int) -> None:
    data = json.loads(cli("cost", "--body", size, "--json").out)
    assert data["load"]["body"] == bytes_


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(
            ("--body", value)
            for value in ("3XB", "0", "-1", "", "KB", "3 KB", "499B", "7MB", "9" * 40)
        ),
        *(("--body", value) for value in ("3.5KB", "٣KB", "nan")),
        *(("--events-per-month", value) for value in ("0", "-1", "1e6", "x", "1000000000001")),
        *(("--handlers", value) for value in ("0", "-1", "101")),
        *(("--effects", value) for value in ("-1", "101")),
        *(("--handler-ms", value) for value in ("-1", "nan", "inf", "55001")),
        *(("--batch", value) for value in ("0", "10001")),
    ],
)
def test_a_bad_value_is_a_usage_error_that_names_the_option(
    cli: Cli, option: str, value: str
) -> None:
    shown = cli("cost", f"{option}={value}")
    assert shown.code == 2
    assert shown.out == ""
    assert repr(value) in shown.err or option in shown.err
