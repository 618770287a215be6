"""`ctx.http("crm")`: an httpx client for one destination.

    built ──► effect started ──► completed ──► gate ──► sent ──► classified ──► effect recorded

A POST, PUT, PATCH or DELETE is an effect: its response is recorded, and a later attempt gets the
recorded one. A response that is not a success is raised as an error, see responses.py.
"""

import re
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

import httpx
from httpx import USE_CLIENT_DEFAULT

from webhook_inbox.destinations.client.attempt import OutboundCall
from webhook_inbox.destinations.client.body import ACCEPTED, ANSWER_LIMIT
from webhook_inbox.destinations.client.exchange import SAFE, Exchange, ReadResponse, named
from webhook_inbox.destinations.client.recording import (
    BODY_LIMIT,
    arguments,
    effect_name,
    from_record,
    to_record,
)
from webhook_inbox.destinations.client.request import RequestBuilder, user_agent
from webhook_inbox.destinations.client.transport import Authorizing, origin
from webhook_inbox.destinations.credentials import DestinationCredentials
from webhook_inbox.domain.errors import Permanent, Transient
from webhook_inbox.domain.manifest import DestinationSpec
from webhook_inbox.domain.ports import Clock
from webhook_inbox.domain.secrets import REDACTED_FROM, redacted

# A safe request under an effect can be repeated at any time.
READ_AGAIN: Final = timedelta(days=365)
# Options that httpx takes when it sends a request, not when it builds one.
_SENDING: Final = frozenset({"auth", "follow_redirects"})
# Headers that no longer apply to a response whose body was read and decoded.
_UNPACKED: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})
# More than any chain of proxies decodes; a limit, since each decoding reads the whole path.
_DECODINGS: Final = 8
_PATH_END: Final = re.compile(r"[?#]")
_SEPARATOR: Final = re.compile(r"[/\\]")
# Servers cut a segment at these once it is decoded; servlet containers cut `..;v=1` to `..`.
_SEGMENT_END: Final = re.compile(r"[;?#\s\x00-\x1f]")


class ByMethod:
    """The default of `effect`: a name such as "POST /notes", and none for a safe method."""


BY_METHOD: Final = ByMethod()
Url = httpx.URL | str
Naming = str | ByMethod | None


class DestinationClient(httpx.Client):
    """The client of one destination in one attempt.

    Args:
        spec: the destination.
        call: the attempt.
        clock: the time.
        transport: sends the requests.
    """

    def __init__(
        self,
        spec: DestinationSpec,
        call: OutboundCall,
        *,
        clock: Clock,
        transport: httpx.BaseTransport,
    ) -> None:
        self._spec = spec
        self._call = call
        self._credentials = credentials = DestinationCredentials(spec, call.secrets)
        self._builder = RequestBuilder(spec, call, credentials=credentials, clock=clock)
        self._exchange = Exchange(spec, call, credentials=credentials, clock=clock)
        super().__init__(
            base_url=spec.base_url,
            timeout=spec.timeout,
            headers={"user-agent": user_agent(call), "accept-encoding": ACCEPTED},
            transport=Authorizing(transport, spec.base_url),
            trust_env=False,
        )

    def request(
        self, method: str, url: Url, *, effect: Naming = BY_METHOD, **options: Any
    ) -> httpx.Response:
        """Sends a request and returns its response, which is a success.

        Args:
            method: the HTTP method.
            url: a path, joined to the base URL; or a URL of the same host.
            effect: the name of the call in the journal, by default such as "POST /notes" for an
                unsafe method. None sends it without journal and key. Within `ctx.effect` the
                call is part of that effect, and is sent under its key.
            options: those of `httpx.Client.request`; `follow_redirects` for safe methods only.

        Raises:
            Permanent: retrying will not change the response, or the request cannot be sent.
            Transient: a later attempt may succeed.
            Deferred: the destination is down or at its limit.
        """
        sending = {name: options.pop(name) for name in _SENDING & options.keys()}
        request = self.build_request(method, url, **options)
        self._require_one_call(request, sending)
        if effect is None:
            return self._whole(request, "", sending)
        within = self._running_key()
        if within or (isinstance(effect, ByMethod) and request.method in SAFE):
            return self._whole(request, within, sending)
        path = effect_name(self._spec, request)
        # Some APIs take their token in the path.
        name = effect if isinstance(effect, str) else self._call.effects.redact(path)
        return self._journalled(name, request, sending)

    def get(self, url: Url, *, effect: Naming = BY_METHOD, **options: Any) -> httpx.Response:
        """Sends a GET; see `request`."""
        return self.request("GET", url, effect=effect, **options)

    def options(self, url: Url, *, effect: Naming = BY_METHOD, **options: Any) -> httpx.Response:
        """Sends an OPTIONS; see `request`."""
        return self.request("OPTIONS", url, effect=effect, **options)

    def head(self, url: Url, *, effect: Naming = BY_METHOD, **options: Any) -> httpx.Response:
        """Sends a HEAD; see `request`."""
        return self.request("HEAD", url, effect=effect, **options)

    def post(self, url: Url, *, effect: Naming = BY_METHOD, **options: Any) -> httpx.Response:
        """Sends a POST; see `request`."""
        return self.request("POST", url, effect=effect, **options)

    def put(self, url: Url, *, effect: Naming = BY_METHOD, **options: Any) -> httpx.Response:
        """Sends a PUT; see `request`."""
        return self.request("PUT", url, effect=effect, **options)

    def patch(self, url: Url, *, effect: Naming = BY_METHOD, **options: Any) -> httpx.Response:
        """Sends a PATCH; see `request`."""
        return self.request("PATCH", url, effect=effect, **options)

    def delete(self, url: Url, *, effect: Naming = BY_METHOD, **options: Any) -> httpx.Response:
        """Sends a DELETE; see `request`."""
        return self.request("DELETE", url, effect=effect, **options)

    def build_request(self, method: str, url: Url, **options: Any) -> httpx.Request:
        """Returns a request to this destination; see `httpx.Client.build_request`.

        Raises:
            Permanent: the URL is invalid, or of another host.
        """
        # httpx would append a slash to the base URL, which is another URL.
        url = url or self._spec.base_url
        try:
            request = super().build_request(method.upper(), url, **options)
        except httpx.InvalidURL as error:
            # Its text shows a part of the URL, which may be a personal field of the event.
            fault = str(error).partition(": ")[0]
            raise Permanent(f"{self._spec.name}: invalid URL: {fault}") from None
        self._require_ours(url, request)
        return request

    def send(
        self,
        request: httpx.Request,
        *,
        stream: bool = False,
        auth: Any = USE_CLIENT_DEFAULT,
        follow_redirects: Any = USE_CLIENT_DEFAULT,
    ) -> httpx.Response:
        """Sends a built request without the journal; see `httpx.Client.send`.

        Raises:
            Permanent: its method is unsafe, outside of any effect; and as `request`.
        """
        sending = {"auth": auth, "follow_redirects": follow_redirects}
        self._require_one_call(request, sending)
        key = self._running_key()
        if request.method not in SAFE and not key:
            raise Permanent(
                f"{named(self._spec, request)} would be sent without the journal: call"
                " request(…, effect=…), or send it within ctx.effect"
            )
        if stream:
            return self._sent(request, key, sending, limit=None).response
        return self._whole(request, key, sending)

    def _journalled(
        self, name: str, request: httpx.Request, sending: dict[str, Any]
    ) -> httpx.Response:
        self._builder.check(request)

        def happen(key: str) -> dict[str, Any]:
            answered = self._sent(request, key, sending, limit=BODY_LIMIT)
            record = to_record(answered)
            # The response may repeat the credentials of the call: they are not recorded (G10).
            redact = partial(self._credentials.redact, shortest=REDACTED_FROM)
            return {name: redacted(part, redact) for name, part in record.items()}

        spec, safe = self._spec, request.method in SAFE
        record = self._call.effect(
            name,
            happen,
            args=arguments(spec, request),
            in_doubt="retry" if safe or spec.key_header or spec.key_field else "hold",
            key_lifetime=READ_AGAIN if safe else timedelta(seconds=spec.key_lifetime),
        )
        # The first attempt reads the record too: a handler gets the same response in all.
        return from_record(record, request)

    def _whole(self, request: httpx.Request, key: str, sending: dict[str, Any]) -> httpx.Response:
        answered = self._sent(request, key, sending, limit=ANSWER_LIMIT)
        response = answered.response
        if answered.body is None:
            raise self._unreadable(request, answered)
        # The content-length of a response to HEAD is that of the GET.
        dropped = _UNPACKED - {"content-length"} if request.method == "HEAD" else _UNPACKED
        whole = httpx.Response(
            response.status_code,
            headers=[pair for pair in response.headers.multi_items() if pair[0] not in dropped],
            content=answered.body,
            request=response.request,
            history=response.history,
        )
        with suppress(RuntimeError):  # httpx measures responses of sockets, not of test doubles
            whole.elapsed = response.elapsed
        return whole

    def _unreadable(self, request: httpx.Request, answered: ReadResponse) -> Exception:
        status = answered.response.status_code
        text = f"{named(self._spec, request)} answered {status}, but its body {answered.unread}"
        # The effect was executed: a permanent failure would say that it was not.
        done = request.method not in SAFE and self._running_key()
        return Transient(text) if done else Permanent(text)

    def _sent(
        self, request: httpx.Request, key: str, sending: dict[str, Any], *, limit: int | None
    ) -> ReadResponse:
        acts = bool(key) and request.method not in SAFE
        effect = self._call.effects.running
        if effect and acts:
            effect.begin_call(f"{self._spec.name} {arguments(self._spec, request)}")
        complete = self._builder.complete(request, key)
        send = partial(super().send, stream=True, **sending)
        keyed = self._builder.keyed(complete, key)
        try:
            answered = self._exchange.make(complete, send, keyed=keyed, limit=limit)
        except Exception as error:
            if effect:
                effect.fail_call(error, acts=acts)
            raise
        if effect and acts:
            effect.end_call()
        return answered

    def _running_key(self) -> str:
        """Returns the key of the effect within which the caller runs, "" outside of any."""
        effect = self._call.effects.running
        return effect.key if effect else ""

    def _require_one_call(self, request: httpx.Request, sending: dict[str, Any]) -> None:
        """Rejects options by which an error may hide that an unsafe request was answered."""
        if request.method in SAFE:
            return
        follows = sending.get("follow_redirects", USE_CLIENT_DEFAULT)
        if self.follow_redirects if follows is USE_CLIENT_DEFAULT else follows:
            raise Permanent(
                f"{named(self._spec, request)}: a redirect of an unsafe request is not followed,"
                " because the first answer may mean that it was executed: handle the response, or"
                " request the other URL"
            )
        if any(self.event_hooks.values()):
            raise Permanent(
                f"{named(self._spec, request)}: event hooks are for safe requests only, because an"
                " error in a hook would hide that the request was executed"
            )

    def _require_ours(self, given: Url, request: httpx.Request) -> None:
        """Rejects a URL that would send the credentials to another host."""
        url = httpx.URL(given)
        elsewhere = origin(request.url) != origin(self.base_url)
        if elsewhere or url.userinfo or (url.host and not url.scheme):
            ours = f"{self.base_url.scheme}://{self.base_url.netloc.decode()}"
            raise Permanent(
                f"{self._spec.name}: the URL is not of {ours}: pass a path, or configure another"
                " destination"
            )
        if _climbs(str(given)):
            raise Permanent(
                f'{self._spec.name}: a path segment "." or ".." may lead to any resource: check the'
                " values that the handler inserts"
            )


def _climbs(url: str) -> bool:
    """Returns whether a server may resolve a "." or ".." in the URL's path."""
    path = _PATH_END.split(url, maxsplit=1)[0]
    # A proxy may decode the path, and the server behind it once more.
    for _ in range(_DECODINGS):
        path = unquote(path)
    segments = _SEPARATOR.split(path)
    dots = {_SEGMENT_END.split(segment, maxsplit=1)[0] for segment in segments}
    # A path that still changes hides something.
    return not dots.isdisjoint({".", ".."}) or unquote(path) != path
