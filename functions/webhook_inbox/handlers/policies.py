"""Policies: a function that decides before a handler whether it may act.

It returns None to allow, `Deny(why)` to skip the run, `Hold(why)` to ask a person.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from inspect import isawaitable
from typing import Any, Final

from webhook_inbox.domain.errors import Held, Permanent, Skipped

SUBJECT: Final = "policy"


@dataclass(frozen=True, slots=True)
class Deny:
    """The run is skipped, with the reason recorded."""

    reason: str


@dataclass(frozen=True, slots=True)
class Hold:
    """The run waits for a person, who is told the reason and shown what `shows` says."""

    reason: str
    shows: str = ""


Verdict = Deny | Hold | None
Policy = Callable[[Any, Any], Verdict]


def enforce(verdict: Any, approvals: Mapping[str, Mapping[str, Any]]) -> None:
    """Does what a policy has decided; what a person has approved stays approved.

    Args:
        verdict: what the policy returned.
        approvals: what a person has decided of this run, by subject.

    Raises:
        Skipped: it is denied.
        Held: a person has to decide.
        Permanent: the policy returned something else.
    """
    match verdict:
        case None:
            return
        case Deny(reason):
            raise Skipped(f"denied: {reason}")
        case Hold(reason, shows):
            require_approval(SUBJECT, reason, shows=shows, approvals=approvals)
        case _:
            raise Permanent(
                f"the policy returned {type(verdict).__name__}: return None, Deny(…) or Hold(…)"
            )


def require_approval(
    subject: str, reason: str, *, shows: str, approvals: Mapping[str, Mapping[str, Any]]
) -> None:
    """Holds a run, unless a person has approved of just this.

    Raises:
        Held: a person has to decide.
    """
    seen = _seen(reason, shows)
    if not _approved(subject, seen, approvals):
        raise Held(reason, subject=subject, shows=shows, fingerprint=seen)


def _seen(reason: str, shows: str) -> str:
    return sha256(f"{reason}\0{shows}".encode(errors="replace")).hexdigest()[:32]


def _approved(subject: str, seen: str, approvals: Mapping[str, Mapping[str, Any]]) -> bool:
    word = approvals.get(subject, {})
    return seen == word.get("fingerprint") or seen in word.get("before", ())


def require_agent(*names: str) -> Policy:
    """Returns the policy that only these agents may cause a run; see `event.agent`."""

    def policy(event: Any, _: Any) -> Verdict:
        if event.agent in names:
            return None
        return Deny(f"agent {event.agent or '(none)'!r} is not one of {', '.join(names)}")

    return policy


def all_of(*policies: Policy) -> Policy:
    """Returns the policy that allows what all of these allow; the first objection counts.

    What a person has approved of is none any more: the policies behind it are asked then.
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
