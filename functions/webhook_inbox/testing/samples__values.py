"""Values of secrets, of a form that what needs them takes."""

from collections.abc import Mapping
from typing import Final

from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.secrets import COMPLETION_KEY

SIGNING: Final = "whsec_dGVzdGluZy1vbmx5LXNlY3JldCE="


def values(manifest: Manifest, given: Mapping[str, str | None]) -> dict[str, tuple[str, ...]]:
    """Returns a value for each secret, of a form that what needs it takes."""
    found: dict[str, str | None] = {
        name: f"testing-{name}" for name in (*manifest.secrets, COMPLETION_KEY)
    }
    for spec in manifest.destinations.values():
        named = spec.auth.get("bearer") or spec.auth.get("secret")
        found |= {named: f"testing-{named}"} if named else {}
        basic = spec.auth.get("basic")
        found |= {basic: f"tester:testing-{basic}"} if basic else {}
        found |= {spec.sign: SIGNING} if spec.sign else {}
    found |= given
    return {name: (value,) for name, value in found.items() if value is not None}
