import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.webhookctl.local.assemblies import assemble
from webhookctl.errors import CommandError
from webhookctl.local.deployment.synth import Project, require_node, synthesize, unchanged

# Stands for the CDK: leaves an assembly and a mark for each time it ran.
APP = f"""
import json, os, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from tests.webhookctl.local.assemblies import assemble
assert not [name for name in os.environ if name.startswith("AWS_")]
context = json.loads(os.environ["CDK_CONTEXT_JSON"])
assemble(Path(os.environ["CDK_OUTDIR"]), code=context["stage"])
with open("runs", "a") as file:
    file.write(context["functions"] + "\\n")
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "functions" / "handlers").mkdir(parents=True)
    (tmp_path / "functions" / "inbox.toml").write_text("one")
    for package in ("stacks", "shop_constructs"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    return Project.at(tmp_path)


def _runs(project: Project) -> int:
    return len((project.root / "runs").read_text().splitlines())


def test_the_app_gets_its_stage_and_functions_and_no_account(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    assembly = synthesize(project)
    assert assembly.stack_name == "Tiny"
    assert (project.state / "assembly" / "asset.code" / "echo.py").read_text() == "local"
    assert (project.root / "runs").read_text() == f"{project.functions}\n"


def test_a_second_time_without_edits_takes_the_first_result(project: Project) -> None:
    assert synthesize(project) == synthesize(project)
    assert _runs(project) == 1


@pytest.mark.parametrize(
    "name",
    [
        "app.py",
        "cdk.json",
        "functions/handlers/new.py",
        "functions/inbox.toml",
        "shop_constructs/table.py",
        "stacks/api.py",
    ],
)
def test_an_edit_makes_it_run_again(project: Project, name: str) -> None:
    synthesize(project)
    file = project.root / name
    file.write_text((file.read_text() if file.exists() else "") + "\n# edited\n")
    synthesize(project)
    assert _runs(project) == 2


def test_compiled_python_is_no_edit(project: Project) -> None:
    synthesize(project)
    cache = project.functions / "handlers" / "__pycache__"
    cache.mkdir()
    (cache / "notes.pyc").write_text("x")
    synthesize(project)
    assert _runs(project) == 1


def test_a_failure_is_the_apps_last_words_and_is_not_kept(project: Project) -> None:
    (project.root / "app.py").write_text(
        'import sys; sys.exit("noise\\nfunctions/inbox.toml: says why")'
    )
    with pytest.raises(
        CommandError, match=r"^app\.py did not synthesize: functions/inbox\.toml: s"
    ):
        synthesize(project)
    (project.root / "app.py").write_text(APP)
    assert synthesize(project).stack_name == "Tiny"


def test_without_node_it_says_how_to_get_it(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(project.root))
    monkeypatch.delenv("JSII_NODE", raising=False)
    with pytest.raises(CommandError, match=r"^Node is missing .*install Node 20 or later"):
        synthesize(project)


def test_node_may_be_where_jsii_is_told(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(project.root))
    monkeypatch.setenv("JSII_NODE", sys.executable)
    assert require_node() == sys.executable


def test_an_assembly_from_elsewhere_is_not_taken_for_ours(project: Project) -> None:
    assemble(project.state / "assembly")
    synthesize(project)
    other = replace(project, functions=project.root / "stacks")
    synthesize(other)
    assert _runs(project) == 2


@pytest.mark.parametrize("missing", ["app.py", "functions"])
def test_a_directory_that_is_no_repository_is_refused(tmp_path: Path, missing: str) -> None:
    (tmp_path / "app.py").touch()
    (tmp_path / "functions").mkdir()
    path = tmp_path / missing
    path.rmdir() if path.is_dir() else path.unlink()
    with pytest.raises(CommandError, match="change to the project's directory"):
        Project.at(tmp_path)


def test_it_is_unchanged_until_an_input_differs(project: Project) -> None:
    assert unchanged(project) is None
    synthesize(project)
    assert unchanged(project) == synthesize(project)
    (project.functions / "inbox.toml").write_text("two")
    assert unchanged(project) is None
