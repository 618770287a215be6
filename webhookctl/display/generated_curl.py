"""Formats an event as a curl command for a POSIX shell.

The body passes through `printf`, which takes any byte as an octal escape, so that neither the shell
nor a terminal acts on it.
"""

from collections.abc import Iterator, Mapping
from shlex import quote
from typing import Final

from webhook_inbox.domain.model import StoredEvent
from webhookctl.display.generated_test import SECRET_HEADER

CONTINUED: Final = " \\\n  "
# Printable ASCII that means nothing to `printf` and to a shell within single quotes.
_PLAIN: Final = frozenset(range(0x20, 0x7F)) - frozenset(b"'\\%")


def curl(event: StoredEvent, url: str) -> str:
    """Returns the command that sends an event's body and headers to a URL, without a signature."""
    options = (f"--header {_word(text)}" for text in _headers(event.headers))
    body = "".join(chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in event.body)
    # curl adds a content type of its own where none is stored.
    unset = () if "content-type" in event.headers else ("--header 'content-type:'",)
    target = f"--request POST --globoff --url {_word(url)}"
    parts = ("curl --silent --show-error --include", target, *options, *unset)
    return f"printf '{body}' | {CONTINUED.join((*parts, '--data-binary @-'))}"


def sent_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Returns the stored headers that can be sent again: none that could hold a secret."""
    return {
        name: value
        for name, value in headers.items()
        if not SECRET_HEADER.search(name) and name.isascii() and value.isprintable()
    }


def _headers(headers: Mapping[str, str]) -> Iterator[str]:
    for name, value in sent_headers(headers).items():
        # curl removes a header without a value, unless it ends with a semicolon.
        yield f"{name}: {value}" if value.strip() else f"{name};"


def _word(text: str) -> str:
    return quote(text)
