"""Hints from the delivery itself, for a failure that no hypothesis explains."""

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Final

from webhook_inbox import providers
from webhook_inbox.client.diagnosis.hypothesis import RejectionCause
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.json_path import parse
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.provider import Provider
from webhook_inbox.ingest.verification import NAMES_SHOWN, unread

VERSION: Final = re.compile(r"(?:^|[\s,;])(v[0-9]+[a-z]?)[=,]")
MODES: Final = ("livemode", "live_mode", "live", "test", "testmode", "test_mode", "sandbox")


def missing(provider: Provider, present: Iterable[str]) -> RejectionCause:
    """Returns the cause of a missing signature."""
    absent = sorted(provider.signature_headers - set(present))
    others = unread(provider, dict.fromkeys(present, ""))
    listed = ", ".join(others[:NAMES_SHOWN]) or "no other header that may have it"
    words = f"no {', '.join(absent) or 'signature'} was received: the request was not signed, a"
    words += f" proxy removed it, or it has another name; received: {listed}"
    remedy = "let the proxy forward it; check that the provider has a secret to sign with"
    strangers = _whose(set(present) - {"authorization"})
    if strangers:
        words = f"it has the headers of another provider: {', '.join(strangers)}"
        remedy = "use that provider's source, or register that source's URL with it"
    return RejectionCause("header-missing", words, remedy, proven=True)


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


def version(name: str, versions: list[str]) -> RejectionCause:
    """Returns the cause of signatures that all have unsupported versions."""
    words = f"{name} has signatures of version {', '.join(versions)} only, which are not supported"
    return RejectionCause(
        "unknown-version", words, "check which version the provider signs with", proven=True
    )


def modes(body: bytes) -> Iterator[RejectionCause]:
    """Yields hints from the body's test or live mode."""
    try:
        document = parse(body)
    except ValueError:
        return
    if not isinstance(document, dict):
        return
    for name in MODES:
        if isinstance(document.get(name), bool):
            words = f"the body says {name}: {str(document[name]).lower()}; test and live mode use"
            words += " different secrets"
            remedy = "use the secret of this mode's endpoint"
            yield RejectionCause("other-mode", words, remedy, proven=False)


def unknown(provider: Provider) -> RejectionCause:
    """Returns the remaining explanation where no hypothesis verifies."""
    if not provider.needs_secret:
        words = "the provider did not sign this, or its key is not the given one"
        return RejectionCause("unknown", words, "ask the provider to send it again", proven=False)
    words = "no known change explains it: the secret differs, or the body is not the one that was"
    words += " sent"
    remedy = "compare the secret with the provider's; try others with --try"
    return RejectionCause("unknown", words, remedy, proven=False)
