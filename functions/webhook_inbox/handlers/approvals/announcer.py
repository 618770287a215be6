"""Announces requests for approval: one message for each person and round, with the person's link.

A message is sent at least once, outside the journal of the handler's effects. A failure never fails
the run: it stays held, and the next wake tries again. The row has the time of each message, so a
person who has one gets no other.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from webhook_inbox.domain.audit import AuditedAction
from webhook_inbox.domain.error_text import describe, shorten
from webhook_inbox.domain.errors import ConditionFailed, Permanent, Transient, Unavailable
from webhook_inbox.domain.manifest import ApproversSpec
from webhook_inbox.domain.model import RequestState
from webhook_inbox.domain.ports import Ports
from webhook_inbox.domain.secrets import APPROVAL_KEY
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.handlers.approvals.approvers import people_of
from webhook_inbox.handlers.approvals.gate import ApprovalGate, ApprovalPending
from webhook_inbox.handlers.approvals.links import PATH, link_token
from webhook_inbox.handlers.approvals.messages import FORMATS, Announcement, plain_json
from webhook_inbox.handlers.approvals.request_row import RequestRow

# The route of a topic: "sns:" and its ARN.
SNS: Final = "sns"
# The time that must be left in the attempt for one message: a destination's default timeout, and
# its record.
NEEDS: Final = timedelta(seconds=12)
# The wait before the first repetition; it doubles up to the longest.
FIRST_RETRY: Final = timedelta(minutes=1)
LONGEST_RETRY: Final = timedelta(hours=1)
# https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
SUBJECT_LIMIT: Final = 99
REASON_LIMIT: Final = 200


class Calls(Protocol):
    """The part of a handler's context that calls destinations."""

    def http(self, name: str) -> Any:
        """See `Context.http`."""


class Announcer:
    """Announces the requests of held runs.

    Args:
        groups: the groups of inbox.toml.
        ports: its secrets have the key that signs links.
        api_url: the inbox's URL, with which links begin.
    """

    def __init__(
        self,
        groups: Mapping[str, ApproversSpec],
        ports: Ports,
        *,
        api_url: str,
    ) -> None:
        self._groups = groups
        self._api_url = api_url.rstrip("/")
        self._secrets = ports.secrets
        self._clock = ports.clock
        self._topics = ports.topics

    def announce(
        self, pending: ApprovalPending, gate: ApprovalGate, calls: Calls, *, end: datetime
    ) -> None:
        """Sends the messages that are missing; leaves the next wake and the failures in `pending`.

        Never raises: an attempt that only asks must not count as failed.
        """
        for person, route in people_of(pending.request, self._groups).items():
            if person in pending.request.announced or person in pending.request.decisions:
                continue
            if pending.request.state is not RequestState.OPEN:
                return  # A person has decided meanwhile: the run looks again.
            why = self._announce_to(pending, person, route, calls, end)
            why = why or self._note_sent(pending, gate, person)
            if why:
                pending.unannounced = {**pending.unannounced, person: gate.hide(why)}
        if pending.unannounced:
            self._retry_later(pending, gate)

    def _announce_to(
        self, pending: ApprovalPending, person: str, route: str, calls: Calls, end: datetime
    ) -> str:
        """Sends one message; returns why it was not sent, or ""."""
        if end - self._clock.now() < NEEDS:
            return "too little time is left in the attempt"
        try:
            link = self._link(pending.request, person)
            self._send(Announcement(pending.request, person, link), route, calls)
        except Exception as error:  # noqa: BLE001 - whatever it is, the run stays held
            address = route.partition(":")[2]
            text = self._secrets.redact(describe(error)).replace(address, "[address]")
            return shorten(text, REASON_LIMIT)
        return ""

    def _link(self, request: RequestRow, person: str) -> str:
        keys = self._secrets.get(APPROVAL_KEY)
        if not keys or not self._api_url:
            raise Transient(f"secret {APPROVAL_KEY!r} or API_URL is not set: deploy again")
        token = link_token(keys[0], request.address, person, request.until)
        self._secrets.conceal(token)
        return f"{self._api_url}{PATH}{token}"

    def _send(self, message: Announcement, route: str, calls: Calls) -> None:
        name, _, address = route.partition(":")
        if name == SNS:
            subject = message.question.encode("ascii", "replace").decode()[:SUBJECT_LIMIT]
            self._topics.publish(address, " ".join(subject.split()), message.text)
            return
        path, body = FORMATS.get(name.partition("-")[0], plain_json)(message, address)
        key = {"Idempotency-Key": message.key}
        answer = calls.http(name).post(path, json=body, effect=None, headers=key)
        if name.partition("-")[0] == "slack":
            _require_ok(answer)

    def _note_sent(self, pending: ApprovalPending, gate: ApprovalGate, person: str) -> str:
        """Records that a message was sent; returns why that failed, or ""."""
        now = self._clock.now()
        try:
            self._note(
                pending, gate, {"announced": {**pending.request.announced, person: to_ms(now)}}
            )
            gate.note(AuditedAction.ANNOUNCE, pending.request, now, person=person)
        except Unavailable as error:
            return shorten(f"sent, and not recorded: {error}", REASON_LIMIT)
        return ""

    @staticmethod
    def _note(pending: ApprovalPending, gate: ApprovalGate, values: Mapping[str, Any]) -> None:
        """Changes the request, unless it has ended."""
        while pending.request.state is RequestState.OPEN:
            try:
                pending.request = gate.rows.change(pending.request, values, mark=gate.run.lease_id)
            except ConditionFailed as error:
                if error.old is None:
                    raise Unavailable("ledger", "announce", "the request has expired") from error
                pending.request = RequestRow(error.old)
            else:
                return

    def _retry_later(self, pending: ApprovalPending, gate: ApprovalGate) -> None:
        failures = pending.request.failures + 1
        pause = min(LONGEST_RETRY, FIRST_RETRY * 2 ** min(failures - 1, 10))
        pending.wake_at = min(pending.wake_at, self._clock.now() + pause)
        # If this fails, the next repetition is not later than this one.
        with suppress(Unavailable):
            self._note(pending, gate, {"failures": failures})


def _require_ok(answer: Any) -> None:
    """Rejects Slack's errors, which have the status 200."""
    reply = answer.json()
    if not isinstance(reply, dict) or reply.get("ok") is not True:
        error = reply.get("error", "unknown") if isinstance(reply, dict) else "unknown"
        raise Permanent(f"Slack answered {shorten(str(error), REASON_LIMIT)!r}")
