"""`conformance`: recorded deliveries, judged by the code that receives them."""

import hmac
import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from tests.webhookctl.commands.stage import Cli

VECTORS = Path(__file__).parents[2] / "vectors"


@pytest.fixture
def vectors() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((VECTORS / "github.json").read_text())
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "vectors.json"


def test_what_agrees_is_counted_by_provider(
    cli: Cli, file: Path, vectors: list[dict[str, Any]]
) -> None:
    file.write_text(json.dumps(vectors))
    shown = cli("conformance", str(file))
    assert shown.code == 0
    assert [line.split() for line in shown.out.splitlines()] == [
        ["PROVIDER", "AGREE", "OF"],
        ["github", "2", "2"],
    ]
    assert shown.err == "2 of 2 vectors agree.\n"


def test_what_disagrees_is_shown_and_fails(
    cli: Cli, file: Path, vectors: list[dict[str, Any]]
) -> None:
    vectors[0]["expect"] = "stale"
    file.write_text(json.dumps(vectors))
    shown = cli("conformance", str(file))
    assert shown.code == 1
    assert "github-0000: expected stale, found valid" in shown.out


def test_a_verdict_that_is_also_expected_agrees(
    cli: Cli, file: Path, vectors: list[dict[str, Any]]
) -> None:
    vectors[0] |= {"expect": "stale", "expect_also": ["valid"]}
    file.write_text(json.dumps(vectors))
    assert cli("conformance", str(file)).code == 0


def test_as_json(cli: Cli, file: Path, vectors: list[dict[str, Any]]) -> None:
    vectors[1]["secret_base64"] = "b3RoZXI="
    file.write_text(json.dumps(vectors))
    shown = cli("conformance", str(file), "--json")
    assert shown.code == 1
    assert (shown.data["total"], shown.data["agree"]) == (2, 1)
    assert shown.data["providers"] == {"github": {"total": 2, "agree": 1}}
    [wrong] = shown.data["disagreements"]
    assert (wrong["id"], wrong["expected"], wrong["found"]) == (
        "github-0140",
        ["valid"],
        "invalid-signature",
    )


def test_headers_may_be_pairs(cli: Cli, file: Path, vectors: list[dict[str, Any]]) -> None:
    vectors[0]["headers"] = [[name.upper(), text] for name, text in vectors[0]["headers"].items()]
    file.write_text(json.dumps(vectors))
    assert cli("conformance", str(file)).code == 0


@pytest.mark.parametrize(
    "change",
    [
        {"provider": "nobody", "scheme": "nothing"},
        {"body_base64": "no base64"},
        {"headers": None},
        {"now": "yesterday"},
        {"now": 10**30},
        {"secret_base64": "a"},
    ],
    ids=["provider", "body", "headers", "no-time", "no-date", "secret"],
)
def test_one_vector_that_cannot_be_judged_spoils_no_other(
    cli: Cli, file: Path, vectors: list[dict[str, Any]], change: dict[str, Any]
) -> None:
    vectors[0] |= change
    file.write_text(json.dumps(vectors))
    shown = cli("conformance", str(file), "--json")
    assert shown.code == 1
    assert [wrong["found"] for wrong in shown.data["disagreements"]] == ["unusable"]
    assert shown.data["agree"] == 1


def finch(signed_with: bytes) -> dict[str, Any]:
    """A delivery of Finch's, whose secrets are base64 of the key, without its secret."""
    made = hmac.digest(signed_with, b"msg_1.1700000000.{}", "sha256")
    return {
        "id": "finch-1",
        "provider": "finch",
        "url": "https://receiver.example/webhooks/finch",
        "headers": {
            "Finch-Event-Id": "msg_1",
            "Finch-Timestamp": "1700000000",
            "Finch-Signature": f"v1,{b64encode(made).decode()}",
        },
        "body_base64": "e30=",
        "now": 1700000000,
    }


NEW, OLD = (b64encode(b64encode(key)).decode() for key in (b"new key", b"old key"))


@pytest.mark.parametrize(
    "given",
    [
        {"secret_base64": [NEW, OLD]},
        {"secret_base64": NEW, "secondary_secret_base64": OLD},
    ],
    ids=["a-list", "two-names"],
)
def test_each_secret_of_several_is_live(cli: Cli, file: Path, given: dict[str, object]) -> None:
    vectors = [finch(b"new key"), finch(b"old key")]
    vectors.append(finch(b"any key") | {"expect": "invalid-signature"})
    file.write_text(json.dumps([vector | given for vector in vectors]))
    assert cli("conformance", str(file)).code == 0


def test_a_key_that_is_given_as_bytes_is_the_key(cli: Cli, file: Path) -> None:
    key = bytes.fromhex("fffe00aa") * 8
    file.write_text(json.dumps([finch(key) | {"secret_base64": b64encode(key).decode()}]))
    assert cli("conformance", str(file)).code == 0


@pytest.mark.parametrize("given", [[], b64encode(b"\xc2\xa7 no key").decode()], ids=["no", "other"])
def test_no_signature_is_valid_without_a_key_of_use(cli: Cli, file: Path, given: object) -> None:
    vector = finch(b"key") | {"secret_base64": given, "expect": "invalid-signature"}
    file.write_text(json.dumps([vector]))
    assert cli("conformance", str(file)).code == 0


@pytest.mark.parametrize("text", ["", "{}", "[]", "[1]", "{", "[" * 100_000])
def test_a_file_without_vectors_is_one_line(cli: Cli, file: Path, text: str) -> None:
    file.write_text(text)
    shown = cli("conformance", str(file))
    assert (shown.code, shown.out) == (1, "")
    assert shown.err.startswith(f"webhookctl: {file}: ")
    assert shown.err.count("\n") == 1


def test_a_file_that_is_not_there_is_one_line(cli: Cli, file: Path) -> None:
    shown = cli("conformance", str(file))
    assert shown.code == 1
    assert "cannot be read" in shown.err


@pytest.mark.parametrize("path", sorted(VECTORS.glob("*.json")), ids=lambda path: path.stem)
def test_all_that_is_published_agrees(cli: Cli, path: Path) -> None:
    assert cli("conformance", str(path)).code == 0
