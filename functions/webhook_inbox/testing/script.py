"""The rule by which a fake answers; see `Fake`."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from webhook_inbox.testing.errors import KitError, hidden, user_line

__tracebackhide__ = hidden


@dataclass(frozen=True, slots=True)
class ScriptedResponse:
    """A scripted response: an answer, or a failure.

    Attributes:
        text: how the test wrote it.
        error: raised instead of an answer.
        done: whether the request is carried out.
        slow: whether the failure takes as long as the call may.
        line: the test's line.
    """

    text: str
    status: int = 0
    json: Any = None
    headers: Mapping[str, str] | None = None
    error: type[httpx.RequestError] | None = None
    done: bool = False
    slow: bool = False
    line: str = field(default_factory=user_line)

    @property
    def fails(self) -> bool:
        """True for a failure, which applies to repetitions as well."""
        return self.error is not None or self.status >= 400

    def response(self) -> httpx.Response:
        """Returns the answer."""
        return httpx.Response(self.status, json=self.json, headers=self.headers)


@dataclass(slots=True)
class Known:
    """The request that was carried out under a key, and its response.

    Attributes:
        lost: whether a failure hid the response, so that the script may still choose it.
    """

    body: bytes
    response: httpx.Response
    lost: bool = False


class Script:
    """The scripted responses of a fake, in order; one is removed when it is used."""

    def __init__(self) -> None:
        self._responses: deque[ScriptedResponse] = deque()
        self._lasting: ScriptedResponse | None = None

    def add(self, response: ScriptedResponse, times: int | None) -> None:
        """Adds a response for the next `times` requests; None: for all until `clear`."""
        if times is None:
            self._lasting = response
        elif times < 1:
            raise KitError(f"times={times}: give 1 or more, or None until recovers()")
        else:
            self._responses.extend([response] * times)

    def clear(self) -> None:
        """Removes every response."""
        self._lasting = None
        self._responses.clear()

    def failure(self) -> ScriptedResponse | None:
        """Removes and returns the next response if it is a failure."""
        return self._take(fails=True)

    def answer(self) -> ScriptedResponse | None:
        """Removes and returns the next response if it is an answer."""
        return self._take(fails=False)

    def unused(self) -> list[str]:
        """Returns the lines and texts of the responses that no request has used."""
        return list(dict.fromkeys(f"{each.line}: {each.text}" for each in self._responses))

    def _take(self, *, fails: bool) -> ScriptedResponse | None:
        response = self._responses[0] if self._responses else self._lasting
        if response is None or response.fails is not fails:
            return None
        if self._responses:
            self._responses.popleft()
        return response
