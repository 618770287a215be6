"""Fields that a source declares as `personal` are masked unless --show-personal, which is audited.

The processor removes their values from error texts; see also tests/unit/domain/test_personal.py.
"""

import json
from dataclasses import replace

import pytest

from tests.unit.support.world import ACME
from tests.webhookctl.commands.stage import MANIFEST, Cli, Inbox
from webhook_inbox.domain.errors import Permanent, Transient

ADA = "ada@example.com"
BODY = json.dumps({"id": "evt-1", "customer": {"email": ADA, "id": "c-9"}}).encode()
MASKED = replace(
    MANIFEST,
    sources={**MANIFEST.sources, "acme": replace(ACME, personal=("customer.email",))},
)


@pytest.fixture(autouse=True)
def _declared(cli: Cli, inbox: Inbox) -> None:
    inbox.deploy(MASKED)
    cli.manifest = MASKED


def audited(inbox: Inbox) -> list[str]:
    rows = inbox.table.query(f"audit#{inbox.now:%Y-%m-%d}")
    return [row["request"]["command"] for row in rows if row["action"] == "show-personal"]


SHOWN = (
    ("inbox", "inspect", "evt-1", "--body"),
    ("inbox", "inspect", "evt-1", "--body", "--json"),
    ("inbox", "export", "evt-1"),
    ("inbox", "export", "evt-1", "--as", "curl"),
    ("inbox", "export", "evt-1", "--as", "json"),
    ("inbox", "search", "customer.email", "--show-value"),
    ("inbox", "search", "customer", "--show-value", "--json"),
)


@pytest.mark.parametrize("words", SHOWN, ids=" ".join)
def test_a_personal_field_is_masked_unless_it_is_asked_for(
    cli: Cli, inbox: Inbox, words: tuple[str, ...]
) -> None:
    inbox.fails("acme.notify", Permanent(f"no customer {ADA}"))
    inbox.deliver(body=BODY, type_="refunded")
    inbox.work()

    shown = cli(*words)
    assert shown.code == 0
    assert ADA not in shown.out + shown.err
    assert "[personal]" in shown.out
    assert audited(inbox) == []

    assert ADA in cli(*words, "--show-personal").out
    assert audited(inbox) == [" ".join(words[:2])]


def test_an_event_is_found_by_its_personal_field(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver(body=BODY)
    found = cli("inbox", "search", f"customer.email == '{ADA}'", "--json")
    assert [each["event_id"] for each in found.objects] == ["evt-1"]


@pytest.mark.parametrize("error", [Permanent, Transient])
def test_no_stored_error_quotes_a_personal_field(
    inbox: Inbox, error: type[Permanent] | type[Transient]
) -> None:
    inbox.fails("acme.notify", error(f"no customer {ADA}"))
    inbox.deliver(body=BODY, type_="refunded")
    inbox.work()
    run = inbox.run("evt-1", handler="acme.notify")
    assert "no customer [personal]" in run.last_error
    assert ADA not in repr(run)


@pytest.mark.parametrize(
    "words",
    [("inbox", "inspect", "evt-1"), ("inbox", "search", "id"), ("rejected", "show", "r-1")],
)
def test_without_a_body_there_is_nothing_to_show(
    cli: Cli, inbox: Inbox, words: tuple[str, ...]
) -> None:
    inbox.deliver(body=BODY)
    refused = cli(*words, "--show-personal")
    assert refused.code != 0
    assert audited(inbox) == []


def test_an_erased_event_is_not_found_and_ends_no_search(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver("evt-1", body=BODY)
    inbox.deliver("evt-2", body=BODY)
    cli("erase", "evt-1", "--yes", "--reason", "asked to")
    found = cli("inbox", "search", "customer.id", "--json")
    assert [each["event_id"] for each in found.objects] == ["evt-2"]


def test_a_program_that_cannot_read_the_declaration_shows_no_body(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver(body=BODY)
    cli.manifest = None
    refused = cli("inbox", "inspect", "evt-1", "--body")
    assert refused.code == 1
    assert ADA not in refused.out
