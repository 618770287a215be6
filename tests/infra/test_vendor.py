"""The wheels for Lambda: chosen for Lambda, checked, and fetched before they are needed.

Against real pip and a directory of wheels made here; no package index.
"""

import json
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
from webhook_inbox_cdk.contents import LOCKS
from webhook_inbox_cdk.platform import Platform
from webhook_inbox_cdk.vendor import for_lambda, main, vendored

from tests.infra.damage import damage_file
from webhook_inbox.domain.errors import ConfigurationError

TOP = Path(__file__).resolve().parents[2]
LAMBDA = Platform()


def write_wheel(
    index: Path, name: str, *, version: str = "1.0", tag: str = "py3-none-any", needs: str = ""
) -> str:
    """Writes a wheel with one module that knows its tag; returns its hash."""
    index.mkdir(exist_ok=True)
    wheel = index / f"{name}-{version}-{tag}.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{name}.py", f"TAG = {tag!r}\n")
        about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        about += f"Requires-Dist: {needs}\n" if needs else ""
        archive.writestr(f"{info}/METADATA", about)
        archive.writestr(
            f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n"
        )
        archive.writestr(f"{info}/entry_points.txt", f"[console_scripts]\n{name} = {name}:run\n")
        archive.writestr(f"{info}/RECORD", "")
    return sha256(wheel.read_bytes()).hexdigest()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where pip looks."""
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    return tmp_path / "index"


def lock(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "things.txt"
    path.write_text(text)
    return path


def fetched(path: Path, *, into: Path, platform: Platform = LAMBDA) -> Path:
    """The directory of one of our locks."""
    [directory] = vendored([path], own=None, into=into, platform=platform)
    return directory


def test_wheels_are_lambda_s_and_not_this_machine_s(tmp_path: Path, index: Path) -> None:
    tags = [
        f"{version}-{version}-manylinux_2_17_{machine}"
        for version in ("cp312", "cp313")
        for machine in ("x86_64", "aarch64")
    ]
    hashes = [f"--hash=sha256:{write_wheel(index, 'thing', tag=tag)}" for tag in tags]
    path = lock(tmp_path, f"thing==1.0 {' '.join(hashes)}\n")
    platforms = {
        Platform("3.13", "arm64"): "cp313-cp313-manylinux_2_17_aarch64",
        Platform("3.12", "x86_64"): "cp312-cp312-manylinux_2_17_x86_64",
    }
    for platform, tag in platforms.items():
        target = fetched(path, into=tmp_path / "vendor", platform=platform)
        assert (target / "thing.py").read_text() == f"TAG = {tag!r}\n"


def test_neither_bytecode_nor_scripts_of_this_machine_come_along(
    tmp_path: Path, index: Path
) -> None:
    text = f"thing==1.0 --hash=sha256:{write_wheel(index, 'thing')}\n"
    target = fetched(lock(tmp_path, text), into=tmp_path / "vendor")
    assert sorted(path.relative_to(target).as_posix() for path in target.rglob("*")) == [
        "thing-1.0.dist-info",
        "thing-1.0.dist-info/METADATA",
        "thing-1.0.dist-info/WHEEL",
        "thing-1.0.dist-info/entry_points.txt",
        "thing.py",
    ]


def test_a_wheel_with_another_hash_is_refused(tmp_path: Path, index: Path) -> None:
    write_wheel(index, "thing")
    path = lock(tmp_path, f"thing==1.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(ConfigurationError, match=r"python -m webhook_inbox_cdk\.vendor"):
        fetched(path, into=tmp_path / "vendor")
    assert list((tmp_path / "vendor").iterdir()) == []


def test_a_requirement_without_a_hash_is_refused(tmp_path: Path, index: Path) -> None:
    write_wheel(index, "thing")
    with pytest.raises(ConfigurationError, match=r"things.txt: cannot fetch its wheels"):
        fetched(lock(tmp_path, "thing==1.0\n"), into=tmp_path / "vendor")


def test_a_missing_wheel_is_one_line(tmp_path: Path, index: Path) -> None:
    index.mkdir()
    path = lock(tmp_path, f"thing==1.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(ConfigurationError) as refusal:
        fetched(path, into=tmp_path / "vendor")
    assert "\n" not in str(refusal.value)


def test_what_is_here_needs_no_index(
    tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lock(tmp_path, f"thing==1.0 --hash=sha256:{write_wheel(index, 'thing')}\n")
    first = fetched(path, into=tmp_path / "vendor")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    assert fetched(path, into=tmp_path / "vendor") == first


def test_a_damaged_directory_is_fetched_again(tmp_path: Path, index: Path) -> None:
    path = lock(tmp_path, f"thing==1.0 --hash=sha256:{write_wheel(index, 'thing')}\n")
    target = fetched(path, into=tmp_path / "vendor")
    before = (target / "thing.py").read_bytes()
    damage_file(target / "thing.py", "changed")

    assert fetched(path, into=tmp_path / "vendor") == target

    assert (target / "thing.py").read_bytes() == before
    assert [file.name for file in (tmp_path / "vendor").iterdir()] == [target.parent.name]


def test_a_changed_lock_gets_a_directory_of_its_own(tmp_path: Path, index: Path) -> None:
    one, two = write_wheel(index, "one"), write_wheel(index, "two")
    first = fetched(lock(tmp_path, f"one==1.0 --hash=sha256:{one}\n"), into=tmp_path / "vendor")
    second = fetched(lock(tmp_path, f"two==1.0 --hash=sha256:{two}\n"), into=tmp_path / "vendor")
    assert (first / "one.py").exists()
    assert not (second / "one.py").exists()


def test_an_empty_lock_needs_no_pip(tmp_path: Path) -> None:
    target = fetched(lock(tmp_path, "# nothing yet\n"), into=tmp_path / "vendor")
    assert list(target.iterdir()) == []


@pytest.mark.parametrize(
    ("marker", "needed"),
    [
        ("python_version >= '3.13'", True),
        ("python_full_version < '3.12'", False),
        ("sys_platform == 'win32'", False),
        ("sys_platform == 'darwin'", False),
        ("platform_machine == 'aarch64'", True),
        ("platform_machine == 'x86_64'", False),
        ("platform_python_implementation != 'PyPy'", True),
    ],
)
def test_markers_are_judged_for_lambda(tmp_path: Path, marker: str, *, needed: bool) -> None:
    path = lock(tmp_path, f"thing==1.0 ; {marker} \\\n    --hash=sha256:aa\n")
    assert list(for_lambda(path, LAMBDA)) == (["thing==1.0 --hash=sha256:aa\n"] if needed else [])


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("foo @ https://x.example/foo-1-py3-none-any.whl#sha256=aaa\n",
         "foo @ https://x.example/foo-1-py3-none-any.whl#sha256=aaa"),
        ("foo @ git+https://x.example/foo.git@main#subdirectory=pkg # ours\n",
         "foo @ git+https://x.example/foo.git@main#subdirectory=pkg"),
        ("# a \\\nfoo==1\n", "foo==1"),
        ("foo==1 \\\n    --hash=sha256:a \\\n    --hash=sha256:b\n    # via -r x\n",
         "foo==1 --hash=sha256:a --hash=sha256:b"),
        ("foo==1 # was --hash=x\n", "foo==1"),
    ],
)  # fmt: skip
def test_a_comment_begins_a_line_or_follows_a_space(tmp_path: Path, text: str, wanted: str) -> None:
    assert list(for_lambda(lock(tmp_path, text), LAMBDA)) == [f"{wanted}\n"]


@pytest.mark.parametrize(
    ("platform", "wanted"), [(Platform("3.12"), "old"), (Platform("3.13", "x86_64"), "intel")]
)
def test_markers_are_judged_for_the_chosen_platform(
    tmp_path: Path, platform: Platform, wanted: str
) -> None:
    text = "old==1 ; python_version < '3.13'\nintel==1 ; platform_machine == 'x86_64'\n"
    assert list(for_lambda(lock(tmp_path, text), platform)) == [f"{wanted}==1\n"]


@pytest.mark.parametrize("path", sorted(LOCKS.glob("*[!dv].txt")), ids=lambda path: path.stem)
def test_our_locks_can_be_read(path: Path) -> None:
    lines = list(for_lambda(path, LAMBDA))
    assert lines
    assert all("==" in line and "--hash=sha256:" in line for line in lines)


@pytest.fixture
def ours(tmp_path: Path, index: Path) -> Path:
    """A lock of our own code with base 1.0, where the index has 2.0 as well."""
    digest = write_wheel(index, "base")
    write_wheel(index, "base", version="2.0")
    return lock(tmp_path, f"base==1.0 --hash=sha256:{digest}\n")


def own(tmp_path: Path, text: str) -> Path:
    """An integrator's requirements."""
    path = tmp_path / "functions" / "requirements.txt"
    path.parent.mkdir()
    path.write_text(text)
    return path


def test_your_requirements_are_resolved_with_the_versions_that_we_ship(
    tmp_path: Path, index: Path, ours: Path
) -> None:
    write_wheel(index, "shop", needs="base")
    wanted = own(tmp_path, "shop==1.0\n")
    _, tree = vendored([ours], own=wanted, into=tmp_path / "vendor", platform=LAMBDA)
    assert {path.name for path in tree.glob("*.dist-info")} == {
        "shop-1.0.dist-info",
        "base-1.0.dist-info",
    }


def test_your_requirements_may_not_need_another_version_than_we_ship(
    tmp_path: Path, index: Path, ours: Path
) -> None:
    with pytest.raises(ConfigurationError, match=r"functions/requirements\.txt: cannot fetch its"):
        vendored(
            [ours], own=own(tmp_path, "base==2.0\n"), into=tmp_path / "vendor", platform=LAMBDA
        )


def test_your_lock_may_not_have_another_version_than_we_ship(
    tmp_path: Path, index: Path, ours: Path
) -> None:
    digest = sha256((index / "base-2.0-py3-none-any.whl").read_bytes()).hexdigest()
    wanted = own(tmp_path, f"base==2.0 --hash=sha256:{digest}\n")
    with pytest.raises(ConfigurationError) as refusal:
        vendored([ours], own=wanted, into=tmp_path / "vendor", platform=LAMBDA)
    assert str(refusal.value) == (
        "functions/requirements.txt installs base 2.0, and the processor ships base 1.0: require"
        " base==1.0"
    )


@pytest.mark.parametrize("line", ["-r more.txt", "./wheels/shop.whl", "shop="])
def test_a_line_that_is_no_requirement_is_named(tmp_path: Path, line: str, ours: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"functions/requirements\.txt: .* is not a requ"):
        vendored([ours], own=own(tmp_path, f"{line}\n"), into=tmp_path / "vendor", platform=LAMBDA)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with an integrator's requirements."""
    own(tmp_path, "shop==1.0\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_says_what_failed(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(
        locks: list[Path], *, own: Path | None, into: Path, platform: Platform
    ) -> list[Path]:
        raise ConfigurationError(f"no {locks[0].name} in {into.name}")

    monkeypatch.setattr("webhook_inbox_cdk.vendor.vendored", refuse)
    assert main() == 1
    assert capsys.readouterr().err == "no verification.txt in vendor\n"


def test_the_command_fetches_every_function_s_wheels(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[tuple[str, ...], Path | None]] = []
    platforms = set()

    def note(locks: list[Path], *, own: Path | None, into: Path, platform: Platform) -> list[Path]:
        asked.append((tuple(path.stem for path in locks), own))
        platforms.add(platform)
        return []

    monkeypatch.setattr("webhook_inbox_cdk.vendor.vendored", note)
    assert main() == 0
    assert asked == [
        (("verification",), None),
        (("processor", "verification"), Path("functions/requirements.txt")),
        (("replay",), None),
        (("reconciler",), None),
    ]
    assert platforms == {LAMBDA}
    context = {"python": "3.12", "architecture": "x86_64"}
    (project / "cdk.json").write_text(json.dumps({"context": context}))
    assert main() == 0
    assert platforms == {LAMBDA, Platform("3.12", "x86_64")}


def test_the_command_refuses_another_platform(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "cdk.json").write_text(json.dumps({"context": {"python": "3.9"}}))
    assert main() == 1
    assert capsys.readouterr().err == (
        "python is '3.9'; the functions support 3.13 and 3.12: correct `-c python=…`, the context"
        " in cdk.json, or InboxProps.python\n"
    )
