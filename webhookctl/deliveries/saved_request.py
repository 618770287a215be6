"""Reads a saved request."""

import json
from pathlib import Path

from webhookctl.errors import CommandError


def read_headers(file: Path) -> dict[str, str]:
    """Returns headers by lower-case name; joins repeated ones with commas, as API Gateway does.

    The file has `Name: value` lines, as curl and proxies print them, or one JSON object.

    Raises:
        CommandError: it cannot be read, or has no headers.
    """
    try:
        text = file.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise CommandError(f"{file}: cannot be read: {error.strerror}") from error
    pairs = _object(file, text) if text.lstrip().startswith("{") else _lines(text)
    found: dict[str, str] = {}
    for given, value in pairs:
        name = given.strip().lower()
        found[name] = f"{found[name]},{value}" if name in found else value
    if not found:
        raise CommandError(f"{file} has no headers: write `Name: value` lines, or a JSON object")
    return found


def _object(file: Path, text: str) -> list[tuple[str, str]]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{file}: not JSON: {error}") from error
    # Go and Node write a list where a header may repeat.
    return [(k, ",".join(map(str, v)) if isinstance(v, list) else str(v)) for k, v in data.items()]


def _lines(text: str) -> list[tuple[str, str]]:
    """Reads lines; skips curl's prefixes and the request line."""
    bare = [line.lstrip("<> ").rstrip("\r") for line in text.splitlines()]
    pairs = [line.partition(":") for line in bare if ":" in line]
    return [(name, value.strip(" \t")) for name, _, value in pairs if name and " " not in name]
