"""The pages of approval links: plain HTML without scripts. Loaded with the first link.

Every value of a request is untrusted: it is escaped, invisible characters show as escapes, and each
text is isolated from the reading direction of its neighbours.
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from datetime import datetime
from hashlib import sha256
from html import escape
from typing import Final

from webhook_inbox.domain.model import RequestState
from webhook_inbox.domain.printable import printable
from webhook_inbox.handlers.approvals.request_row import DecisionOutcome, GivenDecision, Word
from webhook_inbox.handlers.approvals.requests import RequestView

REASON_LIMIT: Final = 500
# Deep arguments of 16 KB would have megabytes of indentation, more than Lambda returns.
INDENTED_LIMIT: Final = 128 * 1024
STYLE: Final = (
    ":root{color-scheme:light dark;font:1rem/1.5 system-ui,sans-serif}"
    "body{max-width:44rem;margin:0 auto;padding:1rem;overflow-wrap:anywhere}"
    "h1{font-size:1.5rem}h2{font-size:1.1rem;margin:1.5rem 0 .25rem}"
    "dt{font-weight:600}dd{margin:0 0 .5rem}"
    "pre{margin:0;padding:.75rem;border:1px solid;white-space:pre-wrap;overflow-wrap:anywhere}"
    ".note{padding:.75rem;border:1px solid;border-left-width:.5rem}"
    "fieldset{margin:0 0 1rem;border:1px solid}"
    "label{display:block;padding:.35rem 0}"
    "textarea{box-sizing:border-box;width:100%;font:inherit}"
    "button{font:inherit;font-weight:600;padding:.6rem 1.2rem}"
)
_STYLE_HASH: Final = b64encode(sha256(STYLE.encode()).digest()).decode()
HEADERS: Final = {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "content-security-policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action 'self';"
        " frame-ancestors 'none'; base-uri 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # No other site gets the path. `no-referrer` would have browsers send `Origin: null` with the
    # page's own form.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "x-robots-tag": "noindex",
}
UNKNOWN: Final = (
    "This address is not a valid approval link. Open the link again from the message that you"
    " received; it must be complete."
)
_ENDED: Final = {
    RequestState.APPROVED: "This request is approved. Nothing is left to decide.",
    RequestState.DENIED: "This request is denied. Nothing is left to decide.",
    RequestState.EXPIRED: "This request has expired: it was not decided in time.",
    RequestState.VOID: (
        "This request no longer applies: the effect was requested with other arguments, or its run"
        " has ended."
    ),
}
_NOTHING: Final = "Nothing was recorded now."
GONE: Final = "This request no longer exists. Nothing is left to decide."
_OUTCOMES: Final = {
    DecisionOutcome.EXPIRED: f"{_ENDED[RequestState.EXPIRED]} {_NOTHING}",
    DecisionOutcome.VOID: f"{_ENDED[RequestState.VOID]} {_NOTHING}",
    DecisionOutcome.CLOSED: f"Other people have decided this request. {_NOTHING}",
    DecisionOutcome.UNKNOWN: (
        f"This request no longer exists, or you are no longer asked about it. {_NOTHING}"
    ),
}
_EXACT: Final = "Arguments, exactly as the effect will run with them"
_HIDDEN: Final = "Arguments; secret and personal values are hidden"
_DONE: Final = {Word.APPROVE: "approved", Word.DENY: "denied"}
# A JSON string on one line.
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')


def message_page(title: str, text: str) -> str:
    """Returns a page with one message; both texts are ours."""
    return _page(title, f'<p class="note" role="alert">{escape(text)}</p>')


def request_page(
    view: RequestView, person: str, *, stage: str, now: datetime, note: str = "", form: bool = False
) -> str:
    """Returns the page of a request.

    Args:
        view: the request.
        person: the person whose link it is.
        stage: the stack's stage.
        now: the present time.
        note: a message at the top.
        form: whether the person can decide.
    """
    # The link has the hash of the arguments; another text has values replaced, or was changed.
    exact = sha256(view.arguments.encode(errors="replace")).hexdigest() == view.address.fingerprint
    parts = (
        f'<p class="note" role="status">{_isolated(note)}</p>' if note else "",
        _facts(view, stage, now),
        f"<h2>{_EXACT if exact else _HIDDEN}</h2>",
        '<pre tabindex="0" role="region" aria-label="Arguments">',
        f"{_arguments(view.arguments)}</pre>",
        f"<h2>Decisions</h2><ul>{''.join(_decisions(view, person))}</ul>",
        _form(person) if form else "",
        f"<p>This link is for {_isolated(person)}. Do not forward it: a decision made with it is"
        " recorded under this name. Opening this page changes nothing.</p>",
    )
    return _page("Approval request", "".join(parts))


def state_note(view: RequestView, person: str) -> str:
    """Returns the message of a request that the person cannot decide, "" for one to decide."""
    given = view.people.get(person)
    own = f"{_own(given)} " if given else ""
    if view.state is not RequestState.OPEN:
        return own + _ENDED[view.state]
    if given:
        return f"{own}The request is still open."
    return "" if person in view.people else "You are no longer asked about this request."


def outcome_note(
    outcome: DecisionOutcome, word: Word, view: RequestView | None, person: str
) -> str:
    """Returns the message after a decision; `view` is None if the request cannot be read."""
    given = view.people.get(person) if view else None
    match outcome:
        case DecisionOutcome.RECORDED:
            return f"Recorded: you {_DONE[word]} this request.{_consequence(word, view)}"
        case DecisionOutcome.REPEATED:
            return f"{_own(given) or f'You {_DONE[word]} this request before.'} {_NOTHING}"
        case DecisionOutcome.CONFLICT:
            own = _own(given) or "You decided this request otherwise before."
            return f"{own} The first decision counts. {_NOTHING}"
        case _:
            return _OUTCOMES[outcome]


def _consequence(word: Word, view: RequestView | None) -> str:
    if word is Word.DENY:
        return " The effect will not run."
    if view is None:
        return ""
    if view.state is RequestState.APPROVED:
        return " The effect will run now."
    return f" Approvals: {_approvals(view)} of {view.count}."


def _own(given: GivenDecision | None) -> str:
    return f"You {_DONE[given.word]} this request at {_time(given.at)}." if given else ""


def _approvals(view: RequestView) -> int:
    return sum(given is not None and given.word is Word.APPROVE for given in view.people.values())


def _facts(view: RequestView, stage: str, now: datetime) -> str:
    where = view.address
    needed = "1 approval" if view.count == 1 else f"{view.count} approvals of different people"
    facts = {
        "Question": _isolated(view.question),
        "Effect": _isolated(view.effect),
        "Handler": f"{_isolated(where.handler)}, stage {_isolated(stage)}",
        "Event": f"{_isolated(where.event_id)} of source {_isolated(where.source)}",
        "Asked": _time(view.opened_at),
        "Decide before": f"{_time(view.expires_at)}{_left(view.expires_at, now)}",
        "Needs": f"{needed}, and no denial; it has {_approvals(view)}",
    }
    told = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts.items())
    return f"<dl>{told}</dl>"


def _arguments(text: str) -> str:
    """Returns the arguments, indented if that is certainly the same JSON."""
    lines = _indented(text).split("\n") if text else ["(the handler gives none)"]
    return "\n".join(
        # Each text keeps its reading direction to itself, so that it moves no number beside it.
        _STRING.sub(lambda found: f"<bdi>{found[0]}</bdi>", escape(_as_json(line), quote=False))
        for line in lines
    )


def _as_json(line: str) -> str:
    """Shows the characters that have no glyph as JSON's escapes, so that it stays the same JSON."""
    return "".join(c if printable(c) == c else json.dumps(c)[1:-1] for c in line)


def _indented(text: str) -> str:
    try:
        data = json.loads(text)
        same = json.dumps(data, sort_keys=True, ensure_ascii=False) == text
        indented = json.dumps(data, sort_keys=True, ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return text
    return indented if same and len(indented) <= INDENTED_LIMIT else text


def _decisions(view: RequestView, person: str) -> Iterator[str]:
    for name, given in view.people.items():
        you = " (you)" if name == person else ""
        told = f"{_DONE[given.word]} at {_time(given.at)}" if given else "not decided"
        reason = f": {_isolated(given.reason)}" if given and given.reason else ""
        yield f"<li>{_isolated(name)}{you}: {told}{reason}</li>"


def _form(person: str) -> str:
    # One button and no default choice: the Enter key must not approve.
    return (
        '<h2>Your decision</h2><form method="post" autocomplete="off">'
        f"<fieldset><legend>As {_isolated(person)}, I</legend>"
        '<label><input type="radio" name="decision" value="approve" required> approve: the effect'
        " may run with these arguments</label>"
        '<label><input type="radio" name="decision" value="deny"> deny: the effect must not run'
        "</label></fieldset>"
        '<label for="reason">Reason (recorded; optional)</label>'
        f'<textarea id="reason" name="reason" rows="2" maxlength="{REASON_LIMIT}"></textarea>'
        '<label><input type="checkbox" name="confirm" value="yes" required> I have read the'
        " arguments; this decision is final</label>"
        '<p><button type="submit">Record my decision</button></p></form>'
    )


def _page(title: str, content: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head>"
        f"<body><main><h1>{title}</h1>{content}</main></body></html>"
    )


def _isolated(text: str) -> str:
    return f"<bdi>{escape(printable(text))}</bdi>"


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _left(until: datetime, now: datetime) -> str:
    minutes = int((until - now).total_seconds() // 60)
    if minutes < 0:
        return ", which has passed"
    hours, days = minutes // 60, minutes // 1440
    told = f"{days} d {hours % 24} h" if days else f"{hours} h {minutes % 60} min"
    return f", in {told}"
