"""docs/reference.md is generated, complete, and its examples load."""

from pathlib import Path

from scripts import reference, source_reference
from webhook_inbox.configuration import inbox_toml


def test_the_reference_is_fresh() -> None:
    assert reference.FILE.read_text(encoding="utf-8") == reference.render()


def test_the_reference_has_every_key_and_field_of_a_source() -> None:
    assert source_reference.KEYS.keys() == source_reference.known_keys()
    assert source_reference.FIELDS.keys() == source_reference.known_fields()


def test_the_references_examples_are_valid(tmp_path: Path) -> None:
    path = tmp_path / "inbox.toml"
    path.write_text(source_reference.EXAMPLES, encoding="utf-8")

    sources = inbox_toml.load(path, stage="dev").sources

    assert source_reference.EXAMPLES in reference.FILE.read_text(encoding="utf-8")
    assert {spec.provider for spec in sources.values()} == source_reference.DECLARED
