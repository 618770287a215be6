"""Forwards a stored event over HTTP, in the form and with the signature of `forward`."""

import hmac
from base64 import b64decode, b64encode
from collections.abc import Mapping
from datetime import datetime
from http.client import HTTPException
from ipaddress import ip_address
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from webhook_inbox.domain.model import StoredEvent
from webhook_inbox.handlers.forwarding.cloud_event import rfc3339
from webhookctl.display.generated_curl import sent_headers
from webhookctl.errors import CommandError

PREFIX: Final = "whsec_"
SECONDS: Final = 10
# Characters of a header's value that are sent as they are; see `forward`.
_PLAIN: Final = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ "
# The request's own, which a stored header must not replace.
_OWN: Final = frozenset({"host", "content-length", "transfer-encoding", "connection"})


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirect: the answer decides neither where personal data goes."""

    def redirect_request(self, *_: object) -> None:
        """Refuses."""


class Forwarder:
    """POSTs events to one address.

    Raises CommandError for an address that is not of this machine, unless `remote` allows it, and
    for a secret that is not of Standard Webhooks.
    """

    def __init__(self, url: str, secret: str, *, remote: bool) -> None:
        _require_address(url, remote=remote)
        self._url = url
        self._key = _key(secret)
        # A proxy would send the payloads of a laptop's own address elsewhere.
        self._opener = build_opener(ProxyHandler({}), _NoRedirect())

    def send(self, event: StoredEvent, *, attempt: int, now: datetime) -> str:
        """POSTs an event once; returns "" for a 2xx, otherwise why not."""
        headers = self._headers(event, attempt, now)
        request = Request(self._url, data=event.body, headers=headers, method="POST")  # noqa: S310
        try:
            with self._opener.open(request, timeout=SECONDS):
                return ""
        except HTTPError as error:
            with error:
                return f"answered {error.code}"
        # A port that speaks no HTTP raises HTTPException.
        except (URLError, HTTPException, OSError, ValueError) as error:
            return f"no answer: {getattr(error, 'reason', None) or error}"

    def _headers(self, event: StoredEvent, attempt: int, now: datetime) -> Mapping[str, str]:
        stored = {k: v for k, v in sent_headers(event.headers).items() if k not in _OWN}
        named = {
            "content-type": event.headers.get("content-type", "application/octet-stream"),
            "inbox-source": event.source,
            "inbox-event-id": event.event_id,
            "inbox-event-type": event.type,
            "inbox-received-at": rfc3339(event.received_at),
            "inbox-attempt": str(attempt),
        }
        every = {k: quote(v.strip(), safe=_PLAIN) for k, v in {**stored, **named}.items()}
        return {**every, **self._signature(event, now)}

    def _signature(self, event: StoredEvent, now: datetime) -> Mapping[str, str]:
        """Returns the headers of Standard Webhooks."""
        # A full stop would shift the boundaries between the signed parts.
        id_ = quote(f"{event.source}/{event.event_id}", safe="/:@", errors="replace")
        id_ = id_.replace(".", "%2E")
        at = str(int(now.timestamp()))
        content = f"{id_}.{at}.".encode() + event.body
        made = b64encode(hmac.digest(self._key, content, "sha256")).decode()
        return {"webhook-id": id_, "webhook-timestamp": at, "webhook-signature": f"v1,{made}"}


def _key(secret: str) -> bytes:
    try:
        key = b64decode(secret.removeprefix(PREFIX), validate=True)
    except ValueError:
        key = b""
    if not key:
        raise CommandError(
            f"the secret to sign with is not of Standard Webhooks: it has {PREFIX} and a key in"
            " base64"
        )
    return key


def _require_address(url: str, *, remote: bool) -> None:
    try:
        parts = urlsplit(url)
        host, usable = parts.hostname or "", parts.port != 0
    except ValueError:
        host, usable = "", False
    if not host or not usable or parts.scheme not in {"http", "https"}:
        raise CommandError(f"{url} is no address: begin it with http:// or https://")
    if not (remote or _is_loopback(host)):
        raise CommandError(
            f"{host} is not this machine, and payloads may be personal data: forward to localhost,"
            " or allow it with --allow-remote"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
