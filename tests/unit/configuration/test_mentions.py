"""Destinations that handlers name in their code are looked up when the inbox is built."""

from pathlib import Path

import pytest

from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.configuration.handler_modules import mentioned
from webhook_inbox.domain.errors import ConfigurationError

HEAD = "from webhook_inbox import Router\nshop = Router('shop')\n"


def names(tmp_path: Path, code: str) -> list[tuple[str, int]]:
    file = tmp_path / "module.py"
    file.write_text(code)
    return list(mentioned(file))


@pytest.mark.parametrize(
    "code",
    [
        "def h(event, ctx):\n    ctx.http('crm').post('/x')",
        "def h(event, context):\n    context.destination('crm')",
        "async def h(event, c, /):\n    c.http('crm')",
        "def h(event, ctx):\n    return lambda key: ctx.http('crm').get('/x')",
        "def helper(ctx, name):\n    ctx.http('crm')",
        "class C:\n  def h(self, ctx):\n    ctx.http('crm')",
    ],
)
def test_a_literal_name_on_a_context_is_seen(tmp_path: Path, code: str) -> None:
    assert [name for name, _ in names(tmp_path, code)] == ["crm"]


@pytest.mark.parametrize(
    "code",
    [
        "def h(event, ctx):\n    ctx.http(event.type)",
        "def h(event, ctx):\n    ctx.http(f'crm-{event.type}')",
        "def h(event, ctx):\n    ctx.http()",
        "def h(event, ctx):\n    ctx.http(7)",
        "import server\nserver.http('crm')",
        "def h(event, ctx):\n    http('crm')",
        "def h(event, ctx):\n    ctx.secret('crm')",
        "def broken(:\n",
        "\0",
        "",
    ],
)
def test_what_cannot_be_read_or_is_no_context_is_left_alone(tmp_path: Path, code: str) -> None:
    assert names(tmp_path, code) == []


def test_a_file_that_is_not_there_mentions_nothing(tmp_path: Path) -> None:
    assert list(mentioned(tmp_path / "absent.py")) == []


@pytest.fixture
def project(tmp_path: Path) -> Path:
    handlers = tmp_path / "functions" / "handlers"
    handlers.mkdir(parents=True)
    (handlers / "__init__.py").write_text("MODULES = ('shop',)\n")
    code = "@shop.on('*')\ndef note(event, ctx):\n    ctx.http('crm').post('/notes')\n"
    (handlers / "shop.py").write_text(HEAD + code)
    (tmp_path / "functions" / "inbox.toml").write_text(
        '[sources.shop]\nprovider = "github"\n[destinations.crm]\nbase_url = "https://c.example"\n'
    )
    return tmp_path / "functions"


def test_a_name_that_inbox_toml_has_is_fine(project: Path) -> None:
    assert "shop.note" in compile_manifest(project, stage="local").handlers


@pytest.mark.parametrize("package", [False, True])
def test_a_misspelled_one_is_refused_with_its_line_and_the_remedy(
    project: Path, package: bool
) -> None:
    module = project / "handlers" / "shop.py"
    text = module.read_text().replace("'crm'", "'cmr'")
    if package:
        module.unlink()
        (project / "handlers" / "shop").mkdir()
        (project / "handlers" / "shop" / "__init__.py").write_text(HEAD + "from . import notes\n")
        notes = HEAD.replace("shop = Router('shop')", "from handlers.shop import shop")
        module = project / "handlers" / "shop" / "notes.py"
        text = text.replace(HEAD, notes)
    module.write_text(text)
    with pytest.raises(ConfigurationError) as refused:
        compile_manifest(project, stage="local")
    place = "shop/notes.py:5" if package else "shop.py:5"
    assert str(refused.value) == (
        f"functions/handlers/{place}: calls the destination 'cmr', which inbox.toml does not have"
        ' (it has: crm); did you mean "crm"? Otherwise add [destinations.cmr]'
    )
