"""Credentials that callers send unchanged: API keys, users with passwords.

They prove the sender, not the content.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from webhook_inbox.domain.errors import ConfigurationError, Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Facts, Provider, Sample, Verified
from webhook_inbox.providers.schemes import tokens
from webhook_inbox.providers.schemes.builder import signed_content
from webhook_inbox.providers.schemes.generic.identity import (
    IN_BODY,
    headers_of,
    naming,
    sample_headers,
)
from webhook_inbox.providers.schemes.signatures.encodings import matches


def key(credential: str) -> str:
    """Returns an API key unchanged."""
    return credential


def user_and_password(credential: str) -> str:
    """Returns `user:password` in base64; "" if it has no colon."""
    try:
        return b64encode(credential.encode()).decode() if ":" in credential else ""
    except UnicodeEncodeError:
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerCredentials:
    """A header whose value must be a credential in the secret.

    Attributes:
        header: its lower-case name.
        prefix: the text before the credential; case is ignored.
        write: encodes a credential; returns "" if it is invalid.
        wanted: the form of the secret, for error messages.
    """

    header: str
    prefix: str = ""
    write: Callable[[str], str] = key
    wanted: str

    def verify(self, delivery: Delivery, secrets: Sequence[str]) -> Verified:
        """Compares with the credential of every agent, each in constant time.

        Raises:
            Rejected: always with a reason, whatever the input; nothing else is ever raised.
        """
        sent = self._sent(delivery)
        live = [
            (place, agent, credential)
            for place, secret in enumerate(secrets)
            for agent, credential in self._held(secret)
        ]
        if not live:
            raise Rejected(
                Reason.NO_SECRET, f"the source's secret is not set, or not {self.wanted}"
            )
        found = [(place, agent) for place, agent, right in live if matches(sent, right)]
        if not found:
            raise Rejected(Reason.INVALID_SIGNATURE, "no agent has this credential")
        place, agent = found[0]
        return Verified(place, sent, delivery.body, agent=agent)

    def precheck(self, delivery: Delivery, keys: Sequence[str]) -> None:  # noqa: ARG002 - a credential names no key
        """Checks that there is a credential; raises Rejected."""
        self._sent(delivery)

    def tokens(self, secret: str) -> list[str]:
        """Returns every value that the header may have."""
        return [self.prefix + credential for _, credential in self._held(secret)]

    def sign(self, sample: Sample, secret: str, now: datetime) -> dict[str, str]:  # noqa: ARG002 - a credential has neither content nor time
        """Returns the headers of a delivery of the first agent; raises ConfigurationError."""
        tokens = self.tokens(secret)
        if not tokens:
            raise ConfigurationError(f"the secret is not {self.wanted}; set it so")
        return {"content-type": "application/json", self.header: tokens[0]}

    def _sent(self, delivery: Delivery) -> str:
        value = delivery.headers.get(self.header, "")
        if not value:
            raise Rejected(Reason.MISSING_SIGNATURE, f"no {self.header} header")
        if value[: len(self.prefix)].lower() != self.prefix.lower():
            raise Rejected(
                Reason.MALFORMED,
                f"the {self.header} header does not begin with {self.prefix.strip()}",
            )
        return value[len(self.prefix) :]

    def _held(self, secret: str) -> list[tuple[str, str]]:
        held = tokens.credentials(secret)
        return [(agent, sent) for agent, text in held if (sent := self.write(text))]


def provider(
    name: str, scheme: CallerCredentials, settings: Mapping[str, Any], *, facts: Facts
) -> Provider:
    """Returns the provider of a source whose callers send credentials.

    Raises:
        ConfigurationError: an id or a type is read from the credential's header, or there is
            no id.
    """
    names = naming(settings)
    sent = frozenset({scheme.header})
    # A captured delivery could be sent again under another id (G6).
    bare = IN_BODY.isdisjoint(settings["event_id"])

    def sign(sample: Sample, secret: str, now: datetime) -> dict[str, str]:
        return {**scheme.sign(sample, secret, now), **sample_headers(settings, sample)}

    return Provider(
        name=name,
        verify=scheme.verify,
        precheck=scheme.precheck,
        identify=names.identify,
        sign=sign,
        guard=signed_content if bare else None,
        kept_headers=headers_of(settings, besides=sent),
        signature_headers=sent,
        token_headers=sent,
        tokens=scheme.tokens,
        facts=facts,
    )
