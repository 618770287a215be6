"""All providers, by the name that inbox.toml uses.

A provider module has a `PROVIDER`. If its sources take keys of their own, it lists them in
`SETTINGS` and has `provider(settings) -> Provider` instead, with the required keys in `EXAMPLE`.
Only the modules of configured providers are imported.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Final

from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.provider import Provider

GENERIC: Final = "generic_"
# Provider names to module names: `aws-sns` to `aws_sns`, `hmac` to `generic_hmac`.
MODULES: Final[Mapping[str, str]] = {
    module.removeprefix(GENERIC).replace("_", "-"): module
    # Not by pathlib, which takes 3 ms of a cold start.
    for file in sorted(os.listdir(os.path.dirname(__file__)))  # noqa: PTH120, PTH208
    if (module := file.removesuffix(".py")) != file and not module.startswith("_")
}
# Schemes that a source's own tables declare; they belong to no particular provider.
DECLARED: Final = frozenset(name for name in MODULES if MODULES[name].startswith(GENERIC))

# The keys of every source, as the configuration declares them.
KEYS: Final = frozenset(
    {
        *("allow", "auth", "identical_body", "personal", "provider", "retention", "secret"),
        *("tenant", "throttle", "types", "volatile"),
    }
)


def load(spec: SourceSpec) -> Provider:
    """Returns a source's provider, with the source's own volatile fields added.

    Raises:
        ConfigurationError: the provider is unknown, or cannot use these settings.
    """
    try:
        provider = _provider(spec)
    except ConfigurationError as error:
        raise ConfigurationError(f"[sources.{spec.name}] {error}") from error
    return replace(provider, volatile=tuple(dict.fromkeys((*provider.volatile, *spec.volatile))))


def settings_of(provider: str) -> frozenset[str]:
    """Returns the keys that a provider's sources take of their own; none for an unknown one."""
    if provider not in MODULES:
        return frozenset()
    return getattr(import_module(f"{__name__}.{MODULES[provider]}"), "SETTINGS", frozenset())


def _provider(spec: SourceSpec) -> Provider:
    if spec.provider not in MODULES:
        remedy = _remedy(spec.provider, MODULES, otherwise="choose one of")
        raise ConfigurationError(f'provider: "{spec.provider}" is not known; {remedy}')
    module = import_module(f"{__name__}.{MODULES[spec.provider]}")
    known = settings_of(spec.provider)
    for key in sorted(spec.settings.keys() - known):
        remedy = _remedy(key, known | KEYS, otherwise="the keys of this source are")
        raise ConfigurationError(f"{key}: unknown key; {remedy}")
    provider: Provider = module.provider(spec.settings) if known else module.PROVIDER
    return provider


def _remedy(word: str, known: Iterable[str], *, otherwise: str) -> str:
    # A cold start of ingest needs no suggestion.
    from webhook_inbox.domain.similar_names import did_you_mean  # noqa: PLC0415

    return did_you_mean(word, known) or f"{otherwise} {', '.join(sorted(known))}"
