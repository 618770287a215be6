"""MODULES of `handlers/__init__.py`: what is registered, and what was forgotten."""

from pathlib import Path

import pytest

from webhook_inbox.configuration.handler_modules import module_file, registered_modules, shown
from webhook_inbox.domain.errors import ConfigurationError

REGISTRY = 'from typing import Final\n\nMODULES: Final = ("github_issues", "billing")\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A `functions/` with two registered modules."""
    root = tmp_path / "functions"
    (root / "handlers").mkdir(parents=True)
    (root / "handlers" / "__init__.py").write_text(REGISTRY)
    for module in ("github_issues", "billing"):
        (root / "handlers" / f"{module}.py").touch()
    return root


def register(root: Path, text: str) -> None:
    (root / "handlers" / "__init__.py").write_text(text)


def test_modules_come_in_the_order_of_registration(root: Path) -> None:
    assert registered_modules(root) == ("github_issues", "billing")


@pytest.mark.parametrize(
    "text",
    [
        'MODULES = ("billing", "github_issues")',
        'MODULES = ["billing", "github_issues"]',
        'MODULES: tuple[str, ...] = ("billing", "github_issues")',
        'OTHER = 1\nif OTHER:\n    pass\nMODULES = ("billing", "github_issues")',
    ],
)
def test_any_literal_will_do(root: Path, text: str) -> None:
    register(root, text)
    assert registered_modules(root) == ("billing", "github_issues")


def test_nothing_of_the_user_s_runs(root: Path) -> None:
    register(root, REGISTRY + "raise SystemExit('ran')\n")
    assert registered_modules(root) == ("github_issues", "billing")


def test_an_inbox_without_handlers_is_allowed(root: Path) -> None:
    register(root, "MODULES = ()\n")
    for module in ("github_issues", "billing"):
        (root / "handlers" / f"{module}.py").unlink()
    assert registered_modules(root) == ()


def test_a_module_may_be_a_package(root: Path) -> None:
    (root / "handlers" / "billing.py").unlink()
    (root / "handlers" / "billing").mkdir()
    (root / "handlers" / "billing" / "__init__.py").touch()
    assert registered_modules(root) == ("github_issues", "billing")
    assert module_file(root, "billing").name == "__init__.py"


def test_support_files_begin_with_an_underscore(root: Path) -> None:
    (root / "handlers" / "_downstream.py").touch()
    assert registered_modules(root) == ("github_issues", "billing")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "MODULES: tuple[str, ...]\n",
        "MODULES = find_modules()\n",
        "MODULES = 'github_issues'\n",
        "MODULES = ('github_issues', 1)\n",
        "MODULES = {'github_issues': 1}\n",
        "modules = ('github_issues',)\n",
    ],
)
def test_a_registry_of_another_shape_is_refused(root: Path, text: str) -> None:
    register(root, text)
    with pytest.raises(ConfigurationError, match=r"__init__\.py: needs a line such as MODULES = "):
        registered_modules(root)


def test_a_missing_registry_is_refused(root: Path) -> None:
    (root / "handlers" / "__init__.py").unlink()
    with pytest.raises(ConfigurationError, match=r"functions/handlers/__init__\.py: needs a line"):
        registered_modules(root)


def test_a_registry_that_is_no_python_is_refused_with_its_line(root: Path) -> None:
    register(root, "\nMODULES = (\n")
    with pytest.raises(ConfigurationError, match=r"functions/handlers/__init__\.py:2: "):
        registered_modules(root)


def test_a_registered_module_without_a_file_is_refused(root: Path) -> None:
    (root / "handlers" / "billing.py").unlink()
    with pytest.raises(ConfigurationError, match=r"names 'billing', but there is no handlers/bill"):
        registered_modules(root)


@pytest.mark.parametrize("name", ["../ingest", "handlers.billing", "a b", "", "billing.py"])
def test_a_name_that_is_no_module_s_is_refused(root: Path, name: str) -> None:
    register(root, f"MODULES = ({name!r},)\n")
    with pytest.raises(ConfigurationError, match="but there is no handlers/"):
        registered_modules(root)


def test_an_unregistered_file_is_refused(root: Path) -> None:
    (root / "handlers" / "slack.py").touch()
    with pytest.raises(ConfigurationError) as refusal:
        registered_modules(root)
    assert str(refusal.value) == (
        "functions/handlers/slack.py: is not registered; add 'slack' to MODULES in"
        " handlers/__init__.py, or begin its name with an underscore if it has no handlers"
    )


def test_a_module_registered_twice_is_refused(root: Path) -> None:
    register(root, 'MODULES = ("billing", "github_issues", "billing")\n')
    with pytest.raises(ConfigurationError, match="MODULES names 'billing' twice"):
        registered_modules(root)


@pytest.mark.parametrize(
    ("path", "short"),
    [
        ("/home/a/inbox/functions/handlers/x.py", "functions/handlers/x.py"),
        ("/home/handlers/functions/handlers/x.py", "functions/handlers/x.py"),
        ("handlers/x.py", "handlers/x.py"),
        ("/usr/lib/python3/json.py", "/usr/lib/python3/json.py"),
    ],
)
def test_paths_are_shown_as_a_person_types_them(path: str, short: str) -> None:
    assert shown(Path(path)) == short
