"""Standard Webhooks, which many providers send, some under their own header names.

`v1,<base64>` entries over `<id>.<seconds>.<body>`: id and time are signed; unknown versions are
ignored. A secret with the prefix `whpk_` is a public key: it verifies `v1a` entries (Ed25519), and
never `v1`, because a public key is known to anyone.
Source: the specification; unlike the reference library, it has no fractions of a second.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Facts, Provider, Verified
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import Naming, header, in_json
from webhook_inbox.providers.schemes.signatures import keys
from webhook_inbox.providers.schemes.signatures.base import Signed
from webhook_inbox.providers.schemes.signatures.encodings import base64
from webhook_inbox.providers.schemes.signatures.header_formats import VersionedSignatures
from webhook_inbox.providers.schemes.signatures.hmac import Hmac
from webhook_inbox.providers.schemes.signatures.signed_content import Template
from webhook_inbox.providers.schemes.signatures.tolerance import Window


class Names(NamedTuple):
    """A provider's names of the three headers, in lower case."""

    id: str
    timestamp: str
    signature: str


WEBHOOK: Final = Names("webhook-id", "webhook-timestamp", "webhook-signature")
SVIX: Final = Names("svix-id", "svix-timestamp", "svix-signature")


def standard(
    name: str,
    *names: Names,
    facts: Facts,
    key: keys.KeyReader = keys.whsec,
    type_at: str = "type",
    occurred_at: str = "timestamp",
) -> Provider:
    """Returns a provider that sends Standard Webhooks.

    Args:
        name: as inbox.toml spells it.
        names: its sets of header names, in order of preference.
        facts: its facts.
        key: converts its secret to key bytes.
        type_at: the path of the type in the body.
        occurred_at: the path of the time in the body.
    """
    scheme = Hmac(
        headers=tuple(each.signature for each in names),
        layout=VersionedSignatures("v1"),
        signs=Template.parse("{id}.{timestamp}.{body}"),
        encoding=base64,
        key=key,
        window=Window(headers=tuple(each.timestamp for each in names)),
        ids=tuple(each.id for each in names),
    )
    naming = Naming(
        id=(header(*scheme.ids),), type=(in_json(type_at),), occurred_at=(in_json(occurred_at),)
    )
    # With another reader, a secret may begin with any text.
    if key is not keys.whsec:
        return build_provider(name, scheme, naming, facts=facts)
    verify, precheck = (partial(check, scheme) for check in (_verify, _precheck))
    return build_provider(name, scheme, naming, facts=facts, verify=verify, precheck=precheck)


def _precheck(shared: Hmac, delivery: Delivery, secrets: Sequence[str]) -> None:
    try:
        shared.precheck(delivery, secrets)
    except Rejected:
        _asymmetric(shared).precheck(delivery, secrets)


def _verify(shared: Hmac, delivery: Delivery, secrets: Sequence[str]) -> Verified:
    public = [text if text.startswith(keys.PUBLIC) else "" for text in secrets]
    if not any(public):
        return shared.verify(delivery, secrets)
    # Both kinds are live while a source changes from one to the other.
    private = ["" if text.startswith(keys.PUBLIC) else text for text in secrets]
    try:
        return _asymmetric(shared).verify(delivery, public)
    except Rejected as error:
        if not any(private) or error.reason not in {Reason.MALFORMED, Reason.INVALID_SIGNATURE}:
            raise
    return shared.verify(delivery, private)


def _asymmetric(shared: Hmac) -> Signed:
    # The library is large, and few sources have a public key.
    from webhook_inbox.providers.schemes.signatures.asymmetric import Ed25519, whpk  # noqa: PLC0415

    return Ed25519(
        headers=shared.headers,
        layout=VersionedSignatures("v1a"),
        signs=shared.signs,
        encoding=shared.encoding,
        load=whpk,
        window=shared.window,
        ids=shared.ids,
    )
