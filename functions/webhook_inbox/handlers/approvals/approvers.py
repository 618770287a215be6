"""Determines who may approve an effect with `approve=Approval(by="GROUP")`.

    by a link          the person whom the link names, if asked now (`people_of`)
    webhookctl hold    a caller of AWS with the name of such a person (`person_of`)

The people asked are those of `[approvers.GROUP]` in inbox.toml, after an escalation also those of
its `escalate_to`. Any caller of AWS may deny. Where no group is named (`approve=True`, `Hold`, an
effect in doubt), IAM decides who may approve.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from webhook_inbox.domain.audit import Actor
from webhook_inbox.domain.manifest import ApproversSpec
from webhook_inbox.handlers.approvals.request_row import RequestRow


def escalation_at(request: RequestRow, group: ApproversSpec) -> datetime | None:
    """Returns when a request is escalated, None if it never is or was before."""
    if request.escalated or not group.escalate_to:
        return None
    return request.opened_at + timedelta(seconds=group.escalate_after)


def people_of(request: RequestRow, groups: Mapping[str, ApproversSpec]) -> dict[str, str]:
    """Returns how each person who is asked is reached, by name."""
    group = groups.get(request.group)
    if group is None:
        return {}
    next_one = groups.get(group.escalate_to) if request.escalated else None
    return {**(next_one.people if next_one else {}), **group.people}


def person_of(by: Actor, people: Mapping[str, str]) -> str:
    """Returns the name under which a caller of AWS decides; a person who is asked counts once.

    A caller is such a person if the last part of the ARN, before any "@", is the person's name. A
    federated session is none: every IAM user may choose its name.
    """
    kind, _, last = by.name.rpartition("/")
    name = last.partition("@")[0].lower()
    return name if name in people and not kind.endswith(":federated-user") else by.name
