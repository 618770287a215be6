"""Valid deliveries of every registered provider: its vectors, and its samples signed by us.

A test takes a case, breaks one part of it, and asks for the verdict.
"""

import json
from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.unit.providers.deliveries import NOW, SECRET, SETTINGS
from webhook_inbox import providers
from webhook_inbox.domain.errors import ConfigurationError, Reason, Rejected, Unavailable
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import Fetch
from webhook_inbox.domain.provider import Provider, Sample, Verified
from webhook_inbox.ingest.verification import PublishedKeys, verify
from webhookctl import conformance

ROOT = Path(__file__).parents[3]
VECTORS = ROOT / "tests" / "vectors"
SAMPLES = ROOT / "events" / "ingest"
# The declared scheme has no provider, so no vectors of it are published.
DECLARED = "hmac"
# Secrets of every form: text and base64, hex, a user's password, the parts of several.
SECRETS = (SECRET, "00ff" * 16, f"it:{SECRET}", json.dumps({"client_id": "it", "secret": SECRET}))
NAMES = sorted(providers.MODULES)
PUBLISHED = [name for name in NAMES if name != DECLARED]


@dataclass(frozen=True)
class Case:
    """A valid delivery and what it is judged with.

    `published` is what the provider publishes, `material` stands for it when it is fetched.
    """

    provider_name: str
    provider: Provider
    delivery: Delivery
    secrets: tuple[str, ...]
    published: bytes = b""
    fetched: list[str] = field(default_factory=list)

    def verdict(
        self, delivery: Delivery | None = None, secrets: tuple[str, ...] | None = None
    ) -> Verified | Reason:
        """Returns what verifying gives; anything but Verified or Rejected is a test's failure."""
        keys = PublishedKeys(self)
        live = self.secrets if secrets is None else secrets
        try:
            return verify(self.provider, delivery or self.delivery, live, keys)
        except Rejected as error:
            return error.reason

    def fetch(self, wanted: Fetch) -> bytes:
        """Answers as the provider would, and notes what was asked for."""
        self.fetched.append(wanted.url)
        if not self.published:
            raise Unavailable("https", "GET", "nothing is published")
        return self.published

    def signed_again(self, body: bytes) -> Delivery:
        """Returns the sample's delivery with another body, validly signed."""
        sample = sample_of(self.provider_name)
        return signed(self.provider_name, replace(sample, body=body)).delivery

    def at(self, shift: timedelta) -> Delivery:
        """Returns the delivery as it comes so much later."""
        return replace(self.delivery, received_at=self.delivery.received_at + shift)

    def with_header(self, name: str, value: str | None) -> Delivery:
        """Returns the delivery with one header changed, or left out."""
        rest = {key: text for key, text in self.delivery.headers.items() if key != name}
        return replace(self.delivery, headers=rest if value is None else {**rest, name: value})


def module_of(provider_name: str) -> str:
    """Returns the name of a provider's module, which is that of its vectors' file."""
    return providers.MODULES[provider_name]


def example(provider_name: str) -> Mapping[str, Any]:
    """Returns settings with which a source of this provider can be configured."""
    module = import_module(f"webhook_inbox.providers.{module_of(provider_name)}")
    given: Mapping[str, Any] = getattr(module, "EXAMPLE", SETTINGS.get(provider_name, {}))
    return given


def provider_of(provider_name: str) -> Provider:
    """Returns a provider with its example's settings."""
    return providers.load(SourceSpec("it", provider_name, "it", settings=example(provider_name)))


@cache
def pair_of(provider_name: str) -> tuple[str, str]:
    """Returns what signs and what verifies; the same where a secret is shared."""
    provider = provider_of(provider_name)
    if provider.pair is not None:
        return provider.pair()
    for secret in SECRETS[:-1]:
        try:
            provider.send(sample_of(provider_name), secret, NOW)
        except ConfigurationError:
            continue
        return secret, secret
    return SECRETS[-1], SECRETS[-1]


def vectors_of(provider_name: str) -> list[dict[str, Any]]:
    """Returns a provider's vectors; none where the file is missing."""
    path = VECTORS / f"{module_of(provider_name)}.json"
    found: list[dict[str, Any]] = json.loads(path.read_text()) if path.is_file() else []
    return found


def samples_of(provider_name: str) -> list[Path]:
    """Returns a provider's sample bodies."""
    directory = "acme" if provider_name == DECLARED else provider_name
    return sorted((SAMPLES / directory).glob("*.json"))


def sample_of(provider_name: str) -> Sample:
    """Returns a provider's first sample."""
    path = samples_of(provider_name)[0]
    return Sample("sample-1", unquote(path.stem.partition("__")[0]), path.read_bytes())


def signed(provider_name: str, sample: Sample | None = None) -> Case:
    """Returns a sample's delivery, signed by us as the provider would."""
    provider = provider_of(provider_name)
    private, public = pair_of(provider_name)
    sent = provider.send(sample or sample_of(provider_name), private, NOW)
    headers = {"host": "inbox.example", **sent.headers}
    # As `sign` takes the path to be.
    delivery = Delivery("it", "POST", "/webhooks/it", sent.query, headers, sent.body, NOW)
    # A request for a key may need credentials.
    shared = public if provider.fetches is None else SECRETS[-1]
    secrets = (shared,) if provider.needs_secret else ()
    published = public.encode() if provider.fetches is not None else b""
    return Case(provider_name, provider, delivery, secrets, published)


def recorded(vector: Mapping[str, Any]) -> Case:
    """Returns a vector's delivery."""
    spec = conformance.source_of(vector)
    provider = providers.load(spec)
    published = b""
    if provider.fetches is not None:
        key = vector.get("public_key_base64")
        published = b64decode(key) if key else json.dumps(vector["jwk"]).encode()
    secrets = conformance.secrets_of(vector) if provider.needs_secret else ()
    return Case(spec.provider, provider, conformance.delivery_of(vector), secrets, published)


def valid_vectors() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields one valid vector of every kind of signature that a provider has."""
    for provider_name in PUBLISHED:
        seen: set[str] = set()
        for vector in vectors_of(provider_name):
            if vector["expect"] == conformance.VALID and vector["scheme"] not in seen:
                seen.add(vector["scheme"])
                yield provider_name, vector
