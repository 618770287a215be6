"""The errors of operations: a fixed set of kinds, all of them `InboxError`.

    WrongArgument   an argument names nothing that exists, or its value is refused
    NotFound        the event, the run or the stack does not exist
    Refused         the state of the inbox does not allow the operation
    EndedEarly      the operation ended early: what it did stays, and the rest can be done again
    Unread          AWS refused or failed a call that reads an account (`adapters.aws.reader`)
    AccessDenied    AWS refused the call: a right is missing (`domain.errors`)
    Unavailable     AWS did not answer, throttled, or failed (`domain.errors`)

A text is one line that names the remedy.
"""

from webhook_inbox.domain.errors import InboxError


class OperationError(InboxError):
    """The operation was not performed, or ended early."""


class WrongArgument(OperationError):
    """An argument names nothing that exists, or its value is refused."""


class NotFound(OperationError):
    """The subject of the operation does not exist."""


class Refused(OperationError):
    """The state of the inbox does not allow the operation."""


class EndedEarly(OperationError):
    """The operation ended early; what it did stays, and the rest can be done again."""
