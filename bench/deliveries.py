"""Signed deliveries of realistic bodies: a Stripe invoice with many lines, a GitHub push."""

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from tests.functions.invocations import http_event
from webhook_inbox import providers
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.provider import Sample

ROOT: Final = Path(__file__).resolve().parents[1]
SAMPLES: Final = ROOT / "events" / "ingest"
# Least bytes of a body, by the name in tables.
SIZES: Final = {"1 KB": 1_000, "10 KB": 10_000, "100 KB": 100_000, "1 MB": 1_000_000}
SECRETS: Final = {
    "stripe": "whsec_not_a_secret_only_a_bench",
    "github": "not-a-secret-only-a-bench",
}
PLACE: Final = "@ID@"


def deliveries(
    manifest: Manifest, source: str, size: int, count: int, *, seed: int
) -> list[dict[str, Any]]:
    """Returns HTTP API events, signed now, each with an id and a content of its own.

    Args:
        manifest: has the source.
        source: "stripe" or "github".
        size: the least bytes of a body.
        count: how many events.
        seed: of the ids and the contents.
    """
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    text = {"stripe": _invoice, "github": _push}[source](size, chance)
    provider, now = providers.load(manifest.sources[source]), datetime.now(UTC)
    events = []
    for _ in range(count):
        event_id = str(UUID(int=chance.getrandbits(128), version=4))
        body = text.replace(PLACE, event_id).encode()
        kind = {"stripe": "", "github": "push"}[source]
        headers = provider.sign(Sample(event_id, kind, body), SECRETS[source], now)
        headers = {"content-type": "application/json", **headers}
        events.append(http_event(f"/webhooks/{source}", headers=headers, body=body))
    return events


def _invoice(size: int, chance: random.Random) -> str:
    """Returns the event of a paid invoice as Stripe writes it: indented."""
    sample = SAMPLES / "stripe" / "invoice.payment_succeeded__subscription.json"
    event = json.loads(sample.read_text(encoding="utf-8"))
    event["id"] = f"evt_{PLACE}"
    lines = event["data"]["object"]["lines"]["data"]
    [line] = lines

    def more() -> dict[str, Any]:
        amount, name = chance.randrange(100, 90_000), _token(chance, 17)
        text = f"{chance.randrange(1, 90)} \u00d7 seat {name} (at ${amount / 100:.2f} / month)"
        return {**line, "id": f"il_{name}", "amount": amount, "description": text}

    return _grown(event, lines, more, size, indent=2)


def _push(size: int, chance: random.Random) -> str:
    """Returns a push as GitHub writes it: without blanks."""
    sample = SAMPLES / "github" / "push__main.json"
    event = json.loads(sample.read_text(encoding="utf-8"))
    event["after"] = PLACE
    [commit] = event["commits"]

    def more() -> dict[str, Any]:
        paths = [f"src/{_token(chance, 8)}/{_token(chance, 6)}.py" for _ in range(3)]
        text = f"Correct {_token(chance, 12)} in {paths[0]}"
        return {**commit, "id": f"{chance.getrandbits(160):040x}", "message": text, "added": paths}

    return _grown(event, event["commits"], more, size)


def _grown(
    event: Any, into: list[Any], more: Callable[[], Any], size: int, *, indent: int | None = None
) -> str:
    """Returns the event's text, with as many more elements in a list as its size needs."""
    separators = (",", ":") if indent is None else None

    def written(part: Any) -> str:
        return json.dumps(part, indent=indent, separators=separators, ensure_ascii=False)

    length = len(written(event).encode())
    while length < size:
        into.append(more())
        # Indentation makes an element longer in its place: 10 blanks for each of its lines.
        text = written(into[-1])
        length += len(text.encode()) + (10 * (text.count("\n") + 1) if indent else 0) + 1
    return written(event)


def _token(chance: random.Random, length: int) -> str:
    return "".join(chance.choices("abcdefghijkmnopqrstuvwxyz0123456789", k=length))
