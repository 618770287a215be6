"""What a delivery itself shows, where nothing that was tried verifies."""

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Final

from webhook_inbox import providers
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.json_path import parse
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.provider import Provider
from webhookctl.diagnosis.hypothesis import Cause

VERSION: Final = re.compile(r"(?:^|[\s,;])(v[0-9]+[a-z]?)[=,]")
MODES: Final = ("livemode", "live_mode", "live", "test", "testmode", "test_mode", "sandbox")


def missing(provider: Provider, present: Iterable[str]) -> Cause:
    """Returns what to know of a delivery without a signature."""
    absent = sorted(provider.signature_headers - set(present))
    words = f"no {', '.join(absent) or 'signature'} came: it was not signed, or a proxy dropped it"
    remedy = "let the proxy pass it on; see that the provider has a secret to sign with"
    strangers = _whose(set(present) - {"authorization"})
    if strangers:
        words = f"it has the headers of another provider: {', '.join(strangers)}"
        remedy = "name the source that is theirs, or register that source's address with them"
    return Cause("header-missing", words, remedy, proven=True)


def _whose(present: set[str]) -> list[str]:
    found = []
    for name, module in providers.MODULES.items():
        example = getattr(import_module(f"{providers.__name__}.{module}"), "EXAMPLE", {})
        try:
            provider = providers.load(SourceSpec(name, name, name, settings=example))
        except (ConfigurationError, KeyError):
            continue
        wanted = provider.signature_headers - {"authorization", "content-type", "host"}
        if wanted & present:
            found.append(name)
    return found


def version(name: str, versions: list[str]) -> Cause:
    """Returns what to know of signatures of other versions alone."""
    words = f"{name} has signatures of version {', '.join(versions)} alone, which do not count here"
    return Cause("unknown-version", words, "see which version the provider signs with", proven=True)


def modes(body: bytes) -> Iterator[Cause]:
    """Yields what the body says of test and live mode."""
    try:
        document = parse(body)
    except ValueError:
        return
    if not isinstance(document, dict):
        return
    for name in MODES:
        if isinstance(document.get(name), bool):
            words = f"the body says {name}: {str(document[name]).lower()}; test and live mode have"
            words += " secrets of their own"
            remedy = "see that the secret is that of this mode's endpoint"
            yield Cause("other-mode", words, remedy, proven=False)


def unknown(provider: Provider) -> Cause:
    """Returns what is left where nothing that was tried verifies."""
    if not provider.needs_secret:
        words = "the provider did not make this, or its key is not the one that was given"
        return Cause("unknown", words, "ask the provider to send it again", proven=False)
    words = "no known mishap explains it: the secret is another one, or the body is not what was"
    words += " sent"
    remedy = "compare the secret with the provider's; try others with --try"
    return Cause("unknown", words, remedy, proven=False)
