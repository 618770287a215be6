"""An inbox with a source of every provider, and what each of them publishes or delivers."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.e2e.http_call import Answer, call, insist
from tests.e2e.inquiry import Inquiry
from tests.e2e.project import lay_beside
from tests.unit.providers.cases import NAMES, SECRETS, example, pair_of, sample_of
from webhook_inbox import providers
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Provider, Sample, Sent
from webhook_inbox.ingest import events
from webhook_inbox.ledger.schema import dedupe_key
from webhook_inbox.providers.schemes.handshakes.presets import PRESETS
from webhookctl.local.inbox import LocalInbox

# The secrets that the providers' own descriptions of their handshakes were made with.
KNOWN = {
    "braintree": "integration_private_key",
    "ebay": "verification-token-32-characters",
    "linkedin": "li-client-secret",
    "meta": json.dumps({"secret": "app-secret", "verify_token": "my-token"}),
    "smartcar": "amt",
    "strava": json.dumps({"secret": "s", "verify_token": "my-token"}),
    "twitter": "z3ZX4v7mAAUGykl3EcmkqbartmuW8VFOOzCloLx9Q45P0hLrFu",
    "vercel-log-drain": json.dumps({"secret": "s", "verify_token": "my-token"}),
    "zoom": "zoom-secret-token",
}
DECLARED = {
    "signature": {"header": "X-Signature"},
    "event_id": {"body": "sha256"},
    "url": "https://receiver.example/webhooks/ebay",
}
HANDLER = """
from webhook_inbox import Context, Event, Router


def keep(event: Event, ctx: Context) -> None:
    assert event.body
"""
# Stands for the providers' own hosts: whatever is asked of one, it answers with its key.
PUBLISHED = """
from urllib.parse import urlsplit

KEYS = {keys!r}


class Published:
    def __init__(self, **_):
        pass

    def fetch(self, wanted):
        domain = ".".join(urlsplit(wanted.url).netloc.split(".")[-2:])
        return KEYS[domain].encode()
"""
FETCHED_FROM = {
    "aws-sns": "amazonaws.com",
    "google-pubsub": "googleapis.com",
    "paypal": "paypal.com",
    "plaid": "plaid.com",
}


class EveryProvider(LocalInbox, Inquiry):
    """A running inbox with a source for each provider, and one for each way to be tried."""

    def __init__(self, directory: Path) -> None:
        given = directory / "given"
        _write(given)
        chosen = {name: KNOWN.get(name) or _verifies(name) for name in NAMES} | KNOWN
        super().__init__(given, state=directory / "state", secrets=chosen)

    def copy_functions(self) -> None:
        super().copy_functions()
        entry = lay_beside(self.functions, "ingest")
        keys = {domain: pair_of(name)[1] for name, domain in FETCHED_FROM.items()}
        (entry.parent / "published.py").write_text(PUBLISHED.format(keys=keys))
        text = entry.read_text()
        theirs = "from webhook_inbox.adapters.https import LONGEST, HttpsFetcher"
        assert theirs in text, "ingest takes its fetcher from elsewhere now"
        ours = (
            f"{theirs.rpartition(',')[0]}\nfrom ingest.published import Published as HttpsFetcher"
        )
        entry.write_text(text.replace(theirs, ours))

    def provider(self, source: str) -> Provider:
        return self._providers[source]

    @cached_property
    def _providers(self) -> Mapping[str, Provider]:
        return {name: providers.load(spec) for name, spec in self.manifest.sources.items()}

    def made(self, source: str, sample: Sample | None = None) -> Sent:
        """Returns a sample as its provider sends it now."""
        private = KNOWN.get(source) or pair_of(source)[0]
        wanted = sample or sample_of(source)
        return self.provider(source).send(wanted, private, datetime.now(UTC))

    def take(self, source: str, sent: Sent) -> Answer:
        """Posts what a provider sends."""
        return self.ask(source, "POST", query=sent.query, headers=sent.headers, body=sent.body)

    def ask(
        self,
        source: str,
        method: str,
        *,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Answer:
        """Makes any request of a source."""
        url = f"{self.front_url}/webhooks/{source}" + (f"?{query}" if query else "")
        return insist(lambda: call(url, method, body=body or None, headers=dict(headers or {})))

    def names(self, source: str, sent: Sent) -> list[str]:
        """Returns the ids of all events that a delivery comes to; first that of a whole batch."""
        provider = self.provider(source)
        path, now = f"/webhooks/{source}", datetime.now(UTC)
        delivery = Delivery(source, "POST", path, sent.query, sent.headers, sent.body, now)
        parts = provider.batch(delivery) if provider.batch else None
        named = [events.name_of(delivery, provider), *map(provider.identify, parts or ())]
        return [dedupe_key(identity.event_id) for identity in named]


def _verifies(provider_name: str) -> str:
    """Returns what a source's secret is set to; who fetches a key may have to show who asks."""
    return SECRETS[-1] if provider_name in FETCHED_FROM else pair_of(provider_name)[1]


def _write(directory: Path) -> None:
    handlers = directory / "handlers"
    handlers.mkdir(parents=True)
    (handlers / "__init__.py").write_text('MODULES = ("all",)\n')
    routers = "".join(
        f'\nr{n} = Router("{name}")\nr{n}.on("*")(keep)' for n, name in enumerate(NAMES)
    )
    (handlers / "all.py").write_text(f"{HANDLER}\n{routers}\n")
    sources: dict[str, Mapping[str, Any]] = {
        **{name: {"provider": name, **example(name)} for name in NAMES},
        **{name: {"provider": "hmac", "handshake": name, **DECLARED} for name in PRESETS},
        # Those whose secret their provider delivers during the tests.
        **{f"new-{name}": {"provider": name} for name in ("asana", "notion")},
        "new-clio": {"provider": "hmac", "handshake": "clio", **DECLARED},
    }
    tables = [f"[sources.{name}]\n{_lines(table)}" for name, table in sources.items()]
    (directory / "inbox.toml").write_text("\n".join(tables))


def _lines(table: Mapping[str, Any]) -> str:
    return "".join(f"{key} = {_toml(value)}\n" for key, value in table.items())


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value)
