"""An effect of this attempt, and the call that is made under its key."""

from dataclasses import dataclass

from webhook_inbox.domain.errors import Deferred, Held, Permanent, Skipped, Transient
from webhook_inbox.handlers.effects.journal import Entry
from webhook_inbox.handlers.effects.plan import Plan


@dataclass(slots=True)
class StartedEffect:
    """An effect in this attempt.

    Attributes:
        plan: the effect.
        result: the stored result, once known.
        doubt: the row of an earlier start whose outcome is unknown.
        started: whether this attempt has started it.
        doubted: whether an earlier start or call is in doubt, so that no error can end it.
        call: the call made under its key, or "".
        acted: whether that call succeeded.
    """

    plan: Plan
    result: bytes | None = None
    doubt: Entry | None = None
    started: bool = False
    doubted: bool = False
    call: str = ""
    acted: bool = False

    @property
    def key(self) -> str:
        """The key under which its call is made."""
        return self.plan.key

    def begin_call(self, call: str) -> None:
        """Notes a call under the effect's key.

        Raises:
            Permanent: another call used the key; the downstream could not tell them apart.
        """
        if self.call and self.call != call:
            raise Permanent(
                f"effect {self.plan.name!r} makes a second call under its key: give each call an"
                " effect of its own, or effect=None where it changes nothing"
            )
        self.call = call

    def end_call(self) -> None:
        """Notes that the call succeeded, so a later error does not mean that nothing was done."""
        self.acted = True

    def fail_call(self, error: Exception, *, acts: bool) -> None:
        """Notes that a call failed: if something may have been done, no later error denies it.

        Args:
            error: the error, which `fn` may catch or replace.
            acts: whether the call was made under the effect's key.
        """
        # A rejection says nothing about an earlier call of this attempt that succeeded.
        if self.acted or (acts and not _denies(error, acted=False)):
            self.doubted = True

    def is_denied_by(self, error: Exception) -> bool:
        """Returns whether an error shows that no start of it did anything."""
        return not self.doubted and _denies(error, acted=self.acted)


def _denies(error: Exception, *, acted: bool) -> bool:
    """Returns whether an error shows that this start did nothing; `acted`: a call succeeded."""
    if isinstance(error, Permanent):
        return not error.doubtful and (error.refused or not acted)
    if isinstance(error, Transient):
        return error.refused
    return isinstance(error, Deferred | Skipped | Held) and not acted
