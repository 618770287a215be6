"""Writes docs/providers.md from the providers it describes: `python -m scripts.providers`."""

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple

from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.provider import Facts, Provider
from webhook_inbox.providers import MODULES, load

FILE: Final = Path(__file__).resolve().parents[1] / "docs" / "providers.md"
# Every source declares its own scheme: there is no provider to tell of.
DECLARED: Final = "hmac"
COVERS: Final = {
    "whole": "the whole body",
    "partly": "some of the body; the rest can be changed on the way",
    "none": "nothing of the body",
}
# The rows of a provider that are a field of its Facts, in the order of an operator's questions.
FACTS: Final = (
    ("window", "window"),
    ("event_id", "event id"),
    ("handshake", "handshake"),
    ("answer_within", "waits for an answer"),
    ("retries", "sends again"),
    ("resend", "sent again by hand"),
    ("key_from", "the secret"),
)
USUAL: Final = {Reason.INVALID_SIGNATURE: 401, Reason.MALFORMED: 400}
INTRO: Final = """\
# Providers

Written by `python -m scripts.providers` from the providers in `functions/webhook_inbox/providers/`;
a test keeps it fresh. To add one: [Adding a provider](adding-a-provider.md). A scheme that is not
here and is an HMAC needs no code at all: `provider = "hmac"` in [Reference](reference.md).

"Not documented" means that no source states the fact. Header names are in lower case. Set a secret
with `webhookctl secrets set SOURCE`; a secret with several parts is a JSON object of them.

Unless a provider's table says otherwise, an accepted event is answered 202, a duplicate 200, a
wrong or missing signature 401, what cannot be judged (malformed, too old, from the future) 400, and
a known id with other content 409.

| `provider` | | signature | covers | window | handshake |
|---|---|---|---|---|---|
{rows}
"""


class Entry(NamedTuple):
    """A provider as the page shows it."""

    name: str
    provider: Provider
    facts: Facts
    settings: tuple[str, ...]
    source: str


def entries() -> list[Entry]:
    """Returns every provider, in the order of their names."""
    return [_entry(name, module) for name, module in sorted(MODULES.items()) if name != DECLARED]


def render() -> str:
    """Returns the page."""
    every = entries()
    overview = "\n".join(_overview(entry) for entry in every)
    sections = "\n".join(_section(entry) for entry in every)
    return f"{INTRO.format(rows=overview)}\n{sections}"


def _entry(name: str, module_name: str) -> Entry:
    module = import_module(f"webhook_inbox.providers.{module_name}")
    provider = load(SourceSpec(name, name, name, settings=getattr(module, "EXAMPLE", {})))
    if provider.facts is None:
        raise ValueError(f"providers/{module_name}.py: has no facts")
    settings = tuple(sorted(getattr(module, "SETTINGS", ())))
    return Entry(name, provider, provider.facts, settings, _source(module.__doc__ or ""))


def _source(docstring: str) -> str:
    """Returns the sentence or sentences that a module's docstring has behind `Source:`."""
    found = re.search(r"\bSource: (.+?)(?:\n\n|\Z)", docstring, re.DOTALL)
    return " ".join(found[1].split()) if found else ""


def _overview(entry: Entry) -> str:
    facts = entry.facts
    link = f"[`{entry.name}`](#{entry.name})"
    return _row(link, facts.title, facts.scheme, facts.body, facts.window, facts.handshake)


def _section(entry: Entry) -> str:
    rows = "\n".join(_row(name, text) for name, text in _rows(entry) if text)
    return f"## {entry.name}\n\n{entry.facts.title}\n\n| | |\n|---|---|\n{rows}\n"


def _rows(entry: Entry) -> Iterator[tuple[str, str]]:
    provider, facts = entry.provider, entry.facts
    yield "signature", facts.scheme
    yield "covers", COVERS[facts.body]
    yield "read from", _places(provider)
    for name, heading in FACTS:
        yield heading, getattr(facts, name)
    yield "verified with", _keys(provider)
    yield "keys in inbox.toml", _listed(entry.settings)
    yield "batches", "each item is an event of its own" if provider.batch else ""
    yield "replays", _guard(provider)
    yield "volatile", _listed(provider.volatile)
    yield "answers", _answers(provider)
    yield "source", entry.source


def _places(provider: Provider) -> str:
    headers = _listed(sorted(provider.signature_headers))
    fields = _listed(sorted(provider.token_fields))
    places = [headers] if headers else []
    if fields:
        places.append(f"of the query {fields}")
    return "; ".join(places) or "the body"


def _keys(provider: Provider) -> str:
    if provider.fetches is None:
        return ""
    shared = "" if provider.needs_secret else "; nothing secret is shared"
    return f"published by the provider, fetched from a pinned host{shared}"


def _guard(provider: Provider) -> str:
    if provider.guard is None:
        return ""
    return "neither id nor time is signed: known content under a new id is answered 200, not run"


def _answers(provider: Provider) -> str:
    words = []
    if provider.accepted_status != 202:
        words.append(f"{provider.accepted_status} to an accepted event")
    for reason, usual in USUAL.items():
        if provider.statuses[reason] != usual:
            words.append(f"{provider.statuses[reason]} to `{reason}`")
    if provider.conflict_status != 409:
        words.append(f"{provider.conflict_status} to other content under a known id")
    if provider.acknowledgement is not None:
        body = provider.acknowledgement.body.decode()
        words.append(f"every 2xx is {provider.acknowledgement.status} with " + _body(body))
    return "; ".join(words)


def _body(text: str) -> str:
    return f"`{text}`" if text else "an empty body"


def _listed(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _row(*cells: str) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def main() -> int:
    """Writes the page; returns the exit status."""
    FILE.write_text(render(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
