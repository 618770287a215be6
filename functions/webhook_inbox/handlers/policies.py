"""Policies: functions of event and context that run before a handler.

A policy returns None to allow the run, `Deny(reason)` to skip it, or `Hold(reason)` for approval.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from inspect import isawaitable
from typing import Any, Final

from webhook_inbox.domain.errors import Permanent
from webhook_inbox.domain.internal_errors import ApprovalRequired, SkippedBecause
from webhook_inbox.domain.model import SkipReason

SUBJECT: Final = "policy"


@dataclass(frozen=True, slots=True)
class Deny:
    """Skips the run and records the reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Hold:
    """Holds the run until a person approves or denies; `shows` is displayed with the reason."""

    reason: str
    shows: str = ""


Verdict = Deny | Hold | None
Policy = Callable[[Any, Any], Verdict]


def enforce(verdict: Any, approvals: Mapping[str, Mapping[str, Any]]) -> None:
    """Applies a policy's verdict; a granted approval remains valid.

    Args:
        verdict: the policy's return value.
        approvals: the run's approvals by subject.

    Raises:
        Skipped: the verdict is `Deny`.
        Held: the verdict is `Hold`, and it is not approved.
        Permanent: the verdict has another type.
    """
    match verdict:
        case None:
            return
        case Deny(reason):
            raise SkippedBecause(SkipReason.DENIED, f"denied: {reason}")
        case Hold(reason, shows):
            require_approval(SUBJECT, reason, shows=shows, approvals=approvals)
        case _:
            raise Permanent(
                f"the policy returned {type(verdict).__name__}: return None, Deny(…) or Hold(…)"
            )


def require_approval(
    subject: str, reason: str, *, shows: str, approvals: Mapping[str, Mapping[str, Any]]
) -> None:
    """Holds a run unless this reason and text are approved; raises Held if they are not."""
    seen = _seen(reason, shows)
    if not _approved(subject, seen, approvals):
        raise ApprovalRequired(reason, subject=subject, shows=shows, fingerprint=seen)


def _seen(reason: str, shows: str) -> str:
    return sha256(f"{reason}\0{shows}".encode(errors="replace")).hexdigest()[:32]


def _approved(subject: str, seen: str, approvals: Mapping[str, Mapping[str, Any]]) -> bool:
    entry = approvals.get(subject, {})
    return seen == entry.get("fingerprint") or seen in entry.get("before", ())


def require_agent(*names: str) -> Policy:
    """Returns a policy that denies events of all but these agents; see `event.agent`."""

    def policy(event: Any, _: Any) -> Verdict:
        if event.agent in names:
            return None
        return Deny(f"agent {event.agent or '(none)'!r} is not one of {', '.join(names)}")

    return policy


def all_of(*policies: Policy) -> Policy:
    """Returns a policy that allows a run if all of these do; the first objection is returned.

    An approved `Hold` is no objection: the next policies decide.
    """

    def policy(event: Any, ctx: Any) -> Any:
        for place, each in enumerate(policies):
            verdict: Any = each(event, ctx)
            if isawaitable(verdict):
                return _all_of_later(verdict, all_of(*policies[place + 1 :]), event, ctx)
            if _objects(verdict, ctx):
                return verdict
        return None

    return policy


async def _all_of_later(first: Awaitable[Any], rest: Policy, event: Any, ctx: Any) -> Any:
    verdict = await first
    if _objects(verdict, ctx):
        return verdict
    later: Any = rest(event, ctx)
    return await later if isawaitable(later) else later


def _objects(verdict: Any, ctx: Any) -> bool:
    if isinstance(verdict, Hold):
        seen = _seen(verdict.reason, verdict.shows)
        return not _approved(SUBJECT, seen, getattr(ctx, "approvals", {}))
    return verdict is not None
