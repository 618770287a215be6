"""The rule by which a fake answers; see `Fake`."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from webhook_inbox.testing.errors import KitError, hidden, user_line

__tracebackhide__ = hidden


@dataclass(frozen=True, slots=True)
class ScriptedResponse:
    """A scripted response: an answer, or a failure.

    Attributes:
        text: how the test wrote it.
        line: the test's line.
        error: raised instead of an answer.
        done: whether the request is carried out.
        slow: whether the failure takes as long as the call may.
    """

    text: str
    line: str
    status: int = 0
    json: Any = None
    headers: Mapping[str, str] | None = None
    error: type[httpx.RequestError] | None = None
    done: bool = False
    slow: bool = False

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
        self._steps: deque[ScriptedResponse] = deque()
        self._lasting: ScriptedResponse | None = None

    def add(self, step: ScriptedResponse, times: int | None) -> None:
        """Adds a step for the next `times` requests; None: for all until `clear`."""
        if times is None:
            self._lasting = step
        elif times < 1:
            raise KitError(f"times={times}: give 1 or more, or None until recovers()")
        else:
            self._steps.extend([step] * times)

    def clear(self) -> None:
        """Removes every step."""
        self._lasting = None
        self._steps.clear()

    def failure(self) -> ScriptedResponse | None:
        """Removes and returns the next step if it is a failure."""
        return self._take(fails=True)

    def answer(self) -> ScriptedResponse | None:
        """Removes and returns the next step if it is an answer."""
        return self._take(fails=False)

    def unused(self) -> list[str]:
        """Returns the lines and texts of the steps that no request has used."""
        return list(dict.fromkeys(f"{step.line}: {step.text}" for step in self._steps))

    def _take(self, *, fails: bool) -> ScriptedResponse | None:
        step = self._steps[0] if self._steps else self._lasting
        if step is None or step.fails is not fails:
            return None
        if self._steps:
            self._steps.popleft()
        return step


def scripted(text: str, **values: Any) -> ScriptedResponse:
    """Returns a response that remembers the test's line."""
    return ScriptedResponse(text, user_line(), **values)
