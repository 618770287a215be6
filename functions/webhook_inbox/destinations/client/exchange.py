"""One call to a destination: gate ──► sent ──► classified ──► reported to the gate."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import httpx

from webhook_inbox.destinations.circuit import CallOutcome
from webhook_inbox.destinations.client.attempt import OutboundCall
from webhook_inbox.destinations.client.body import ALLOWANCE, Allowance, UnreadableBody, too_large
from webhook_inbox.destinations.client.transport import AUTHORIZATION, failure_of, in_time
from webhook_inbox.destinations.credentials import DestinationCredentials
from webhook_inbox.destinations.responses import (
    ResponseClass,
    classify,
    classify_no_response,
    says_key_used,
)
from webhook_inbox.domain.error_text import shorten
from webhook_inbox.domain.errors import Permanent, Transient
from webhook_inbox.domain.manifest import DestinationSpec
from webhook_inbox.domain.ports import Clock

# Methods that change nothing at a destination need neither journal nor key.
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
# The end of an attempt is reserved for settling it.
MARGIN: Final = timedelta(seconds=1)
# With less time left, a call is not begun: it would time out, and its effect be in doubt.
SHORTEST: Final = timedelta(seconds=1)
# The bytes that are read of an unsuccessful response, and the characters in the error.
EXCERPT_BYTES: Final = 4096
EXCERPT: Final = 200
TEXT: Final = 500

Send = Callable[[httpx.Request], httpx.Response]


@dataclass(frozen=True, slots=True)
class ReadResponse:
    """A response with its body.

    Attributes:
        response: whose body is read already, or left to a handler that reads it as a stream.
        body: None if it was not read.
        unread: why it could not be read, as "exceeds 4 MB"; "" otherwise.
    """

    response: httpx.Response
    body: bytes | None = None
    unread: str = ""


class Exchange:
    """Makes the calls of one attempt to one destination."""

    def __init__(
        self,
        spec: DestinationSpec,
        call: OutboundCall,
        *,
        credentials: DestinationCredentials,
        clock: Clock,
    ) -> None:
        self._spec = spec
        self._call = call
        self._credentials = credentials
        self._clock = clock

    def make(
        self, request: httpx.Request, send: Send, *, keyed: bool, limit: int | None
    ) -> ReadResponse:
        """Makes a call and returns its response, which is a success.

        Args:
            request: complete but for its credentials.
            send: sends it; returns a response with an unread body.
            keyed: whether it has an idempotency key.
            limit: the bytes of the body to read at most; None leaves it to a stream.

        Raises:
            Permanent: retrying will not change the response, or the request cannot be sent.
            Transient: a later attempt may succeed.
            Deferred: the destination is down or at its limit.
        """
        spec, call = self._spec, self._call
        own = request.extensions
        authorization = self._credentials.authorization()
        call.gate.enter(spec, call.reservations, until=call.deadline - MARGIN - SHORTEST)
        end = self._end(request)
        allowance = Allowance(lambda: self._left(end))
        request.extensions = {
            **own,
            **in_time(own["timeout"], seconds=self._left(end), left=lambda: self._left(end)),
            AUTHORIZATION: authorization,
            ALLOWANCE: allowance,
        }
        try:
            answered = self._response(request, send(request), keyed=keyed, limit=limit)
        except httpx.RequestError as error:
            raise self._failure(request, error) from None
        finally:
            request.extensions = own
        if limit is None:
            allowance.lift()
        return answered

    def _response(
        self,
        request: httpx.Request,
        response: httpx.Response,
        *,
        keyed: bool,
        limit: int | None,
    ) -> ReadResponse:
        verdict = classify(
            response.status_code,
            response.headers,
            spec=self._spec,
            keyed=keyed,
            now=self._clock.now(),
            safe=request.method in SAFE,
        )
        if verdict.meaning is not ResponseClass.OK:
            wait = self._call.gate.report(self._spec, verdict.answer)
            said = self._said(response)
            text = f"{self._named(request)} answered {response.status_code}"
            raise verdict.error(
                f"{text}: {shorten(said, EXCERPT)}" if said else text,
                key_used=keyed and says_key_used(said),
                wait=wait,
            )
        answered = ReadResponse(response) if limit is None else _read(response, limit)
        # A destination that answers works, whether its body can be read or not.
        self._call.gate.report(self._spec, verdict.answer)
        return answered

    # -- time limits

    def _end(self, request: httpx.Request) -> datetime:
        now = self._clock.now()
        left = self._call.deadline - MARGIN - now
        if left < SHORTEST:
            seconds = max((self._call.deadline - now).total_seconds(), 0.0)
            raise Transient(
                f"{self._named(request)} was not begun: {seconds:.1f} s are left of the attempt",
                refused=True,
            )
        limits = request.extensions["timeout"].values()
        asked = max((limit for limit in limits if limit), default=self._spec.timeout)
        return now + min(left, timedelta(seconds=asked))

    def _left(self, end: datetime) -> float:
        return (end - self._clock.now()).total_seconds()

    # -- errors

    def _failure(self, request: httpx.Request, error: httpx.RequestError) -> Exception:
        if isinstance(error, UnreadableBody):
            self._call.gate.report(self._spec, CallOutcome.ok())
            return Permanent(
                f"{self._named(request)} was redirected, but a body on the way {error}",
                doubtful=request.method not in SAFE,
            )
        failure = failure_of(error)
        if failure is None:
            # The text of the error may show the value of a header, so only its class is named.
            why = type(error).__name__
            return Permanent(f"{self._named(request)} cannot be sent: {why}", refused=True)
        verdict = classify_no_response(failure)
        wait = self._call.gate.report(self._spec, verdict.answer)
        # Where nothing was sent, the system's error contains no secret, so it is shown.
        why = f"{failure} ({error})" if verdict.refused else str(failure)
        return verdict.error(shorten(f"{self._named(request)}: {why}", TEXT), wait=wait)

    def _said(self, response: httpx.Response) -> str:
        """Returns the beginning of a response's body as one line, without secrets."""
        read, whole = bytearray(), False
        try:
            for chunk in response.iter_bytes():
                read += chunk
                if len(read) > EXCERPT_BYTES:
                    break
            else:
                whole = True
        except httpx.RequestError:
            pass  # A partial body is enough.
        finally:
            response.close()
        text = bytes(read[:EXCERPT_BYTES]).decode(errors="replace")
        shown = self._credentials.redact(text, cut=not whole)
        # A line break could forge a log line, and a control character moves the cursor.
        plain = "".join(letter if letter.isprintable() else " " for letter in shown)
        return " ".join(plain.split())

    def _named(self, request: httpx.Request) -> str:
        return self._credentials.redact(named(self._spec, request))


def _read(response: httpx.Response, limit: int) -> ReadResponse:
    """Returns a response with its body, unless it exceeds the limit or cannot be decoded."""
    body = bytearray()
    try:
        for piece in response.iter_bytes():
            body += piece
            if len(body) > limit:
                raise too_large(limit)
    except UnreadableBody as error:
        return ReadResponse(response, unread=str(error))
    finally:
        response.close()
    return ReadResponse(response, bytes(body))


def named(spec: DestinationSpec, request: httpx.Request) -> str:
    """Returns the name of a call in errors."""
    path = request.url.raw_path.partition(b"?")[0].decode()
    return f"{spec.name}: {request.method} {path}"
