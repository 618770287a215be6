"""The errors of operations: a fixed set of kinds, all of them `InboxError`.

    WrongArgument   an argument names nothing that exists, or its value is refused
    NotFound        the event, the run or the stack does not exist
    Refused         the state of the inbox does not allow the operation
    EndedEarly      the operation ended early: what it did stays, and the rest can be done again
    Unread          AWS refused or failed a call that reads an account (`adapters.aws.reader`)
    AccessDenied    AWS refused the call: a right is missing (`domain.errors`)
    Unavailable     AWS did not answer, throttled, or failed (`domain.errors`)
    Interrupted     the same, in the middle of an operation on many subjects

A text is one line that names the remedy.
"""

from webhook_inbox.domain.errors import InboxError, Unavailable


class OperationError(InboxError):
    """The operation was not performed, or ended early."""


class WrongArgument(OperationError):
    """An argument names nothing that exists, or its value is refused."""


class NotFound(OperationError):
    """The subject of the operation does not exist."""


class Refused(OperationError):
    """The state of the inbox does not allow the operation."""


class Interrupted(Unavailable):
    """AWS failed in the middle of an operation: what is done stays done.

    Remedy: the same call continues with the rest.
    """

    def __init__(self, error: Unavailable, done: str) -> None:
        text = f"{error}; {done} so far, and the same command continues with the rest"
        InboxError.__init__(self, text)
        self.service = error.service
        self.operation = error.operation


class EndedEarly(OperationError):
    """The operation ended early; what it did stays, and the rest can be done again."""
