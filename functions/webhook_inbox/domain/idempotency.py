"""Idempotency keys."""

from hashlib import sha1, sha256
from typing import Final

# Stripe's limit for an Idempotency-Key, the tightest of the common ones.
KEY_LIMIT: Final = 255

NAME_LIMIT: Final = 128

# The namespace of keys as UUIDs; a change would change every key.
_KEYS: Final = bytes.fromhex("6f1d3f0c6a5e5c0e9d3b9d0f6c5b7a11")


class IdempotencyKey(str):
    """An idempotency key: readable text that fits an HTTP header, and the same as a UUID."""

    __slots__ = ()

    @property
    def uuid(self) -> str:
        """The key as a UUID (version 5), for destinations that need one."""
        # https://www.rfc-editor.org/rfc/rfc9562#section-5.5
        digits = sha1(_KEYS + self.encode(), usedforsecurity=False).hexdigest()[:32]
        variant = "89ab"[int(digits[16], 16) % 4]
        return "-".join(
            (digits[:8], digits[8:12], f"5{digits[13:16]}", variant + digits[17:20], digits[20:])
        )


def versioned(name: str, version: int) -> str:
    """Returns an effect's name under its run's key version: `charge`, then `charge#1`, `charge#2`.

    A name contains no "#", so no two names and versions are equal.
    """
    return f"{name}#{version}" if version else name


def key_of(name: str, *rest: str) -> IdempotencyKey:
    """Returns an effect's key: `create-order:stripe.fulfil:stripe:evt_1`, or with a business key.

    It is at most 255 printable ASCII characters; a longer or other text is hashed.
    """
    key = ":".join((name, *rest))
    if len(key) <= KEY_LIMIT and key.isascii() and key.isprintable():
        return IdempotencyKey(key)
    digest = sha256(key.encode(errors="surrogatepass")).hexdigest()
    return IdempotencyKey(f"{rest[0]}:{digest}" if _short(rest[0]) else digest)


def _short(text: str) -> bool:
    return len(text) <= NAME_LIMIT and text.isascii() and text.isprintable()
