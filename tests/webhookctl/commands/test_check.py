"""`check`: what a deployment would say, without one."""

import os
from pathlib import Path

import pytest

from tests.webhookctl.commands.stage import Cli


def test_sources_and_handlers_are_printed(cli: Cli, checkout: Path) -> None:
    shown = cli("check")
    assert shown.code == 0
    lines = [line.split() for line in shown.out.splitlines()]
    assert lines[:2] == [["stage", "dev"], []]
    assert lines[2] == ["SOURCE", "PROVIDER", "TYPES", "SECRET", "PATH", "RATE", "BURST"]
    assert ["stripe", "stripe", "*", "stripe", "/webhooks/stripe", "500.0", "1000"] in lines
    assert ["acme.fulfil", "acme", "paid", "default", "3", "50.0"] in lines
    *warnings, summary = shown.err.splitlines()
    assert summary == "OK for stage dev: 4 sources, 1 handler, 1 lane, 3 warnings."
    assert [line.partition("]")[0] for line in warnings] == [
        f"Warning: functions/inbox.toml [sources.{name}" for name in ("github", "stripe", "hashed")
    ]


def test_strict_makes_warnings_errors(cli: Cli, checkout: Path) -> None:
    shown = cli("check", "--strict")
    assert shown.code == 1
    assert shown.err.endswith("webhookctl: 3 warnings, which --strict makes errors\n")
    assert "OK" not in shown.err
    settings = checkout / "inbox.toml"
    stripped = settings.read_text().partition("[sources.github]")[0]
    settings.write_text(stripped)
    shown = cli("check", "--strict")
    assert (shown.code, shown.err) == (0, "OK for stage dev: 1 source, 1 handler, 1 lane.\n")


def test_strict_as_json(cli: Cli, checkout: Path) -> None:
    shown = cli("check", "--strict", "--json")
    assert shown.code == 1
    assert len(shown.data["warnings"]) == 3


def test_as_json(cli: Cli, checkout: Path) -> None:
    data = cli("check", "--stage", "prod", "--json").data
    assert sorted(data) == ["handlers", "sources", "stage", "version", "warnings"]
    assert [line.partition(":")[0] for line in data["warnings"]] == [
        f"functions/inbox.toml [sources.{name}]" for name in ("github", "stripe", "hashed")
    ]
    assert data["stage"] == "prod"
    assert data["sources"][1] == {
        "source": "github",
        "provider": "github",
        "types": ["*"],
        "secret": "github",
        "path": "/webhooks/github",
        "rate": 500.0,
        "burst": 1000,
    }
    assert data["handlers"] == [
        {
            "handler": "acme.fulfil",
            "source": "acme",
            "types": ["paid"],
            "lane": "default",
            "max_attempts": 3,
            "timeout": 50.0,
        }
    ]


def test_the_limit_of_a_source_is_printed_and_judged(cli: Cli, checkout: Path) -> None:
    settings = checkout / "inbox.toml"
    limited = '[sources.mail]\nprovider = "sendgrid"\nthrottle = { rate = 20, burst = 40 }\n'
    settings.write_text(settings.read_text() + "\n" + limited)
    [line] = [line for line in cli("check").out.splitlines() if line.startswith("mail")]
    assert line.split()[-2:] == ["20.0", "40"]
    settings.write_text(settings.read_text().replace("burst = 40", "burst = 0"))
    shown = cli("check")
    assert shown.code == 1
    assert "[sources.mail] throttle.burst: " in shown.err


def test_what_splits_batches_is_no_handler_of_the_users(cli: Cli, checkout: Path) -> None:
    settings = checkout / "inbox.toml"
    settings.write_text(settings.read_text() + '\n[sources.mail]\nprovider = "sendgrid"\n')
    shown = cli("check")
    assert "split" not in shown.out
    assert shown.err.endswith("OK for stage dev: 5 sources, 1 handler, 1 lane, 4 warnings.\n")
    assert [handler["handler"] for handler in cli("check", "--json").data["handlers"]] == [
        "acme.fulfil"
    ]


def test_it_works_from_any_directory_of_the_repository(
    cli: Cli, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checkout / "handlers")
    assert cli("check").code == 0


def test_it_asks_no_target(cli: Cli, checkout: Path) -> None:
    cli("check")
    assert cli.selected == []


def test_a_mistake_in_the_configuration_is_one_line(cli: Cli, checkout: Path) -> None:
    (checkout / "inbox.toml").write_text('[sources.acme]\nprovider = "strpe"\n')
    shown = cli("check")
    assert (shown.code, shown.out) == (1, "stage dev\n")
    assert shown.err.count("\n") == 1
    assert shown.err.startswith('webhookctl: functions/inbox.toml [sources.acme] provider: "strpe"')


def test_a_broken_handler_is_one_line(cli: Cli, checkout: Path) -> None:
    (checkout / "handlers" / "orders.py").write_text("import nothing_of_the_kind\n")
    shown = cli("check")
    assert shown.code == 1
    assert shown.err.count("\n") == 1
    assert "orders.py" in shown.err
    assert "nothing_of_the_kind" in shown.err


def test_an_import_that_the_bundle_does_not_contain_is_one_line(cli: Cli, checkout: Path) -> None:
    orders = checkout / "handlers" / "orders.py"
    orders.write_text("import stripe\n" + orders.read_text())
    shown = cli("check")
    assert (shown.code, shown.out) == (1, "stage dev\n")
    assert shown.err.startswith("webhookctl: functions/handlers/orders.py:1: imports stripe, which")
    (checkout / "requirements.txt").write_text("stripe\n")
    assert cli("check").code == 0


def test_without_handlers_it_says_so(cli: Cli, checkout: Path) -> None:
    (checkout / "handlers" / "__init__.py").write_text('"""None."""\n\nMODULES = ()\n')
    (checkout / "handlers" / "orders.py").unlink()
    assert "no handlers\n" in cli("check").out


def test_outside_of_a_repository_it_says_where_to_go(cli: Cli) -> None:
    shown = cli("check")
    assert shown.code == 1
    assert "no functions/inbox.toml here or above, in a repository that belongs to you" in shown.err
    assert "change to your inbox's repository" in shown.err


def test_the_search_ends_at_the_root_of_the_repository(
    cli: Cli, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = checkout.parent / "unpacked" / "deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert cli("check").code == 0
    (checkout.parent / ".git").mkdir()
    assert cli("check").code == 0
    (below.parent / ".git").write_text("gitdir: elsewhere")
    assert "no functions/inbox.toml here or above" in cli("check").err


def test_another_users_checkout_is_not_imported(
    cli: Cli, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = os.getuid()
    mark = checkout.parent / "imported"
    (checkout / "handlers" / "orders.py").write_text(f"open({str(mark)!r}, 'w')\n")
    monkeypatch.setattr("os.getuid", lambda: own + 1)
    assert "in a repository that belongs to you" in cli("check").err
    (checkout / "handlers" / "more").mkdir()
    (checkout / "handlers" / "more" / "prices.py").touch()
    # The import path has `functions/`, so a module there replaces one of Python's.
    (checkout / "json.py").touch()
    foreign = {checkout, *checkout.rglob("*")}
    for path in foreign:
        monkeypatch.setattr("webhookctl.checkout.owned", lambda each, path=path: each != path)
        monkeypatch.setattr("webhook_inbox.client.repository.owned", lambda _: True)
        assert f"{path} belongs to another user" in cli("check").err
    assert not mark.exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_module_that_is_another_users_is_not_imported(cli: Cli, checkout: Path) -> None:
    module = checkout / "handlers" / "orders.py"
    os.chown(module, 65534, 65534)
    assert f"{module} belongs to another user: run this as its owner" in cli("check").err


@pytest.mark.parametrize("name", ["handlers/orders.py", "handlers/shared"])
def test_a_link_out_of_the_checkout_is_not_imported(cli: Cli, checkout: Path, name: str) -> None:
    elsewhere = checkout.parent / "elsewhere"
    elsewhere.mkdir()
    (checkout / name).unlink(missing_ok=True)
    (checkout / name).symlink_to(elsewhere)
    assert f"{checkout / name} is a link out of {checkout}" in cli("check").err


def test_a_link_within_the_checkout_is_imported(cli: Cli, checkout: Path) -> None:
    module = checkout / "handlers" / "orders.py"
    module.rename(checkout / "shared.py")
    module.symlink_to("../shared.py")
    assert cli("check").code == 0


@pytest.mark.parametrize("stage", ["", "Prod", "a_b", "x" * 21])
def test_a_name_that_is_no_stage_is_refused(cli: Cli, checkout: None, stage: str) -> None:
    shown = cli("check", "--stage", stage)
    assert shown.code == 1
    assert f"stage {stage!r}: use 1-20 of a-z 0-9 -, a letter first" in shown.err
