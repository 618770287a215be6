"""The bytecode of a bundle's modules: compiled once, reproducible, and used by Lambda's Python."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from webhook_inbox_cdk import bytecode
from webhook_inbox_cdk.bundle import Workshop
from webhook_inbox_cdk.bytecode import Interpreter
from webhook_inbox_cdk.platform import Platform

from tests.infra.conftest import write_functions
from tests.infra.damage import DAMAGE, damage_file
from tests.infra.test_bundles import files, scatter, tree_of, umask
from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.domain.errors import ConfigurationError

PYTHON = Platform().python
OTHER = "3.12" if sys.version_info[:2] != (3, 12) else "3.13"
# It prints where a module's code was compiled, and where it was loaded from.
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import thing
print(thing.VALUE, thing.work.__code__.co_filename, thing.__cached__)
"""


@pytest.fixture
def lambdas() -> Interpreter:
    """Lambda's Python; CI has it in the job for that version."""
    found = bytecode.interpreter(PYTHON)
    if found is None:
        pytest.skip(f"NOT RUN: bytecode needs Python {PYTHON}: install python{PYTHON}")
    return found


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine whose only Python is this process's; returns a directory on its PATH."""
    path = tmp_path / "bin"
    path.mkdir()
    monkeypatch.setenv("PATH", str(path))
    bytecode.interpreter.cache_clear()
    bytecode.compiler.cache_clear()
    yield path
    bytecode.interpreter.cache_clear()
    bytecode.compiler.cache_clear()


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of one wheel, in place of those of every requirement file."""
    directory = tmp_path / "trees" / "wheel"
    directory.mkdir(parents=True)
    (directory / "thing.py").write_text("VALUE = 1\n\n\ndef work(): pass\n")
    monkeypatch.setattr("webhook_inbox_cdk.bundle.vendored", lambda *_, **__: [directory])
    return directory


def workshop(functions: Path, python: str = PYTHON) -> Workshop:
    manifest = compile_manifest(functions, stage="dev")
    platform = Platform(python)
    return Workshop(functions, manifest, functions.parent / ".build", platform=platform)


def cached(name: str, python: str = PYTHON) -> str:
    """Returns the name of a module's bytecode."""
    path = Path(name)
    tag = python.replace(".", "")
    return (path.parent / "__pycache__" / f"{path.stem}.cpython-{tag}.pyc").as_posix()


def test_every_module_has_its_bytecode(tmp_path: Path, wheel: Path, lambdas: Interpreter) -> None:
    made = files(workshop(write_functions(tmp_path)).make("processor").directory)
    modules = {name for name in made if name.endswith(".py")}
    assert {"thing.py", "compiled_manifest.py", "handlers/billing.py"} < modules
    assert {name for name in made if name.endswith(".pyc")} == set(map(cached, modules))


def test_the_laptop_s_bundles_have_none(tmp_path: Path, lambdas: Interpreter) -> None:
    functions = write_functions(tmp_path)
    manifest = compile_manifest(functions, stage="dev")
    made = Workshop(functions, manifest, tmp_path / ".build", wheels=False).make("processor")
    assert not [name for name in files(made.directory) if name.endswith(".pyc")]


def test_lambda_s_python_loads_it_whatever_the_times_and_the_source(
    tmp_path: Path, wheel: Path, lambdas: Interpreter
) -> None:
    made = workshop(write_functions(tmp_path)).make("ingest").directory
    # Proves which of both is loaded.
    (made / "thing.py").write_text("VALUE = 2\n")
    command = [lambdas.executable, "-I", "-c", PROGRAM, str(made)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    expected = f"1 {made}/thing.py {made}/__pycache__/thing.cpython-313.pyc"
    assert done.stdout.strip() == expected


def test_tracebacks_name_the_directory_in_lambda(
    tmp_path: Path, wheel: Path, lambdas: Interpreter
) -> None:
    made = workshop(write_functions(tmp_path)).make("ingest").directory
    content = (made / cached("ingest/lambda_function.py")).read_bytes()
    assert b"/var/task/ingest/lambda_function.py" in content
    assert os.fsencode(tmp_path) not in content


def test_the_build_s_machine_does_not_matter(
    tmp_path: Path, wheel: Path, lambdas: Interpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees = []
    for number, mask in enumerate((0o077, 0o002)):
        monkeypatch.setenv("PYTHONHASHSEED", str(number))
        monkeypatch.setenv("PYTHONOPTIMIZE", str(number))
        monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "elsewhere"))
        with umask(mask):
            functions = write_functions(tmp_path / f"checkout {number}")
            made = workshop(functions).make("processor")
        scatter(wheel)
        trees.append((made.digest, tree_of(made.directory)))
    assert trees[0] == trees[1]
    assert not (tmp_path / "elsewhere").exists()


def test_modules_compiled_before_do_not_matter(tmp_path: Path, lambdas: Interpreter) -> None:
    """Another handler's change must leave the bytecode of this one as it is."""
    shared = "NAMES = frozenset({'one', 'two', 'three'})\nSIZES = (1000, 2000.5, 'a text')\n"
    sources = {}
    for name in ("a.py", "b.py", "c.py"):
        sources[name] = tmp_path / name
        sources[name].write_text(shared)
    together = bytecode.compiled(sources, by=lambdas, into=tmp_path / "together")
    single = bytecode.compiled({"c.py": sources["c.py"]}, by=lambdas, into=tmp_path / "single")
    assert together[cached("c.py")].read_bytes() == single[cached("c.py")].read_bytes()


def test_a_change_of_a_module_changes_its_bytecode_only(
    tmp_path: Path, wheel: Path, lambdas: Interpreter
) -> None:
    shop = workshop(write_functions(tmp_path))
    before = tree_of(shop.make("ingest").directory)
    (wheel / "thing.py").write_text("VALUE = 3\n")
    after = tree_of(shop.make("ingest").directory)
    changed = {name for name in before | after if before.get(name) != after.get(name)}
    assert changed == {"thing.py", cached("thing.py")}


def test_what_is_compiled_is_not_compiled_again(
    tmp_path: Path, wheel: Path, lambdas: Interpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = workshop(write_functions(tmp_path))
    first = shop.make("processor")
    monkeypatch.setattr(bytecode, "_compile", lambda *_: pytest.fail("compiled again"))
    assert shop.make("processor") == first


@pytest.mark.parametrize("how", DAMAGE)
def test_damaged_bytecode_is_compiled_again(
    tmp_path: Path, wheel: Path, lambdas: Interpreter, how: str
) -> None:
    shop = workshop(write_functions(tmp_path))
    first = shop.make("ingest")
    whole = tree_of(first.directory)
    [kept] = (shop.build / "bytecode").rglob(f"content/{cached('thing.py')}")
    damage_file(kept, how)
    assert shop.make("ingest") == first
    assert tree_of(first.directory) == whole


def test_concurrent_builds_compile_to_one_bundle(
    tmp_path: Path, wheel: Path, lambdas: Interpreter
) -> None:
    shop = workshop(write_functions(tmp_path))
    with ThreadPoolExecutor(4) as pool:
        made = set(pool.map(lambda _: shop.make("ingest"), range(4)))
    assert len(made) == 1
    # Of the wheel, the library, the entry point and the manifest.
    assert len(list((shop.build / "bytecode").iterdir())) == 4


def test_a_module_that_does_not_compile_ships_as_its_source(
    tmp_path: Path, wheel: Path, lambdas: Interpreter
) -> None:
    (wheel / "template.py").write_text("class {{ name }}:\n")
    (wheel / "latin.py").write_bytes(b"NAME = 'caf\xe9'\n")
    made = files(workshop(write_functions(tmp_path)).make("ingest").directory)
    assert {"template.py", "latin.py", "thing.py", cached("thing.py")} < made
    assert not {cached("template.py"), cached("latin.py")} & made


def test_a_module_that_replaces_another_has_its_own_bytecode_or_none(
    tmp_path: Path, wheel: Path, lambdas: Interpreter
) -> None:
    (wheel / "handlers").mkdir()
    for name in ("billing.py", "_broken.py"):
        (wheel / "handlers" / name).write_text("VALUE = 'of the wheel'\n")
    functions = write_functions(tmp_path)
    (functions / "handlers" / "_broken.py").write_text("class {{ name }}:\n")
    made = workshop(functions).make("processor").directory
    assert b"of the wheel" not in (made / cached("handlers/billing.py")).read_bytes()
    assert not (made / cached("handlers/_broken.py")).exists()


def test_bytecode_inside_a_wheel_does_not_ship(tmp_path: Path, wheel: Path) -> None:
    (wheel / "__pycache__").mkdir()
    for tag in ("cpython-39", "cpython-313"):
        (wheel / "__pycache__" / f"thing.{tag}.pyc").write_bytes(b"x")
    (wheel / "closed.pyc").write_bytes(b"a module without its source")
    made = workshop(write_functions(tmp_path)).make("ingest").directory
    assert not [path for path in made.rglob("__pycache__/*.pyc") if path.read_bytes() == b"x"]
    assert cached("thing.py", "3.9") not in files(made)
    assert "closed.pyc" in files(made)


def test_a_machine_without_lambda_s_python_builds_without_bytecode_and_says_it_once(
    tmp_path: Path, wheel: Path, alone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = workshop(write_functions(tmp_path), OTHER)
    for function in ("ingest", "replay"):
        made = files(shop.make(function).directory)
        assert "thing.py" in made
        assert not [name for name in made if name.endswith(".pyc")]
    [notice] = capsys.readouterr().err.splitlines()
    assert notice.endswith(f"install Python {OTHER}, so that python{OTHER} is on the PATH")


@pytest.mark.parametrize(
    "answer", ["3.9 /usr/bin/python\n0f0d0d0a 3.9.1", "pyenv: no such command", ""]
)
def test_a_command_that_is_another_python_or_none_does_not_compile(
    alone: Path, answer: str
) -> None:
    command = alone / f"python{OTHER}"
    command.write_text(f"#!/bin/sh\necho '{answer}'\n")
    command.chmod(0o755)
    assert bytecode.interpreter(OTHER) is None


def test_this_process_s_python_compiles_for_its_own_version(alone: Path) -> None:
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    found = bytecode.interpreter(version)
    assert found is not None
    assert found.executable == sys.executable


def test_a_crash_of_the_interpreter_ends_the_build(tmp_path: Path, alone: Path) -> None:
    """Half of the bytecode would be kept as all of it."""
    command = alone / "crashing"
    command.write_text("#!/bin/sh\necho out of memory >&2\nexit 3\n")
    command.chmod(0o755)
    (tmp_path / "thing.py").touch()
    sources = {"thing.py": tmp_path / "thing.py"}
    with pytest.raises(ConfigurationError, match=r"crashing: compileall ended with 3: out of mem"):
        bytecode.compiled(sources, by=Interpreter(str(command), ""), into=tmp_path / "kept")
    assert list((tmp_path / "kept").iterdir()) == []
