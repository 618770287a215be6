"""`inbox export --to`: all events of whole hours, in a directory or in S3."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.contract.resources import create_bucket
from tests.unit.ledger.test_erasure import large
from tests.unit.support.world import ACME
from tests.webhookctl.commands.stage import MANIFEST, Cli, Inbox, client

ADA = "ada@example.com"


@pytest.fixture
def inbox(inbox: Inbox) -> Inbox:
    deliver(inbox)
    return inbox


def deliver(inbox: Inbox) -> None:
    body = json.dumps({"email": ADA}).encode()
    inbox.deliver("evt-1", body=body)
    inbox.clock.advance(minutes=50)
    inbox.deliver("evt-2", body=large())
    inbox.deliver("evt-3", source="github", body=b'"\xff"')
    inbox.clock.advance(hours=1, minutes=20)
    inbox.deliver("evt-4", body=body)
    inbox.clock.advance(minutes=20)


def events(directory: Path) -> dict[str, list[dict[str, Any]]]:
    return {
        file.name: [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
        for file in sorted(directory.glob("*.jsonl.gz"))
    }


def test_each_whole_hour_has_a_file_with_its_events(cli: Cli, inbox: Inbox, tmp_path: Path) -> None:
    shown = cli("inbox", "export", "--to", str(tmp_path / "out"), "--since", "4h")

    assert shown.code == 0
    found = events(tmp_path / "out")
    assert len(found) == 4
    ids = [each["event_id"] for lines in found.values() for each in lines]
    # The hour of evt-4 has not ended.
    assert len(ids) == 3
    assert "evt-4" not in ids
    [small, big, binary] = [each for lines in found.values() for each in lines]
    assert json.loads(small["body"])["email"] == ADA
    assert big["body"].encode() == large()
    assert binary["body_base64"] == "Iv8i"
    assert "Wrote 3 events of 4 whole hours." in shown.err


def test_the_same_command_continues_where_it_was_interrupted(
    cli: Cli, inbox: Inbox, tmp_path: Path
) -> None:
    words = ("inbox", "export", "--to", str(tmp_path), "--since", "4h")
    cli(*words)
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    last = max(tmp_path.glob("*.gz"), key=lambda file: file.stat().st_size)
    last.unlink()

    shown = cli(*words)

    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before
    assert shown.out.count("is there already") == len(before) - 2


def test_files_of_another_selection_are_not_mixed(cli: Cli, inbox: Inbox, tmp_path: Path) -> None:
    cli("inbox", "export", "--to", str(tmp_path), "--since", "4h")
    refused = cli("inbox", "export", "--to", str(tmp_path), "--since", "4h", "--source", "acme")
    assert refused.code == 1
    assert "choose another place" in refused.err


def test_one_source_can_be_exported(cli: Cli, inbox: Inbox, tmp_path: Path) -> None:
    cli("inbox", "export", "--to", str(tmp_path), "--since", "4h", "--source", "github")
    sources = {each["source"] for lines in events(tmp_path).values() for each in lines}
    assert sources == {"github"}


@pytest.mark.moto
def test_a_bucket_receives_the_same_files(cli: Cli, inbox: Inbox, tmp_path: Path) -> None:
    create_bucket(client("s3"), "archive")
    cli("inbox", "export", "--to", str(tmp_path), "--since", "4h")
    for _ in range(2):
        assert cli("inbox", "export", "--to", "s3://archive/in", "--since", "4h").code == 0
    found = client("s3").list_objects_v2(Bucket="archive")["Contents"]
    stored = {
        each["Key"]: client("s3").get_object(Bucket="archive", Key=each["Key"])["Body"].read()
        for each in found
    }
    assert stored == {f"in/{file.name}": file.read_bytes() for file in tmp_path.iterdir()}


def test_an_erased_event_is_exported_without_its_body(
    cli: Cli, inbox: Inbox, tmp_path: Path
) -> None:
    cli("erase", "evt-1", "--yes", "--reason", "asked to")
    cli("inbox", "export", "--to", str(tmp_path), "--since", "4h", "--source", "acme")
    [first, *_] = [each for lines in events(tmp_path).values() for each in lines]
    assert first["event_id"] == "evt-1"
    assert "body" not in first
    assert "erased on" in first["body_missing"]


def test_personal_fields_are_masked_unless_it_is_audited(
    cli: Cli, inbox: Inbox, tmp_path: Path
) -> None:
    acme = replace(ACME, personal=("email",))
    cli.manifest = replace(MANIFEST, sources={**MANIFEST.sources, "acme": acme})
    words = ("inbox", "export", "--since", "4h", "--source", "acme")
    cli(*words, "--to", str(tmp_path / "masked"))
    cli(*words, "--to", str(tmp_path / "shown"), "--show-personal")
    assert ADA not in json.dumps(events(tmp_path / "masked"))
    assert ADA in json.dumps(events(tmp_path / "shown"))
    [row] = inbox.table.query(f"audit#{inbox.now:%Y-%m-%d}")
    assert row["action"] == "show-personal"
    assert row["request"]["to"] == str(tmp_path / "shown")


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("evt-1", "--since", "1h"),
        ("evt-1", "--to", "out", "--since", "1h"),
        ("--to", "out"),
    ],
)
def test_one_event_or_a_time_is_exported(cli: Cli, words: tuple[str, ...]) -> None:
    assert cli("inbox", "export", *words).code == 2


def test_a_time_without_a_whole_hour_is_refused(cli: Cli, tmp_path: Path) -> None:
    refused = cli("inbox", "export", "--to", str(tmp_path), "--since", "1s")
    assert refused.code == 1
    assert "no whole hour has ended" in refused.err
    assert cli("inbox", "export", "--to", "s3://", "--since", "1d").code == 1
