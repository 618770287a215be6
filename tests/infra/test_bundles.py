"""What each function ships, and when its hash changes."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from webhook_inbox_cdk.bundle import Workshop
from webhook_inbox_cdk.contents import CONTENTS, LIBRARY

from tests.infra.conftest import GITHUB, write_functions
from webhook_inbox.configuration.bundle_imports import LEFT_OUT
from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import Manifest


@pytest.fixture
def functions(tmp_path: Path) -> Path:
    """An integrator's handlers and inbox.toml, to be changed."""
    return write_functions(tmp_path)


def workshop(functions: Path) -> Workshop:
    manifest = compile_manifest(functions, stage="dev")
    return Workshop(functions, manifest, functions.parent / ".build", wheels=False)


def digests(functions: Path) -> dict[str, str]:
    made = workshop(functions)
    return {name: made.make(name).digest for name in CONTENTS}


def files(directory: Path) -> set[str]:
    return {p.relative_to(directory).as_posix() for p in directory.rglob("*") if p.is_file()}


def test_the_same_sources_make_the_same_bundle(functions: Path) -> None:
    first = digests(functions)
    (functions / "handlers" / "__pycache__").mkdir()
    (functions / "handlers" / "__pycache__" / "billing.cpython-313.pyc").write_bytes(b"x")
    (functions / "handlers" / ".billing.py.swp").write_bytes(b"x")
    os.utime(functions / "handlers" / "billing.py", (1, 1))
    assert digests(functions) == first


def test_the_place_of_the_sources_does_not_matter(functions: Path, tmp_path: Path) -> None:
    assert digests(write_functions(tmp_path / "elsewhere")) == digests(functions)


def test_a_change_of_a_handler_s_code_changes_the_processor_only(functions: Path) -> None:
    before = digests(functions)
    code = functions / "handlers" / "github_issues.py"
    code.write_text(GITHUB.replace('"triage"', '"look closer"'))
    after = digests(functions)
    assert {name for name in CONTENTS if before[name] != after[name]} == {"processor"}


def test_a_change_of_a_declaration_changes_all_that_read_the_manifest(functions: Path) -> None:
    before = digests(functions)
    code = functions / "handlers" / "github_issues.py"
    code.write_text(GITHUB.replace("max_attempts=12", "max_attempts=13"))
    after = digests(functions)
    assert not set(before.values()) & set(after.values())


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One module for each requirement file, in place of its wheels."""

    def unpacked(locks: list[Path], *, own: Path | None, into: Path) -> list[Path]:
        trees = [tmp_path / "trees" / lock.parent.name / lock.stem for lock in locks]
        trees += [tmp_path / "trees" / "own"] if own else []
        for tree in trees:
            (tree / "shared").mkdir(parents=True, exist_ok=True)
            (tree / "shared" / f"{tree.name}.py").touch()
        return trees

    monkeypatch.setattr("webhook_inbox_cdk.bundle.vendored", unpacked)
    return tmp_path


def test_a_change_of_your_requirements_changes_the_processor_only(
    functions: Path, wheels: Path
) -> None:
    shop = replace(workshop(functions), wheels=True)
    before = {name: shop.make(name).digest for name in CONTENTS}
    (functions / "requirements.txt").write_text("stripe==16.1.0\n")
    after = {name: shop.make(name).digest for name in CONTENTS}
    assert {name for name in CONTENTS if before[name] != after[name]} == {"processor"}


def test_another_version_of_a_requirement_changes_the_processor_only(
    functions: Path, wheels: Path
) -> None:
    (functions / "requirements.txt").write_text("stripe>=16\n")
    shop = replace(workshop(functions), wheels=True)
    installed = wheels / "trees" / "own" / "stripe-16.0.0.dist-info"
    installed.mkdir(parents=True)
    before = {name: shop.make(name).digest for name in CONTENTS}
    installed.rename(installed.with_name("stripe-16.9.0.dist-info"))
    after = {name: shop.make(name).digest for name in CONTENTS}
    assert {name for name in CONTENTS if before[name] != after[name]} == {"processor"}


def test_only_the_processor_ships_handlers(functions: Path) -> None:
    shop = workshop(functions)
    for name in CONTENTS:
        shipped = {file.partition("/")[0] for file in files(shop.make(name).directory)}
        expected = {name, "webhook_inbox", "compiled_manifest.py"}
        assert shipped == (expected | {"handlers"} if name == "processor" else expected)


def test_what_works_at_build_time_stays_home(functions: Path) -> None:
    shop = workshop(functions)
    for name in CONTENTS:
        shipped = shop.make(name).directory / "webhook_inbox"
        assert not [name for name in files(shipped) if name.startswith(LEFT_OUT)]
        assert (shipped / "domain" / "manifest.py").is_file()


def test_everything_left_out_exists(functions: Path) -> None:
    """A renamed file must not slip into the bundles."""
    assert all((LIBRARY / name).is_dir() for name in LEFT_OUT)


def test_files_beside_code_ship_with_handlers(functions: Path) -> None:
    (functions / "handlers" / "mail").mkdir()
    (functions / "handlers" / "mail" / "welcome.html").write_text("<p>")
    directory = workshop(functions).make("processor").directory
    assert (directory / "handlers" / "mail" / "welcome.html").read_text() == "<p>"


def test_every_bundle_has_the_manifest_at_its_root(functions: Path) -> None:
    shop = workshop(functions)
    for name in CONTENTS:
        namespace: dict[str, dict[str, object]] = {}
        exec((shop.make(name).directory / "compiled_manifest.py").read_text(), namespace)
        assert Manifest.from_data(namespace["MANIFEST"]) == shop.manifest


def test_an_integrator_s_own_library_comes_before_ours(functions: Path) -> None:
    (functions / "ingest").mkdir()
    (functions / "ingest" / "lambda_function.py").write_text("OURS = False\n")
    directory = workshop(functions).make("ingest").directory
    assert files(directory / "ingest") == {"lambda_function.py"}


def test_a_missing_directory_is_named(functions: Path) -> None:
    shop = workshop(functions)
    shutil.rmtree(functions / "handlers")
    with pytest.raises(ConfigurationError, match="functions/handlers: the directory is missing"):
        shop.make("processor")


def test_a_bundle_is_made_once(functions: Path) -> None:
    shop = workshop(functions)
    first = shop.make("ingest")
    (first.directory / "mark").touch()
    assert shop.make("ingest") == first
    assert (first.directory / "mark").exists()
    assert [path.name for path in (shop.build / "bundles").iterdir()] == [first.directory.name]


def test_wheels_lie_beside_our_sources(functions: Path, wheels: Path) -> None:
    (functions / "requirements.txt").write_text("stripe==16.1.0\n")
    shop = replace(workshop(functions), wheels=True)
    directory = shop.make("processor").directory
    assert files(directory / "shared") == {"processor.py", "verification.py", "own.py"}
    assert (directory / "handlers" / "billing.py").is_file()
    assert files(shop.make("ingest").directory / "shared") == {"ingest.py", "verification.py"}


@pytest.mark.parametrize("name", CONTENTS)
def test_a_bundle_has_every_module_that_its_function_imports(functions: Path, name: str) -> None:
    """The library in the bundle shadows the whole one; what is left out is not importable."""
    directory = workshop(functions).make(name).directory
    refused = "pydantic" if name in {"ingest", "reconciler"} else ""
    program = (
        f"import sys; sys.path.insert(0, {str(directory)!r})\n"
        f"if {refused!r}: sys.modules[{refused!r}] = None\n"
        f"import {name}.lambda_function as entry, webhook_inbox\n"
        f"assert webhook_inbox.__file__.startswith({str(directory)!r})\n"
        "assert callable(entry.lambda_handler)\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program],
        env=LAMBDA_ENVIRONMENT,
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


LAMBDA_ENVIRONMENT = {
    "AWS_REGION": "eu-west-1",
    "AWS_DEFAULT_REGION": "eu-west-1",
    "AWS_LAMBDA_FUNCTION_NAME": "f",
    "PYTHONDONTWRITEBYTECODE": "1",
    "TABLE_NAME": "table",
    "BUCKET_NAME": "bucket",
    "QUEUE_URLS": '{"default":"https://sqs/default"}',
    "DLQ_URLS": '{"default":"https://sqs/dead"}',
    "SECRET_DOCUMENT": "webhook-inbox/Inbox/sources",
    "GENERATED_KEYS": "{}",
    "LANE": "default",
    "MAX_RECEIVE_COUNT": "13",
    "CODE_VERSION": "abc",
    "POWERTOOLS_SERVICE_NAME": "f",
    "POWERTOOLS_METRICS_NAMESPACE": "WebhookInbox",
}
