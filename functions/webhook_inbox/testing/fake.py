"""A scripted destination."""

import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

import httpx

from webhook_inbox.adapters.memory import ManualClock
from webhook_inbox.domain.manifest import DestinationSpec
from webhook_inbox.testing.worker import WorkerLife


class KitError(AssertionError):
    """The test's request is invalid; the text names the remedy."""


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


@dataclass(frozen=True, slots=True)
class _Step:
    """The response to one request, or the `error` to raise."""

    status: int = 0
    json: Any = None
    headers: Mapping[str, str] | None = None
    error: type[httpx.RequestError] | None = None
    done: bool = False
    slow: bool = False


class Fake(httpx.BaseTransport):
    """An in-memory destination.

    It carries out each request, stores the response under its idempotency key, and answers a
    repetition with it. The methods below script the next requests.

    Args:
        honours_keys: False to carry out repetitions as well.
        settings: settings of the destination that override inbox.toml, like `rate="10/s"` or
            `idempotency=False`.

    Attributes:
        requests: the received requests, in order.
    """

    def __init__(self, *, honours_keys: bool = True, **settings: Any) -> None:
        self.settings = settings
        self.requests: list[Request] = []
        self._honours_keys = honours_keys
        self._steps: deque[_Step] = deque()
        self._lasting: _Step | None = None
        self._function: Callable[[Request], Any] | None = None
        self._known: dict[str, tuple[bytes, httpx.Response]] = {}
        self._spec = DestinationSpec("fake", "https://fake.example")
        self._clock = ManualClock()
        self._life = WorkerLife()

    @property
    def done(self) -> list[Request]:
        """The requests that were carried out and changed something."""
        return [each for each in self.requests if each.done and each.method not in SAFE]

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
        return self._plan(_Step(status, json, headers, done=done), times)

    def stalls(self, *, times: int | None = 1, done: bool = True) -> Self:
        """Times out the next requests, which are carried out unless `done=False`."""
        return self._plan(_Step(error=httpx.ReadTimeout, done=done, slow=True), times)

    def breaks(self, *, times: int | None = 1, done: bool = True) -> Self:
        """Breaks the connection of the next requests, carried out unless `done=False`."""
        return self._plan(_Step(error=httpx.RemoteProtocolError, done=done), times)

    def refuses(self, *, times: int | None = 1) -> Self:
        """Refuses the next connections; no request is received."""
        return self._plan(_Step(error=httpx.ConnectError), times)

    def recovers(self) -> Self:
        """Ends all scripted behaviour."""
        self._lasting = None
        self._steps.clear()
        return self

    def handles(self, function: Callable[[Request], Any]) -> Self:
        """Answers with `function(request)`: JSON, (status, JSON), or an httpx.Response."""
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
        step = self._steps.popleft() if self._steps else self._lasting
        body = request.read()
        if step is not None and step.error is httpx.ConnectError:
            raise httpx.ConnectError("connection refused", request=request)
        response = self._carried_out(request, body, step)
        if step is None or step.error is None:
            return response
        if step.slow:
            seconds = request.extensions.get("timeout", {}).get("read") or self._spec.timeout
            self._clock.advance(seconds=seconds)
        raise step.error("no answer", request=request)

    def _carried_out(
        self, request: httpx.Request, body: bytes, step: _Step | None
    ) -> httpx.Response:
        key = self._key_of(request, body)
        known = self._known.get(key) if key and self._honours_keys else None
        done = known is None and (step is None or step.done)
        path = request.url.raw_path.decode()
        seen = Request(request.method, path, dict(request.headers), body, key, done)
        self.requests.append(seen)
        if step is not None and not step.done:
            return httpx.Response(step.status or 200, json=step.json, headers=step.headers)
        if known is not None:
            return _repeated(known, body)
        # A repetition is answered with the success that the scripted error hid.
        hidden = step is not None and step.status >= 400
        response = self._answer(seen, None if hidden else step)
        if key and response.is_success:
            self._known[key] = body, response
        return self._answer(seen, step) if hidden else response

    def _answer(self, request: Request, step: _Step | None) -> httpx.Response:
        if step is not None and step.status:
            return httpx.Response(step.status, json=step.json, headers=step.headers)
        if self._function is None:
            if request.method in SAFE:
                return httpx.Response(200, json={})
            return httpx.Response(201, json={"id": f"{self._spec.name}-{len(self.done)}"})
        given = self._function(request)
        if isinstance(given, httpx.Response):
            return given
        status, content = given if isinstance(given, tuple) else (200, given)
        return httpx.Response(status, json=content)

    def _key_of(self, request: httpx.Request, body: bytes) -> str:
        if self._spec.key_header:
            return str(request.headers.get(self._spec.key_header, ""))
        if not self._spec.key_field or not body:
            return ""
        return str(json.loads(body).get(self._spec.key_field, ""))

    def _plan(self, step: _Step, times: int | None) -> Self:
        if times is None:
            self._lasting = step
        elif times < 1:
            raise KitError(f"times={times}: give 1 or more, or None until recovers()")
        else:
            self._steps.extend([step] * times)
        return self


def _repeated(known: tuple[bytes, httpx.Response], body: bytes) -> httpx.Response:
    """Returns the response for a known key, as Stripe gives it."""
    before, response = known
    if before != body:
        return httpx.Response(422, json={"error": "this key was used with another request"})
    headers = {**response.headers, "idempotent-replayed": "true"}
    return httpx.Response(response.status_code, headers=headers, content=response.content)
