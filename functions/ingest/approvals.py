"""GET and POST /approvals/{token}: HTTP for approval links. Loaded with the first one.

Mail scanners and chat clients open links, so GET and HEAD never write. Only a POST with a decision
and its confirmation decides, once, as the person whom the link names.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from ingest.approval_page import (
    GONE,
    HEADERS,
    REASON_LIMIT,
    UNKNOWN,
    message_page,
    outcome_note,
    request_page,
    state_note,
)
from ingest.log import JsonLog
from webhook_inbox.adapters.aws.lambda_events import body_of, headers_of
from webhook_inbox.domain.errors import Rejected, Unavailable
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.model import RequestState
from webhook_inbox.domain.ports import Ports
from webhook_inbox.domain.secrets import APPROVAL_KEY
from webhook_inbox.handlers.approvals.links import PATH, ApprovalLink, read_link
from webhook_inbox.handlers.approvals.request_row import DecisionOutcome, Word
from webhook_inbox.handlers.approvals.requests import ApprovalRequests, RequestView

BODY_LIMIT: Final = 16 * 1024
FORM: Final = "application/x-www-form-urlencoded"
FIELDS: Final = 8
# Seconds; a throttled table recovers in seconds.
RETRY_AFTER: Final = "5"
STATUSES: Final = {
    DecisionOutcome.RECORDED: 200,
    DecisionOutcome.REPEATED: 200,
    DecisionOutcome.CONFLICT: 409,
    DecisionOutcome.EXPIRED: 410,
    DecisionOutcome.VOID: 410,
    DecisionOutcome.CLOSED: 410,
    DecisionOutcome.UNKNOWN: 410,
}
_INCOMPLETE: Final = (
    "Nothing was recorded: choose approve or deny, and check the box below the reason. The reason"
    f" may have {REASON_LIMIT} characters."
)
_REFUSALS: Final = {
    403: "Nothing was recorded: the form was sent from another site. Open your link directly.",
    405: "An approval link is opened with GET, and decided with POST.",
    413: "Nothing was recorded: the form is too large. Open your link again.",
    415: "Nothing was recorded: only the form of this page can decide. Open your link again.",
}
_UNAVAILABLE: Final = (
    "The inbox cannot read or store this request right now. Open your link again in a minute: it"
    " shows whether your decision was recorded, and a repeated decision counts once."
)


class Approving:
    """Answers the requests of approval links."""

    def __init__(
        self,
        manifest: Manifest,
        ports: Ports,
        *,
        logger: JsonLog,
    ) -> None:
        self._requests = ApprovalRequests(manifest, ports)
        self._stage = manifest.stage
        self._secrets = ports.secrets
        self._clock = ports.clock
        self._logger = logger

    def answer(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the HTTP API response (payload format 2.0); never raises.

        Any wrong token gets the same answer. The token is in no log line (G10).
        """
        token, method = _token(event), _method(event)
        try:
            status, page = self._answer(event, token, method)
        except Unavailable as error:
            self._logger.error("approval unavailable", extra={"reason": str(error)})
            status, page = 503, message_page("Try again", _UNAVAILABLE)
        except Exception as error:  # noqa: BLE001 - a fault of this software, answered as such
            # Loaded with the first fault.
            from webhook_inbox.domain.error_text import traceback_text  # noqa: PLC0415

            told = _without(token, traceback_text(error))
            self._logger.error("approval broken", extra={"reason": told})
            status, page = 503, message_page("Try again", _UNAVAILABLE)
        return _response(status, "" if method == "HEAD" else page)

    def _answer(self, event: Mapping[str, Any], token: str, method: str) -> tuple[int, str]:
        if not self._secrets.get(APPROVAL_KEY):
            raise Unavailable("secrets", APPROVAL_KEY, "it has no value; deploy the stack again")
        keys = self._secrets.keys(APPROVAL_KEY)
        link = next(filter(None, (read_link([key], token) for key in keys)), None)
        if link is None:
            return 404, message_page("Not found", UNKNOWN)
        if method in {"GET", "HEAD"}:
            return self._show(link)
        refused = _refusal(event, method)
        if refused:
            return refused, message_page("Not recorded", _REFUSALS[refused])
        decided = _decided(event, token)
        return self._show(link, _INCOMPLETE) if decided is None else self._decide(link, *decided)

    def _show(self, link: ApprovalLink, note: str = "") -> tuple[int, str]:
        view = self._requests.view(link.address)
        if view is None:
            return 410, message_page("Ended", GONE)
        told = state_note(view, link.person)
        over = view.state is not RequestState.OPEN or link.person not in view.people
        status = 410 if over else 400 if note else 200
        return status, self._page(view, link, told or note, form=not told)

    def _decide(self, link: ApprovalLink, word: Word, reason: str) -> tuple[int, str]:
        if link.expires_at <= self._clock.now():
            outcome = DecisionOutcome.EXPIRED
        else:
            outcome = self._requests.decide(link.address, link.person, word, reason)
        self._observe(link, word, outcome)
        view = self._seen(link)
        note = outcome_note(outcome, word, view, link.person)
        if view is None:
            return STATUSES[outcome], message_page("Approval request", note)
        return STATUSES[outcome], self._page(view, link, note)

    def _seen(self, link: ApprovalLink) -> RequestView | None:
        """Returns the request after a decision, None if it cannot be read now."""
        # The decision is made: an outage must not answer that it failed.
        with suppress(Unavailable):
            return self._requests.view(link.address)
        return None

    def _page(self, view: RequestView, link: ApprovalLink, note: str, *, form: bool = False) -> str:
        now = self._clock.now()
        return request_page(view, link.person, stage=self._stage, now=now, note=note, form=form)

    def _observe(self, link: ApprovalLink, word: Word, outcome: DecisionOutcome) -> None:
        """Writes one log line; neither the token nor the reason is in it (G10)."""
        where = link.address
        self._logger.info(
            f"approval {outcome}",
            extra={
                "source": where.source,
                "event_id": where.event_id,
                "handler": where.handler,
                "subject": where.subject,
                "person": link.person,
                "decision": str(word),
                "outcome": str(outcome),
            },
        )


def _token(event: Mapping[str, Any]) -> str:
    named = event.get("pathParameters")
    if isinstance(named, Mapping) and named.get("token") is not None:
        return str(named["token"])
    # rawPath begins with the stage unless that is $default.
    return unquote(str(event.get("rawPath")).partition(PATH)[2])


def _without(token: str, text: str) -> str:
    """Removes a token, or its half that makes it valid, from a text that is kept (G10)."""
    for part in (token, token.rpartition(".")[2]):
        text = text.replace(part, "[token]") if part else text
    return text


def _method(event: Mapping[str, Any]) -> str:
    try:
        return str(event["requestContext"]["http"]["method"]).upper()
    except (KeyError, TypeError):
        return ""


def _refusal(event: Mapping[str, Any], method: str) -> int:
    """Returns the status that refuses a request with a genuine token, 0 for a form of the page."""
    headers = headers_of(event)
    if method != "POST":
        return 405
    if not _same_site(headers):
        return 403
    if headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        return 415
    return 413 if len(str(event.get("body"))) > BODY_LIMIT else 0


def _same_site(headers: Mapping[str, str]) -> bool:
    """Returns whether no header says that another site's page has sent the form.

    The browsers of some mail clients send neither header; the path's token, which no other site
    knows, protects their users.
    """
    site, origin, host = (headers.get(name) for name in ("sec-fetch-site", "origin", "host"))
    if site is not None:
        # `none` is a form that the user sends again, after the browser was restarted.
        return site in {"same-origin", "none"}
    return origin is None or origin in {f"https://{host}", f"http://{host}"}


def _decided(event: Mapping[str, Any], token: str) -> tuple[Word, str] | None:
    """Returns the decision of a complete form, None for any other body."""
    try:
        pairs = parse_qsl(
            body_of(event).decode(),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=FIELDS,
        )
        fields = dict(pairs)
        word = Word(fields.get("decision", ""))
    except (Rejected, TypeError, ValueError):
        return None
    # A browser sends a line break as two characters.
    reason = fields.get("reason", "").replace("\r\n", "\n").strip()
    complete = len(fields) == len(pairs) and fields.get("confirm") == "yes"
    if not complete or len(reason) > REASON_LIMIT:
        return None
    return word, _without(token, reason)


def _response(status: int, page: str) -> dict[str, Any]:
    headers = dict(HEADERS)
    if status == 503:
        headers["retry-after"] = RETRY_AFTER
    if status == 405:
        headers["allow"] = "GET, HEAD, POST"
    return {"statusCode": status, "headers": headers, "body": page}
