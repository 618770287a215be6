"""Real GitHub payloads, and Stripe events signed by Stripe's own library."""

import hashlib
import hmac
import json
import random
import shutil
import subprocess
import tarfile
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import stripe

PACKAGE: Final = "@octokit/webhooks-examples@7.6.1"
INDEX: Final = "package/api.github.com/index.json"
NPM_LIMIT: Final = 120
# Ids are derived from the content, so a second run in the same inbox has only duplicates.
NAMESPACE: Final = uuid.UUID("6b1c9a52-0d7e-4a39-9c1b-5f0e6a3d2b71")
SAMPLES: Final = Path(__file__).resolve().parents[2] / "events" / "ingest" / "stripe"
# The number of events of each type; the last two have no handler, the last is not stored.
STRIPE_TYPES: Final[Mapping[str, int]] = {
    "invoice.payment_succeeded": 18,
    "checkout.session.completed": 12,
    "invoice.upcoming": 6,
    "customer.created": 4,
}


class UnreachableError(Exception):
    """npm is missing or cannot fetch the examples."""


@dataclass(frozen=True, slots=True)
class Payload:
    """An event as its provider sends it.

    Attributes:
        request: (secret, number of the delivery) to headers and body.
    """

    source: str
    type: str
    event_id: str
    request: Callable[[str, int], tuple[dict[str, str], bytes]]


def fetch_examples() -> list[tuple[str, dict[str, Any]]]:
    """Fetches GitHub's example payloads with npm; returns them with their event names.

    Raises:
        UnreachableError: npm is missing or failed.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise UnreachableError("npm is not installed: it comes with Node.js")
    with tempfile.TemporaryDirectory() as scratch:
        command = [npm, "pack", PACKAGE, "--silent", "--pack-destination", scratch]
        try:
            subprocess.run(command, cwd=scratch, check=True, timeout=NPM_LIMIT, capture_output=True)  # noqa: S603
        except (subprocess.SubprocessError, OSError) as error:
            raise UnreachableError(f"npm pack {PACKAGE} failed: {error}") from error
        (archive,) = Path(scratch).glob("*.tgz")
        with tarfile.open(archive) as packed:
            file = packed.extractfile(INDEX)
            events = json.load(file) if file else []
    return [(event["name"], example) for event in events for example in event["examples"]]


def github_payloads(examples: list[tuple[str, dict[str, Any]]]) -> list[Payload]:
    """Returns the examples as deliveries; identical bodies are one event."""
    found: dict[str, Payload] = {}
    for name, example in examples:
        body = json.dumps(example, separators=(",", ":"), ensure_ascii=False).encode()
        event_id = str(uuid.uuid5(NAMESPACE, hashlib.sha256(body).hexdigest()))
        action = example.get("action")
        type_ = f"{name}.{action}" if isinstance(action, str) and action else name
        found.setdefault(
            event_id, Payload("github", type_, event_id, _github(name, event_id, body))
        )
    return list(found.values())


def _github(
    name: str, event_id: str, body: bytes
) -> Callable[[str, int], tuple[dict[str, str], bytes]]:
    def request(secret: str, _: int) -> tuple[dict[str, str], bytes]:
        # Implemented from GitHub's documentation, independent of the code under test.
        signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "GitHub-Hookshot/044aadd",
            "X-GitHub-Event": name,
            "X-GitHub-Delivery": event_id,
            "X-Hub-Signature-256": f"sha256={signature}",
        }
        return headers, body

    return request


def stripe_payloads(randomness: random.Random) -> Iterator[Payload]:
    """Yields a few dozen events; `randomness` makes each differ."""
    invoice, session = (
        json.loads((SAMPLES / f"{name}.json").read_text())
        for name in (
            "invoice.payment_succeeded__subscription",
            "checkout.session.completed__paid",
        )
    )
    for type_, number in STRIPE_TYPES.items():
        for _ in range(number):
            sample = session if type_.startswith("checkout") else invoice
            yield _stripe(type_, sample, randomness)


def _stripe(type_: str, sample: dict[str, Any], randomness: random.Random) -> Payload:
    name = f"{randomness.getrandbits(96):024x}"
    event_id = f"evt_{name}"
    amount = randomness.randrange(100, 1_000_000)
    thing = {
        **sample["data"]["object"],
        "id": f"in_{name}",
        "customer": f"cus_{randomness.getrandbits(56):014x}",
        "currency": randomness.choice(["usd", "eur", "jpy", "gbp"]),
        "amount_paid": amount,
        "amount_total": amount,
        "description": randomness.choice(["Größe 42", "naïve café", "日本語", "plain", None]),
    }
    event = {**sample, "id": event_id, "type": type_, "data": {"object": thing}}

    def request(secret: str, number: int) -> tuple[dict[str, str], bytes]:
        # Stripe's retries count their pending deliveries down in the body.
        text = json.dumps({**event, "pending_webhooks": 1 + number % 3}, indent=2)
        signature = stripe.WebhookSignature.generate_signature_header(text, secret)
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "User-Agent": "Stripe/1.0 (+https://stripe.com/docs/webhooks)",
            "Stripe-Signature": signature,
        }
        return headers, text.encode()

    return Payload("stripe", type_, event_id, request)
