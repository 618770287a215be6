"""Comparing in constant time."""

import hmac


def matches(sent: str, expected: str) -> bool:
    """Tells in constant time whether two texts are the same, whatever they are."""
    ours, theirs = (text.encode(errors="surrogatepass") for text in (expected, sent))
    return hmac.compare_digest(ours, theirs)
