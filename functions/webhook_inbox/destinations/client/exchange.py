"""One call to a destination and its answer.

dressed ──► gate ──► sent ──► judged ──► gate told
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import httpx

from webhook_inbox.destinations.client.attempt import OutboundCall
from webhook_inbox.destinations.client.transport import AUTHORIZATION, in_time, trouble_of
from webhook_inbox.destinations.credentials import DestinationCredentials
from webhook_inbox.destinations.responses import Meaning, Trouble, judge, unanswered
from webhook_inbox.domain.errors import Permanent, Transient
from webhook_inbox.domain.manifest import DestinationSpec
from webhook_inbox.domain.ports import Clock

# Left of an attempt for settling what a call began.
MARGIN: Final = timedelta(seconds=1)
# With less than this a call is not begun: it would hardly be answered, and be in doubt.
SHORTEST: Final = timedelta(seconds=1)
# What is read of an answer that is no success, and what of that is told.
EXCERPT_BYTES: Final = 4096
EXCERPT: Final = 200
TEXT: Final = 500
# What went wrong before anything was sent can be told as the system tells it.
_CONNECTING: Final = frozenset({Trouble.DNS, Trouble.UNREACHED, Trouble.TLS})

Send = Callable[[httpx.Request], httpx.Response]


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer and its body, which is None where it is larger than what was asked for."""

    response: httpx.Response
    body: bytes | None


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
    ) -> Answered:
        """Makes a call and returns its answer, which is a success.

        Args:
            request: with all that it carries but its credentials.
            send: sends it; returns an answer whose body is not read.
            keyed: whether it carries an idempotency key.
            limit: how many bytes of the answer are read at most; None leaves it unread.

        Raises:
            Permanent: no repetition changes the answer, or the request cannot be sent.
            Transient: it may be answered otherwise later.
            Deferred: the destination is down or at its limit.
        """
        spec, call = self._spec, self._call
        own = request.extensions
        authorization = self._credentials.authorization()
        call.gate.enter(spec, call.reservations, until=call.deadline - MARGIN - SHORTEST)
        end = self._end(request)
        request.extensions = {
            **own,
            **in_time(own["timeout"], seconds=self._left(end), left=lambda: self._left(end)),
            AUTHORIZATION: authorization,
        }
        try:
            return self._answered(request, send(request), keyed=keyed, limit=limit, end=end)
        except httpx.RequestError as error:
            raise self._failure(request, error) from None
        finally:
            request.extensions = own

    def _answered(
        self,
        request: httpx.Request,
        response: httpx.Response,
        *,
        keyed: bool,
        limit: int | None,
        end: datetime,
    ) -> Answered:
        verdict = judge(
            response.status_code,
            response.headers,
            spec=self._spec,
            keyed=keyed,
            now=self._clock.now(),
        )
        if verdict.meaning is not Meaning.OK:
            self._call.gate.report(self._spec, verdict.answer)
            raise verdict.error(self._told(request, response, end))
        body = None if limit is None else self._read(response, limit, end)
        self._call.gate.report(self._spec, verdict.answer)
        return Answered(response, body)

    def _read(self, response: httpx.Response, limit: int, end: datetime) -> bytes | None:
        body = bytearray()
        try:
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > limit:
                    return None
                if self._clock.now() >= end:
                    raise httpx.ReadTimeout("the body took too long")
        finally:
            response.close()
        return bytes(body)

    # -- its time

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

    # -- what is said of it

    def _failure(self, request: httpx.Request, error: httpx.RequestError) -> Exception:
        trouble = trouble_of(error)
        if trouble is None:
            # Its text may show a header's value, so its class has to do.
            why = type(error).__name__
            return Permanent(f"{self._named(request)} cannot be sent: {why}", refused=True)
        verdict = unanswered(trouble)
        self._call.gate.report(self._spec, verdict.answer)
        why = f"{trouble} ({error})" if trouble in _CONNECTING else str(trouble)
        return verdict.error(f"{self._named(request)}: {why}"[:TEXT])

    def _told(self, request: httpx.Request, response: httpx.Response, end: datetime) -> str:
        said = f"{self._named(request)} answered {response.status_code}"
        excerpt = self._excerpt(response, end)
        return f"{said}: {excerpt}" if excerpt else said

    def _excerpt(self, response: httpx.Response, end: datetime) -> str:
        read, whole = bytearray(), False
        try:
            for chunk in response.iter_bytes():
                read += chunk
                if len(read) > EXCERPT_BYTES or self._clock.now() >= end:
                    break
            else:
                whole = True
        except httpx.RequestError:
            pass  # What is there will do.
        finally:
            response.close()
        text = bytes(read[:EXCERPT_BYTES]).decode(errors="replace")
        shown = self._credentials.redact(text, cut=not whole)
        # Nothing in it may pass for a line of ours, or move a terminal's cursor.
        plain = "".join(letter if letter.isprintable() else " " for letter in shown)
        return " ".join(plain.split())[:EXCERPT]

    def _named(self, request: httpx.Request) -> str:
        return self._credentials.redact(named(self._spec, request))


def named(spec: DestinationSpec, request: httpx.Request) -> str:
    """Returns a call as errors name it."""
    path = request.url.raw_path.partition(b"?")[0].decode()
    return f"{spec.name}: {request.method} {path}"
