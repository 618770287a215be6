"""The contents of each bundle, and the changes of its hash."""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from webhook_inbox_cdk.bundle import Workshop
from webhook_inbox_cdk.contents import CONTENTS, LIBRARY
from webhook_inbox_cdk.platform import PYTHONS, Platform

from tests.infra.conftest import GITHUB, write_functions
from tests.infra.damage import DAMAGE, damage_file
from webhook_inbox.configuration.bundle_imports import LEFT_OUT
from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import Manifest
from webhookctl.local.deployment.assembly import archive


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

    def unpacked(
        locks: list[Path], *, own: Path | None, into: Path, platform: Platform
    ) -> list[Path]:
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
    (installed / "METADATA").touch()
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


@pytest.mark.parametrize("bundle", CONTENTS)
@pytest.mark.parametrize("package", ["client", "testing"])
def test_no_bundle_ships_a_package_for_programs_and_tests(
    functions: Path, bundle: str, package: str
) -> None:
    shipped = files(workshop(functions).make(bundle).directory)
    assert not [name for name in shipped if name.startswith(f"webhook_inbox/{package}/")]


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
    made = first.directory.stat()
    assert shop.make("ingest") == first
    found = first.directory.stat()
    assert (found.st_ino, found.st_mtime_ns) == (made.st_ino, made.st_mtime_ns)
    assert [path.name for path in (shop.build / "bundles").iterdir()] == [first.directory.name]


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_bundle_is_made_again(functions: Path, how: str) -> None:
    shop = workshop(functions)
    first = shop.make("ingest")
    whole = tree_of(first.directory)
    damage_file(first.directory / "ingest" / "http.py", how)

    assert shop.make("ingest") == first

    assert tree_of(first.directory) == whole
    assert [path.name for path in (shop.build / "bundles").iterdir()] == [first.directory.name]


def test_a_directory_that_others_cannot_enter_is_made_again(functions: Path) -> None:
    shop = workshop(functions)
    directory = shop.make("ingest").directory
    (directory / "webhook_inbox").chmod(0o700)
    assert tree_of(shop.make("ingest").directory)["webhook_inbox"] == (0o755, None)


def tree_of(directory: Path) -> dict[str, tuple[int, bytes | None]]:
    """Returns modes and contents by name."""
    return {
        path.relative_to(directory).as_posix(): (
            stat.S_IMODE(path.lstat().st_mode),
            None if path.is_dir() else path.read_bytes(),
        )
        for path in (directory, *directory.rglob("*"))
    }


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def scatter(directory: Path) -> None:
    """Gives sources the modes and times of another checkout."""
    for number, path in enumerate(sorted(directory.rglob("*"))):
        os.utime(path, (number, number))
        path.chmod(0o700 if path.is_dir() or number % 2 else 0o600)


def test_umask_path_modes_and_times_of_a_build_do_not_matter(
    functions: Path, tmp_path: Path, wheels: Path
) -> None:
    with umask(0o077):
        elsewhere = write_functions(tmp_path / "another checkout")
        scatter(elsewhere)
        first = {name: shop_with_wheels(elsewhere).make(name) for name in CONTENTS}
    scatter(wheels / "trees")
    with umask(0o002):
        second = {name: shop_with_wheels(functions).make(name) for name in CONTENTS}
    for name in CONTENTS:
        assert first[name].directory != second[name].directory
        assert first[name].digest == second[name].digest
        trees = [tree_of(bundle.directory) for bundle in (first[name], second[name])]
        assert trees[0] == trees[1]
        modes = {(mode, content is None) for mode, content in trees[0].values()}
        assert modes == {(0o644, False), (0o755, True)}
        assert archive(first[name].directory) == archive(second[name].directory)


def shop_with_wheels(functions: Path) -> Workshop:
    return replace(workshop(functions), wheels=True)


def test_the_platform_is_part_of_every_hash(functions: Path) -> None:
    platforms = [Platform(p, a) for p in PYTHONS for a in ("arm64", "x86_64")]
    shops = [replace(workshop(functions), platform=platform) for platform in platforms]
    made = [shop.make(name) for shop in shops for name in CONTENTS]
    assert len({bundle.digest for bundle in made}) == len(made) == 16
    assert {bundle.platform for bundle in made} == set(platforms)


def test_what_the_wheels_contain_is_part_of_the_hash(functions: Path, wheels: Path) -> None:
    shop = shop_with_wheels(functions)
    before = shop.make("ingest").digest
    (wheels / "trees" / "requirements" / "verification" / "shared" / "verification.py").write_text(
        "x = 1\n"
    )
    assert shop.make("ingest").digest != before


def test_a_link_to_a_file_ships_as_the_file(functions: Path, tmp_path: Path) -> None:
    (tmp_path / "shared.py").write_text("X = 1\n")
    (functions / "handlers" / "_shared.py").symlink_to(tmp_path / "shared.py")
    shipped = workshop(functions).make("processor").directory / "handlers" / "_shared.py"
    assert not shipped.is_symlink()
    assert shipped.read_text() == "X = 1\n"


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda path: path.symlink_to(path.parent, target_is_directory=True), "a link to a direct"),
        (lambda path: path.symlink_to(path.parent / "nowhere"), "a link to nothing"),
        (os.mkfifo, "neither"),
    ],
)
def test_what_no_bundle_can_contain_is_named(
    functions: Path, make: Callable[[Path], None], kind: str
) -> None:
    """It would be missing in Lambda only."""
    make(functions / "handlers" / "common")
    with pytest.raises(ConfigurationError, match=rf"handlers/common: .*, and this is {kind}"):
        workshop(functions).make("processor")


def test_a_hidden_link_of_an_editor_is_ignored(functions: Path) -> None:
    before = digests(functions)
    (functions / "handlers" / ".#billing.py").symlink_to("me@here.1234")
    assert digests(functions) == before


def test_a_name_that_is_not_utf_8_is_named(functions: Path) -> None:
    name = os.fsencode(functions / "handlers") + b"/caf\xe9.txt"
    try:
        os.close(os.open(name, os.O_CREAT))
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    with pytest.raises(
        ConfigurationError, match=r"handlers/caf\\udce9\.txt: the name is not UTF-8"
    ):
        workshop(functions).make("processor")


def test_concurrent_builds_make_one_bundle(functions: Path) -> None:
    shop = workshop(functions)
    damage_file(shop.make("ingest").directory / "ingest" / "http.py", "changed")
    with ThreadPoolExecutor(8) as pool:
        made = set(pool.map(lambda _: shop.make("ingest"), range(16)))
    assert len(made) == 1
    assert [path.name for path in (shop.build / "bundles").iterdir()] == [
        each.directory.name for each in made
    ]


def test_wheels_lie_beside_our_sources(functions: Path, wheels: Path) -> None:
    (functions / "requirements.txt").write_text("stripe==16.1.0\n")
    shop = replace(workshop(functions), wheels=True)
    directory = shop.make("processor").directory
    assert names(directory / "shared") == {"processor.py", "verification.py", "own.py"}
    assert (directory / "handlers" / "billing.py").is_file()
    assert names(shop.make("ingest").directory / "shared") == {"verification.py"}


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.glob("*.py")}


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
    "QUEUE_URL": "https://sqs/1/webhook-inbox-dev-default",
    "QUEUE_PREFIX": "webhook-inbox-dev-",
    "DLQ_NAMES": '{"default":"dead"}',
    "SECRET_DOCUMENT": "webhook-inbox/Inbox/sources",
    "GENERATED_KEYS": "{}",
    "LANE": "default",
    "MAX_RECEIVE_COUNT": "13",
    "CODE_VERSION": "abc",
    "POWERTOOLS_SERVICE_NAME": "f",
    "METRICS_NAMESPACE": "WebhookInbox/Account",
}
