"""Hypotheses about the source's signature scheme."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from itertools import product
from typing import Any, Final

from webhook_inbox import providers
from webhook_inbox.client.diagnosis.hypothesis import RejectionCause, Trial
from webhook_inbox.domain.manifest import SourceSpec

DECLARED: Final = "hmac"
CONTENTS: Final = (
    "{body}",
    "{timestamp}.{body}",
    "{timestamp}{body}",
    "{timestamp}:{body}",
    "v0:{timestamp}:{body}",
    "{id}.{timestamp}.{body}",
)


def schemes(trial: Trial) -> Iterator[Trial]:
    """Tries the provider's other schemes, or other settings of a declared one."""
    changes = _declared(trial.spec) if trial.spec.provider == DECLARED else _variants(trial.spec)
    for change in changes:
        told = ", ".join(f'{key} = "{value}"' for key, value in change.items())
        if trial.spec.provider == DECLARED:
            given = trial.spec.settings.get("signature", {})
            settings = {**trial.spec.settings, "signature": {**given, **change}}
        else:
            settings = {**trial.spec.settings, **change}
        cause = RejectionCause(
            "scheme-settings",
            f"its signature uses other settings than inbox.toml: {told}",
            f"set {told} in the source's table",
        )
        yield trial.without(cause, spec=replace(trial.spec, settings=settings))


def _variants(spec: SourceSpec) -> Iterator[Mapping[str, Any]]:
    module = import_module(f"{providers.__name__}.{providers.MODULES[spec.provider]}")
    variants: Mapping[str, Mapping[str, Any]] = getattr(module, "VARIANTS", {})
    yield from variants.values()


def _declared(spec: SourceSpec) -> Iterator[Mapping[str, Any]]:
    given = spec.settings.get("signature", {})
    choices: Mapping[str, tuple[str, ...]] = {
        "key": ("text", "hex", "base64"),
        "encoding": ("hex", "base64", "base64url"),
        "algorithm": ("sha256", "sha1", "sha512"),
        "signs": (str(given.get("signs", "{body}")), *CONTENTS),
    }
    for values in product(*choices.values()):
        change = dict(zip(choices, values, strict=True))
        yield {key: value for key, value in change.items() if given.get(key) != value}


def settings_of(spec: SourceSpec) -> frozenset[str]:
    """Returns the names of the settings of a source's provider."""
    module = import_module(f"{providers.__name__}.{providers.MODULES[spec.provider]}")
    known: frozenset[str] = getattr(module, "SETTINGS", frozenset())
    return known
