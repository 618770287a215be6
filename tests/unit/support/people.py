"""Operators."""

from webhook_inbox.domain.audit import Actor, Proof


def person(name: str) -> Actor:
    """Returns an operator whom AWS STS named."""
    return Actor(name, Proof.STS)
