"""A scripted destination."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import httpx

from webhook_inbox.adapters.memory import ManualClock
from webhook_inbox.domain.manifest import DestinationSpec
from webhook_inbox.testing.errors import KitError, hidden, user_line
from webhook_inbox.testing.script import Known, Script, ScriptedResponse
from webhook_inbox.testing.worker import WorkerLife

__tracebackhide__ = hidden

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


@dataclass(frozen=True, slots=True)
class Request:
    """A request that a fake received.

    Attributes:
        method: the HTTP method.
        path: the path with its query.
        headers: by lower-case name.
        body: the bytes.
        key: the idempotency key, or "".
        done: False if it was not carried out, such as a repetition under a known key.
    """

    method: str
    path: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes
    key: str
    done: bool

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Fake(httpx.BaseTransport):
    """An in-memory destination.

    A request gets the first of these that applies; a scripted response is used once:

    1. the next scripted response, if it is a failure: `stalls`, `breaks`, `refuses`, or `answers`
       with 400 or above;
    2. if its key is known, the recorded response: a repetition is not carried out again;
    3. the next scripted response, if it is an answer below 400;
    4. the answer of the function that was given to `handles`;
    5. with `strict`, a KitError in the test; else 201 with a new id, or 200 for GET.

    A key is known once a request with it was carried out successfully. If a failure hid the
    response (`stalls`), the first repetition gets it from 3 to 5 and then keeps it. Another body
    under a known key gets a 422, as from Stripe.

    Args:
        honours_keys: False to know no key, and to carry out repetitions as well.
        strict: True to refuse requests that neither a scripted response nor `handles` expects.
        settings: settings of the destination that override inbox.toml, like `rate="10/s"` or
            `idempotency=False`.

    Attributes:
        requests: the received requests, in order.
    """

    def __init__(self, *, honours_keys: bool = True, strict: bool = False, **settings: Any) -> None:
        self.settings = settings
        self.requests: list[Request] = []
        self._honours_keys = honours_keys
        self._strict = strict
        self._script = Script()
        self._function: Callable[[Request], Any] | None = None
        self._known: dict[str, Known] = {}
        self._spec = DestinationSpec("fake", "https://fake.example")
        self._clock = ManualClock()
        self._life = WorkerLife()

    @property
    def done(self) -> list[Request]:
        """The requests that were carried out and changed something."""
        return [each for each in self.requests if each.done and each.method not in SAFE]

    @property
    def unused(self) -> list[str]:
        """The scripted responses that no request has used, each with the test's line."""
        return self._script.unused()

    # -- scripting

    def answers(
        self,
        status: int,
        json: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        times: int | None = 1,
        done: bool | None = None,
    ) -> Self:
        """Answers the next requests like this.

        Args:
            status: the HTTP status.
            json: the body.
            headers: such as Retry-After.
            times: how many requests; None until `recovers`.
            done: whether they are carried out; by default if the status is below 400.
        """
        done = status < 400 if done is None else done
        text = f"answers({status})"
        return self._plan(
            ScriptedResponse(text, status=status, json=json, headers=headers, done=done), times
        )

    def stalls(self, *, times: int | None = 1, done: bool = True) -> Self:
        """Times out the next requests, which are carried out unless `done=False`."""
        return self._plan(
            ScriptedResponse("stalls()", error=httpx.ReadTimeout, done=done, slow=True), times
        )

    def breaks(self, *, times: int | None = 1, done: bool = True) -> Self:
        """Breaks the connection of the next requests, carried out unless `done=False`."""
        return self._plan(
            ScriptedResponse("breaks()", error=httpx.RemoteProtocolError, done=done), times
        )

    def refuses(self, *, times: int | None = 1) -> Self:
        """Refuses the next connections; no request is received."""
        return self._plan(ScriptedResponse("refuses()", error=httpx.ConnectError), times)

    def recovers(self) -> Self:
        """Ends all scripted behaviour."""
        self._script.clear()
        return self

    def handles(self, function: Callable[[Request], Any]) -> Self:
        """Answers with `function(request)`: JSON, (status, JSON), or an httpx.Response.

        A request that it answers with 400 or above is not carried out.
        """
        self._function = function
        return self

    def forgets_keys(self) -> Self:
        """Forgets the idempotency keys, as a destination does after the keys' lifetime."""
        self._known.clear()
        return self

    def bind(self, spec: DestinationSpec, clock: ManualClock, life: WorkerLife) -> None:
        """Attaches the fake to an inbox."""
        self._spec, self._clock, self._life = spec, clock, life

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """See `httpx.BaseTransport`."""
        self._life.check()
        failure, body = self._script.failure(), request.read()
        if failure is not None and failure.error is httpx.ConnectError:
            raise httpx.ConnectError("connection refused", request=request)
        key = self._key_of(request, body)
        known = self._known.get(key) if self._honours_keys else None
        open_ = known is None or (known.lost and known.body == body)
        answer = self._script.answer() if failure is None and open_ else None
        decisive = failure or answer
        done = known is None and (decisive is None or decisive.done)
        seen = self._received(request, body, key, done=done)
        if failure is None:
            return self._answer(seen, known, answer)
        if done:
            self._keep(seen, self._usual(seen), lost=True)
        return self._fail(failure, request)

    def _answer(
        self, seen: Request, known: Known | None, answer: ScriptedResponse | None
    ) -> httpx.Response:
        """Returns the response of a request that no failure prevents."""
        if known is not None and known.body != seen.body:
            return httpx.Response(422, json={"error": "this key was used with another request"})
        if known is None or known.lost:
            self._expect(seen, answer)
        if known is None:
            response = self._usual(seen) if answer is None else answer.response()
            if seen.done:
                self._keep(seen, response)
            return response
        if answer is not None:
            known.response = answer.response()
        known.lost = False
        headers = {**known.response.headers, "idempotent-replayed": "true"}
        # The stream, not the content: the body may be encoded.
        stream = known.response.stream
        repeated = httpx.Response(known.response.status_code, headers=headers, stream=stream)
        repeated.read()
        return repeated

    def _fail(self, failure: ScriptedResponse, request: httpx.Request) -> httpx.Response:
        if failure.error is None:
            return failure.response()
        if failure.slow:
            seconds = request.extensions.get("timeout", {}).get("read") or self._spec.timeout
            self._clock.advance(seconds=seconds)
        raise failure.error("no answer", request=request)

    def _usual(self, request: Request) -> httpx.Response:
        """Returns the response to a request without a scripted one."""
        if self._function is None:
            if request.method in SAFE:
                return httpx.Response(200, json={})
            return httpx.Response(201, json={"id": f"{self._spec.name}-{len(self.done)}"})
        response = _response(self._function(request))
        if response.is_error:
            self._refuse(request)
        return response

    def _refuse(self, request: Request) -> None:
        """Records that a request was not carried out after all."""
        self.requests[:] = [
            replace(each, done=False) if each is request else each for each in self.requests
        ]

    def _expect(self, request: Request, answer: ScriptedResponse | None) -> None:
        """Ends the test with a KitError if a strict fake has no answer to a request."""
        if self._strict and answer is None and self._function is None:
            self._life.fail(
                KitError(
                    f"{user_line()}: {self._spec.name} expects no {request.method} {request.path}:"
                    " add answers(…) or handles(…) to its Fake, or leave out strict=True"
                )
            )

    def _received(self, request: httpx.Request, body: bytes, key: str, *, done: bool) -> Request:
        path = request.url.raw_path.decode()
        seen = Request(request.method, path, dict(request.headers), body, key, done)
        self.requests.append(seen)
        return seen

    def _keep(self, seen: Request, response: httpx.Response, *, lost: bool = False) -> None:
        if seen.key and response.is_success:
            self._known[seen.key] = Known(seen.body, response, lost)

    def _key_of(self, request: httpx.Request, body: bytes) -> str:
        if self._spec.key_header:
            return str(request.headers.get(self._spec.key_header, ""))
        if not self._spec.key_field or not body:
            return ""
        try:
            content = json.loads(body)
        except ValueError:
            return ""
        return str(content.get(self._spec.key_field) or "") if isinstance(content, dict) else ""

    def _plan(self, planned: ScriptedResponse, times: int | None) -> Self:
        self._script.add(planned, times)
        return self


def _response(given: Any) -> httpx.Response:
    """Returns the response that the function of `handles` describes."""
    if isinstance(given, httpx.Response):
        return given
    status, content = given if isinstance(given, tuple) else (200, given)
    return httpx.Response(status, json=content)
