"""The wheels for Lambda: chosen for Lambda, checked, and fetched before they are needed.

Against real pip and a directory of wheels made here; no package index.
"""

import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from stacks.vendor import GROUPS, for_lambda, main, vendored
from webhook_inbox.domain.errors import ConfigurationError

TOP = Path(__file__).resolve().parents[2]


def write_wheel(index: Path, name: str, *, tag: str = "py3-none-any") -> str:
    """Writes a wheel with one module that knows its tag; returns its hash."""
    index.mkdir(exist_ok=True)
    wheel = index / f"{name}-1.0-{tag}.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{name}.py", f"TAG = {tag!r}\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
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


def test_wheels_are_lambda_s_and_not_this_machine_s(tmp_path: Path, index: Path) -> None:
    hashes = [
        write_wheel(index, "thing", tag=f"cp313-cp313-manylinux_2_17_{machine}")
        for machine in ("x86_64", "aarch64")
    ]
    text = f"thing==1.0 \\\n    --hash=sha256:{hashes[0]} \\\n    --hash=sha256:{hashes[1]}\n"
    target = vendored(lock(tmp_path, text), into=tmp_path / "vendor")
    assert "aarch64" in (target / "thing.py").read_text()


def test_neither_bytecode_nor_scripts_of_this_machine_come_along(
    tmp_path: Path, index: Path
) -> None:
    text = f"thing==1.0 --hash=sha256:{write_wheel(index, 'thing')}\n"
    target = vendored(lock(tmp_path, text), into=tmp_path / "vendor")
    assert sorted(path.name for path in target.iterdir()) == ["thing-1.0.dist-info", "thing.py"]
    assert not list(target.rglob("*.pyc"))


def test_a_wheel_with_another_hash_is_refused(tmp_path: Path, index: Path) -> None:
    write_wheel(index, "thing")
    path = lock(tmp_path, f"thing==1.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(ConfigurationError, match=r"python -m stacks\.vendor"):
        vendored(path, into=tmp_path / "vendor")
    assert list((tmp_path / "vendor").iterdir()) == []


def test_a_requirement_without_a_hash_is_refused(tmp_path: Path, index: Path) -> None:
    write_wheel(index, "thing")
    with pytest.raises(ConfigurationError, match=r"things.txt: cannot fetch its wheels"):
        vendored(lock(tmp_path, "thing==1.0\n"), into=tmp_path / "vendor")


def test_a_missing_wheel_is_one_line(tmp_path: Path, index: Path) -> None:
    index.mkdir()
    path = lock(tmp_path, f"thing==1.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(ConfigurationError) as refusal:
        vendored(path, into=tmp_path / "vendor")
    assert "\n" not in str(refusal.value)


def test_what_is_here_needs_no_index(
    tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lock(tmp_path, f"thing==1.0 --hash=sha256:{write_wheel(index, 'thing')}\n")
    first = vendored(path, into=tmp_path / "vendor")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    assert vendored(path, into=tmp_path / "vendor") == first


def test_a_changed_lock_gets_a_directory_of_its_own(tmp_path: Path, index: Path) -> None:
    one, two = write_wheel(index, "one"), write_wheel(index, "two")
    first = vendored(lock(tmp_path, f"one==1.0 --hash=sha256:{one}\n"), into=tmp_path / "vendor")
    second = vendored(lock(tmp_path, f"two==1.0 --hash=sha256:{two}\n"), into=tmp_path / "vendor")
    assert (first / "one.py").exists()
    assert not (second / "one.py").exists()


def test_an_empty_lock_needs_no_pip(tmp_path: Path) -> None:
    target = vendored(lock(tmp_path, "# nothing yet\n"), into=tmp_path / "vendor")
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
    assert list(for_lambda(path)) == (["thing==1.0 --hash=sha256:aa\n"] if needed else [])


@pytest.mark.parametrize("group", GROUPS)
def test_our_locks_can_be_read(group: str) -> None:
    lines = list(for_lambda(TOP / "requirements" / f"{group}.txt"))
    assert lines
    assert all("==" in line and "--hash=sha256:" in line for line in lines)


def test_the_command_says_what_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(lock: Path, *, into: Path) -> Path:
        raise ConfigurationError(f"no {lock.name} in {into.name}")

    monkeypatch.setattr("stacks.vendor.vendored", refuse)
    assert main() == 1
    assert capsys.readouterr().err == "no ingest.txt in vendor\n"


def test_the_command_fetches_every_group(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("stacks.vendor.vendored", lambda lock, *, into: asked.append(lock.stem))
    assert main() == 0
    assert tuple(asked) == GROUPS
