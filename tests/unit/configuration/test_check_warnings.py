"""Warnings about valid projects name place and remedy, and `allow` omits each."""

from pathlib import Path

import pytest

from webhook_inbox.configuration.check_warnings import warnings
from webhook_inbox.configuration.compile import compile_manifest

pytestmark = pytest.mark.usefixtures("in_the_project")

QUIET = "[alarms]\nnotify = []\n"
TOML = f'{QUIET}[sources.shop]\nprovider = "stripe"\n'
TOP = 'from webhook_inbox import Router, forward\n\nshop = Router("shop")\n'
HANDLER = '\n\n@shop.on({types})\ndef {name}(event, ctx):\n    """Does nothing."""\n'


def found(toml: str, *, stage: str = "dev", **modules: str) -> list[str]:
    root = Path("functions")
    (root / "inbox.toml").write_text(toml)
    (root / "handlers").mkdir()
    (root / "handlers" / "__init__.py").write_text(f"MODULES = {tuple(modules)!r}\n")
    for name, code in modules.items():
        (root / "handlers" / f"{name}.py").write_text(TOP + code)
    return warnings(root, compile_manifest(root, stage=stage))


def handlers(**types: str) -> str:
    return "".join(HANDLER.format(name=name, types=given) for name, given in types.items())


def test_a_project_whose_events_are_all_handled_has_none() -> None:
    code = handlers(paid='"invoice.paid"', other='"customer.*", "*.deleted"')
    toml = f'{TOML}types = ["invoice.*", "customer.*", "*.deleted"]\n'
    assert found(toml, shop=code.replace('"*.deleted"', '"item.deleted"')) == []


def test_a_source_without_handlers() -> None:
    assert found(f'{TOML}[sources.mail]\nprovider = "sendgrid"\n', shop=handlers(a='"*"')) == [
        "functions/inbox.toml [sources.mail]: no handler takes its events, which are stored but not"
        " handled; write one for its Router, remove the source, or set"
        ' allow = ["unhandled"] in [sources.mail]'
    ]


def test_a_type_that_no_handler_takes() -> None:
    toml = f'{TOML}types = ["invoice.*", "customer.*"]\n'
    assert found(toml, shop=handlers(paid='"invoice.paid"')) == [
        'functions/inbox.toml [sources.shop] types: no handler takes "customer.*", whose events are'
        " stored but not handled; write one, remove the type, or set"
        ' allow = ["unhandled"] in [sources.shop]'
    ]


def test_overlapping_patterns_of_one_module() -> None:
    assert found(TOML, shop=handlers(paid='"invoice.paid"', every='"charge.*", "invoice.*"')) == [
        "functions/handlers/shop.py:12: handler 'shop.every' takes \"invoice.*\", and 'shop.paid'"
        ' (functions/handlers/shop.py:7) takes "invoice.paid": an event of both patterns has a run'
        ' of each; narrow one pattern, or set allow = ["overlap"] in [sources.shop] if both are to'
        " run"
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [("invoice.*", "*.paid"), ("invoice.[pv]*", "invoice.paid"), ("a?c", "abc")],
)
def test_patterns_overlap_in_every_way(one: str, other: str) -> None:
    [warning] = found(TOML, shop=handlers(one=f'"{one}"', other=f'"{other}"'))
    assert f'takes "{other}", and' in warning
    assert f'takes "{one}": ' in warning


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('"invoice.paid"', '"invoice.paid"'),
        ('"invoice.*"', '"invoice.*"'),
        ('"invoice.paid"', '"*"'),
        ('"*"', '"*"'),
        ('"invoice.*"', '"charge.*"'),
        ('"invoice.paid"', '"invoice.void"'),
    ],
)
def test_several_handlers_of_one_type_are_intended(one: str, other: str) -> None:
    assert found(TOML, shop=handlers(one=one, other=other)) == []


def test_handlers_of_two_modules_are_intended() -> None:
    one, other = handlers(one='"invoice.*"'), handlers(other='"invoice.paid"')
    assert found(TOML, one=one, other=other) == []


def test_one_handler_may_repeat_itself() -> None:
    assert found(TOML, shop=handlers(one='"invoice.*", "invoice.paid"')) == []


def test_a_ready_made_handler_has_a_file_and_no_line() -> None:
    code = '\nshop.on("invoice.*", name="shop.forward")(forward("crm"))\n'
    toml = f'{TOML}[destinations.crm]\nbase_url = "https://api.crm.io"\n'
    [warning] = found(toml, shop=handlers(paid='"invoice.paid"') + code)
    assert warning.startswith("functions/handlers/shop.py: handler 'shop.forward' takes")


@pytest.mark.parametrize(
    ("allow", "code", "count"),
    [
        ("", handlers(paid='"invoice.paid"', every='"invoice.*"'), 2),
        ('"unhandled"', handlers(paid='"invoice.paid"', every='"invoice.*"'), 1),
        ('"overlap"', handlers(paid='"invoice.paid"', every='"invoice.*"'), 1),
        ('"unhandled", "overlap"', handlers(paid='"invoice.paid"', every='"invoice.*"'), 0),
        ("", "", 1),
        ('"overlap"', "", 1),
        ('"unhandled"', "", 0),
    ],
)
def test_each_warning_is_allowed_by_its_name(allow: str, code: str, count: int) -> None:
    toml = f'{TOML}types = ["invoice.*", "customer.*"]\nallow = [{allow}]\n'
    assert len(found(toml, shop=code)) == count


def test_the_run_that_splits_batches_handles_nothing() -> None:
    [warning] = found(f'{QUIET}[sources.mail]\nprovider = "sendgrid"\n')
    assert "[sources.mail]: no handler takes its events" in warning


STAGES = f"{TOML}[stages.prod]\n[stages.staging]\n"


@pytest.mark.parametrize(("stage", "meant"), [("prd", "prod"), ("stagin", "staging")])
def test_a_misspelled_stage(stage: str, meant: str) -> None:
    assert found(STAGES, stage=stage, shop=handlers(a='"*"')) == [
        f'functions/inbox.toml has no tables for the stage "{stage}"; did you mean "{meant}"?'
        f" Otherwise add an empty [stages.{stage}]"
    ]


@pytest.mark.parametrize("stage", ["dev", "local", "prod", "prod-eu", "test"])
def test_other_stages_are_no_misspellings(stage: str) -> None:
    assert found(STAGES, stage=stage, shop=handlers(a='"*"')) == []


@pytest.mark.parametrize("stage", ["dev", "prod"])
def test_alarms_that_reach_no_address(stage: str) -> None:
    toml = TOML.removeprefix(QUIET)
    assert found(toml, stage=stage, shop=handlers(a='"*"')) == [
        f"functions/inbox.toml [alarms]: no address receives the alarms of the stage {stage};"
        ' set notify = ["mailto:…"] or ["https://…"], or notify = [] if none is to'
    ]


def test_alarms_of_another_stage_reach_no_address_of_this_one() -> None:
    toml = TOML.removeprefix(QUIET) + '[stages.prod.alarms]\npage = ["https://pager.a.io"]\n'
    assert len(found(toml, stage="staging", shop=handlers(a='"*"'))) == 1


@pytest.mark.parametrize(
    ("stage", "alarms"),
    [
        ("dev", '[alarms]\npage = ["mailto:team@a.io"]\n'),
        ("dev", "[alarms]\nnotify = []\n"),
        ("prod", "[stages.prod.alarms]\nnotify = []\n"),
        ("local", ""),
    ],
)
def test_alarms_with_an_address_or_an_empty_list_and_those_of_a_session_are_silent(
    stage: str, alarms: str
) -> None:
    toml = TOML.removeprefix(QUIET) + alarms
    assert found(toml, stage=stage, shop=handlers(a='"*"')) == []
