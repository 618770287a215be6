"""Imports of handlers that the processor's bundle does not contain are refused before Lambda."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from webhook_inbox.configuration import bundle_imports
from webhook_inbox.configuration.bundle_imports import check_imports, imports
from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.domain.errors import ConfigurationError

REPOSITORY = Path(__file__).resolve().parents[3]
HASH = " --hash=sha256:ab"
ADD = "to functions/requirements.txt; if the handler works without it, handle the ImportError;"


def allow(module: str) -> str:
    return f' if the bundle contains it, set allow_imports = ["{module}"] in inbox.toml'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A `functions/` with an empty package `handlers`, without requirements."""
    (tmp_path / "functions" / "handlers").mkdir(parents=True)
    (tmp_path / "functions" / "requirements.txt").touch()
    return tmp_path / "functions"


def requires(root: Path, text: str) -> None:
    (root / "requirements.txt").write_text(text)


def write(root: Path, file: str, code: str) -> None:
    path = root / "handlers" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code)


def check(root: Path, code: str, *, file: str = "orders.py", allowed: Sequence[str] = ()) -> None:
    write(root, "__init__.py", 'MODULES = ("orders",)\n')
    write(root, "orders.py", "")
    write(root, file, code)
    check_imports(root, requirements=[root / "requirements.txt"], allowed=allowed)


def fault(root: Path, code: str, *, file: str = "orders.py") -> str:
    with pytest.raises(ConfigurationError) as refusal:
        check(root, code, file=file)
    return str(refusal.value)


@pytest.mark.parametrize(
    "code",
    [
        "import os.path, json",
        "from xml.etree import ElementTree",
        "import boto3, botocore.config, jmespath, s3transfer, urllib3, dateutil.parser, six",
        "from snapshot_restore_py import register_after_restore",
        "from webhook_inbox import Router",
        "from webhook_inbox.adapters import system",
        "from webhook_inbox.handlers.router import Router",
        "from handlers._shared import post",
        "from . import _shared\nfrom ._shared import post\nfrom .. import anything",
        "from __future__ import annotations",
        "broken(",
    ],
)
def test_modules_of_the_runtime_and_of_the_inbox_are_contained(root: Path, code: str) -> None:
    check(root, code)


def test_an_installed_module_without_a_requirement_is_refused(root: Path) -> None:
    assert fault(root, '"""Orders."""\n\nimport stripe\n') == (
        "functions/handlers/orders.py:3: imports stripe, which the processor's bundle does not"
        f" contain (it is installed by stripe); add stripe {ADD}{allow('stripe')}"
    )


def test_the_distribution_may_have_another_name_than_its_module(root: Path) -> None:
    assert "installed by pyjwt); add pyjwt to" in fault(root, "import jwt").lower()
    requires(root, f"pyjwt==2.15.1 \\\n   {HASH}\n    # via me\n")
    check(root, "import jwt.algorithms")


def test_requirements_with_hashes_are_complete_and_others_are_resolved(root: Path) -> None:
    requires(root, "# ours\nhttpx>=0.28\n")
    check(root, "import httpx, anyio, idna")
    requires(root, f"httpx==0.28.1{HASH}\n")
    check(root, "import httpx")
    assert "installed by anyio); add anyio to functions/requirements.txt, with its hashes" in (
        fault(root, "import httpx, anyio")
    )


def test_a_distribution_that_is_not_installed_has_a_module_of_its_name(root: Path) -> None:
    requires(root, "Not-Installed[extra]==1.0 ; python_version > '3'\n")
    check(root, "def handle(event, ctx):\n    import not_installed.things\n")
    assert fault(root, "import nothing_of_the_kind") == (
        "functions/handlers/orders.py:1: imports nothing_of_the_kind, which the processor's bundle"
        " does not contain, as far as the installed distributions tell (not installed here:"
        f" not-installed); install those, or add its distribution {ADD}"
        + allow("nothing_of_the_kind")
    )


def test_a_misspelled_module_is_refused(root: Path) -> None:
    assert "imports jsn, " in fault(root, "import jsn")
    assert "; correct the name, or install its distribution and add it" in fault(root, "import jsn")


@pytest.mark.parametrize(
    "code",
    [
        "def handle(event, ctx):\n    import stripe\n",
        "async def handle(event, ctx):\n    from stripe import Event\n",
        "class A:\n    import stripe\n",
        "try:\n    import stripe\nexcept ValueError:\n    pass\n",
        "try:\n    import json5\nexcept ImportError:\n    import stripe\n",
        "try:\n    pass\nexcept ImportError:\n    pass\nelse:\n    import stripe\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    pass\nelse:\n    import stripe\n",
        "if not TYPE_CHECKING:\n    import stripe\n",
        "import sys\nif sys.version_info >= (3, 11):\n    import stripe\n",
        "if __name__ != '__main__':\n    import stripe\n",
        "with suppress(KeyError):\n    import stripe\n",
        "import stripe as json",
    ],
)
def test_an_import_anywhere_is_found(root: Path, code: str) -> None:
    assert "imports stripe, " in fault(root, code)


@pytest.mark.parametrize(
    "code",
    [
        "try:\n    import stripe\nexcept ImportError:\n    stripe = None\n",
        "try:\n    import stripe\nexcept (KeyError, ModuleNotFoundError):\n    stripe = None\n",
        "try:\n    import stripe\nexcept:\n    stripe = None\n",
        "if TYPE_CHECKING:\n    import stripe\n",
        "import typing as t\nif t.TYPE_CHECKING:\n    from stripe import Event\n",
        "try:\n    import tomllib\nexcept ImportError:\n    import tomli as tomllib\n",
        "import sys\nif sys.version_info < (3, 11):\n    import tomli\nelse:\n    import tomllib\n",
        "import sys\nif sys.version_info >= (3, 14):\n    import annotationlib\n",
        "try:\n    import stripe\nexcept ImportError:\n    pass\nelse:\n    import stripe.api\n",
        "try:\n    import stripe\n    HAS = True\nexcept ImportError:\n    HAS = False\n"
        "if HAS:\n    import stripe.api\n",
        "with contextlib.suppress(ImportError):\n    import stripe\n",
        "from contextlib import suppress\nwith suppress(ModuleNotFoundError):\n    import stripe\n",
        "try:\n    import stripe\nexcept builtins.ImportError:\n    stripe = None\n",
        "if __name__ == '__main__':\n    import pytest\n",
        "x = " + " + ".join(["'a'"] * 1500),
    ],
)
def test_an_optional_import_may_be_missing(root: Path, code: str) -> None:
    check(root, code)


@pytest.mark.parametrize(
    ("code", "file"),
    [
        ("from handlers import _shared", "_shared.py"),
        ("from handlers._shared import post", "_shared.py"),
        ("import handlers._shop.mail as mail", "_shop/mail.py"),
        ("def handle(event, ctx):\n    from ._shop import mail", "_shop/mail.py"),
        ("import handlers._shop.mail", "_shop/__init__.py"),
        ("from . import _shop", "_shop/__init__.py"),
    ],
)
def test_what_a_registered_module_imports_is_read(root: Path, code: str, file: str) -> None:
    write(root, file, "\nimport stripe")
    with pytest.raises(ConfigurationError, match=f"^functions/handlers/{file}:2: imports stripe"):
        check(root, code)


def test_a_package_imports_its_own_modules(root: Path) -> None:
    write(root, "_shop/a/deep.py", "import stripe")
    write(root, "_shop/b.py", "from .a import deep")
    assert fault(root, "from ._shop import b").startswith("functions/handlers/_shop/a/deep.py:1: ")


def test_files_that_nothing_imports_are_not_read(root: Path) -> None:
    write(root, "_shop/tests/test_mail.py", "import pytest")
    check(root, "import handlers._shop")


def test_a_module_may_be_allowed(root: Path) -> None:
    check(root, "import h2.config", allowed=["h2"])
    (root / "inbox.toml").write_text('allow_imports = ["nothing_of_the_kind"]\n')
    write(root, "orders.py", "def handle(event, ctx):\n    import nothing_of_the_kind\n")
    with pytest.raises(ConfigurationError, match="has no Router"):  # the check after this one
        compile_manifest(root, stage="local", requirements=[root / "requirements.txt"])


def test_requested_extras_are_contained(root: Path) -> None:
    requires(root, "httpx[http2, socks]==0.28.1\n")
    check(root, "import h2, socksio")
    requires(root, "httpx==0.28.1\n")
    assert "imports h2, " in fault(root, "import h2")


def test_an_editable_installation_is_read(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "src" / "corp_thing").mkdir(parents=True)
    (tmp_path / "src" / "corp_thing" / "__init__.py").touch()
    about = tmp_path / "site" / "corp_lib-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: corp-lib\nVersion: 1.0\n")
    (about / "RECORD").write_text("_corp_lib.pth,,\ncorp_lib-1.0.dist-info/METADATA,,\n")
    (tmp_path / "site" / "_corp_lib.pth").write_text(f"{tmp_path / 'src'}\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    requires(root, "corp-lib==1.0\n")
    check(root, "import corp_thing")


def test_requirements_are_utf8(root: Path) -> None:
    (root / "requirements.txt").write_bytes(b"\xef\xbb\xbfstripe==16.1.0\n")
    check(root, "import stripe")
    for encoding in ("utf-16", "latin-1"):
        (root / "requirements.txt").write_bytes("# Größe\nstripe==1\n".encode(encoding))
        assert fault(root, "import stripe").startswith(
            "functions/requirements.txt: not UTF-8 at byte "
        )


@pytest.mark.parametrize(
    "code",
    [
        "from webhook_inbox.testing import Fake",
        "from webhook_inbox import testing",
        "import webhook_inbox.testing.fake as fake",
        "from webhook_inbox.adapters import memory",
        "from webhook_inbox import Router, configuration",
    ],
)
def test_packages_of_the_library_that_no_bundle_has_are_refused(root: Path, code: str) -> None:
    assert "which is for tests and builds, and no bundle contains it" in fault(root, code)


def test_modules_beside_handlers_are_refused(root: Path) -> None:
    (root / "common").mkdir()
    assert fault(root, "from common.mail import send") == (
        "functions/handlers/orders.py:1: imports common, which is in functions/, and the"
        " processor's bundle contains only functions/handlers/; move it to handlers/_common and"
        " import handlers._common"
    )


def test_the_version_of_the_standard_library_is_that_of_lambda(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fault(root, "import cgi").endswith(
        "imports cgi, which Python 3.13, Lambda's version, does not have; remove the import"
    )
    newer = frozenset({*sys.stdlib_module_names, "annotationlib"})
    monkeypatch.setattr(bundle_imports.sys, "stdlib_module_names", newer)
    assert "which is newer than Python 3.13" in fault(root, "import annotationlib")


def test_lines_are_those_of_the_import(root: Path) -> None:
    file = root / "handlers" / "orders.py"
    file.write_text("import os\n\n\ndef f():\n    from json import (\n        dumps,\n    )\n")
    assert [(each.module, each.line) for each in imports(file, {"os", "json"})] == [
        ("os", 1),
        ("json.dumps", 5),
    ]


def test_the_manifest_is_not_compiled(root: Path) -> None:
    (root / "inbox.toml").write_text("")
    (root / "handlers" / "__init__.py").write_text('MODULES = ("orders",)\n')
    (root / "handlers" / "orders.py").write_text("import stripe\n1 / 0\n")
    with pytest.raises(ConfigurationError, match="imports stripe, "):
        compile_manifest(root, stage="local", requirements=[root / "requirements.txt"])
    with pytest.raises(ConfigurationError, match="ZeroDivisionError"):
        compile_manifest(root, stage="local")


def test_a_reload_is_not_delayed() -> None:
    functions = REPOSITORY / "functions"
    names = ("processor", "verification")
    locks = [REPOSITORY / "requirements" / f"{name}.txt" for name in names]

    def seconds() -> float:
        begun = time.process_time()
        check_imports(functions, requirements=[*locks, functions / "requirements.txt"])
        return time.process_time() - begun

    # One of some tries: a try is slowed down by the machine's other work, and never sped up.
    assert any(seconds() < 0.3 for _ in range(3))
