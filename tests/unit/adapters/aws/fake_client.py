"""A client that answers as it is told, for what no backend can be made to answer."""

from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError


def refusal(code: str, *, status: int = 400, message: str = "no", **more: Any) -> ClientError:
    """Returns the error that botocore raises for an error answer."""
    answer: Any = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": status},
        **more,
    }
    return ClientError(answer, "Operation")


class FakeClient:
    """Answers the calls of any method one after the other, raising what is an exception.

    `calls` holds (method, parameters) of each.
    """

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def call(**parameters: Any) -> Any:
            self.calls.append((method, parameters))
            answer = self._answers.pop(0)
            if isinstance(answer, BaseException):
                raise answer
            return answer

        return call
