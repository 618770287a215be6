"""The local inbox's secrets: the user's, or obviously fake ones."""

import base64
import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from webhook_inbox import providers
from webhook_inbox.client.secret_documents import SecretDocuments
from webhook_inbox.domain.manifest import Manifest, SourceSpec
from webhook_inbox.domain.secret_document import HANDLERS, SOURCES
from webhookctl.errors import CommandError

FILE: Final = "dev-secrets.json"
MARK: Final = "dev-only"
# Providers whose secret is base64 under a prefix.
PREFIXED: Final = frozenset({"clerk", "gitlab", "resend", "standard-webhooks", "svix"})
# Adyen's keys are hexadecimal, Airtable's, Finch's and those of tokens base64, a declared scheme's
# either or text: these digits are valid as all three.
ENCODED: Final = frozenset({"adyen", "adyen-platform", "airtable", "finch", "hmac", "jwt"})
# Providers whose secret is `user:password`.
NAMED: Final = frozenset({"basic"})
DIGITS: Final = "deadbeef"
# The suffix under which the private key of a fake public key is stored; names have no slash.
SIGNING: Final = "/signing"


def fake(provider_name: str, source: str) -> str:
    """Returns a new secret in the provider's format, marked as fake."""
    if provider_name in PREFIXED:
        return "whsec_" + base64.b64encode(f"{MARK}-{secrets.token_hex(11)}!".encode()).decode()
    if provider_name in ENCODED:
        return DIGITS + secrets.token_hex(28)
    joint = ":" if provider_name in NAMED else "-"
    return f"{MARK}-{source}{joint}{secrets.token_hex(12)}"


def choose(manifest: Manifest, given: Mapping[str, str], state: Path) -> dict[str, str]:
    """Returns every secret's value by name.

    `given` is by source or by secret. Fake secrets persist between starts, so that a forwarder's
    configuration stays valid. Raises CommandError for an unknown name.
    """
    known = {spec.name: spec.secret for spec in manifest.sources.values()}
    known |= {name: name for name in manifest.secrets}
    for name in given:
        if name not in known:
            message = f"--secret {name}=…: inbox.toml has no such source; it has: "
            raise CommandError(message + ", ".join(sorted(manifest.sources)))
    kept = _read(state / FILE)
    fakes: dict[str, str] = {}
    signing: dict[str, str] = {}
    for spec in manifest.sources.values():
        private, public = _pair(spec, kept)
        fakes[spec.secret] = public
        if private != public:
            signing[spec.secret + SIGNING] = private
    signs = {spec.sign for spec in manifest.destinations.values()}
    kinds = {name: "standard-webhooks" if name in signs else "" for name in manifest.secrets}
    others = {name: kept.get(name) or fake(kind, name) for name, kind in kinds.items()}
    # Those of a removed source stay: the vault has them still, and it may be added again.
    _write(state / FILE, {**kept, **signing, **others, **fakes})
    return {**others, **fakes, **{known[name]: value for name, value in given.items()}}


def signing_key(state: Path, secret: str) -> str | None:
    """Returns the private key of a fake public key; None for a shared secret."""
    return _read(state / FILE).get(secret + SIGNING)


def store(values: Mapping[str, str], manifest: Manifest, documents: SecretDocuments) -> None:
    """Stores values, each as its only one, in the documents of their readers."""
    sources = {name: value for name, value in values.items() if name in manifest.source_secrets}
    documents.put(SOURCES, sources)
    documents.put(HANDLERS, {n: value for n, value in values.items() if n not in sources})


def stored(documents: SecretDocuments) -> dict[str, str]:
    """Returns the current value of each secret that sources or handlers have."""
    found = {**documents.read(HANDLERS), **documents.read(SOURCES)}
    return {name: values[0] for name, values in found.items()}


def _pair(spec: SourceSpec, kept: Mapping[str, str]) -> tuple[str, str]:
    """Returns a source's signing and verifying keys, stored or new."""
    provider = providers.load(spec)
    made = provider.pair if provider.needs_secret and provider.fetches is None else None
    public, private = kept.get(spec.secret), kept.get(spec.secret + SIGNING)
    if made is None:
        shared = public or fake(spec.provider, spec.name)
        return shared, shared
    return (private, public) if private and public else made()


def _read(file: Path) -> dict[str, str]:
    try:
        kept: dict[str, str] = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return kept


def _write(file: Path, values: Mapping[str, str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(mode=0o600)
    file.write_text(json.dumps(values, indent=2, sort_keys=True))
