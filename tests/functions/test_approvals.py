"""GET and POST /approvals/{token}: the page, the answers, and what each request may change."""

import html
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import datetime
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from aws_lambda_powertools import Logger
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest import approvals
from ingest.approval_page import REASON_LIMIT, STYLE
from ingest.approvals import BODY_LIMIT, STATUSES, Approving
from tests.functions.invocations import http_event
from tests.unit.support.approving import BOARD, FINANCE, ApprovingWorld
from webhook_inbox import Approval
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.manifest import ApproversSpec
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.secrets import APPROVAL_KEY
from webhook_inbox.handlers.approvals.links import link_token
from webhook_inbox.handlers.approvals.request_row import (
    DecisionOutcome,
    GivenDecision,
    RequestAddress,
    Word,
)
from webhook_inbox.handlers.approvals.requests import ApprovalRequests, RequestView

HOST = "hooks.example"
FORM = {"content-type": "application/x-www-form-urlencoded", "host": HOST}
NOTHING = "Nothing was recorded now."


class Requests(ApprovalRequests):
    """The requests of an inbox, with what was called; `shown` replaces the one that is read."""

    calls: list[str]
    shown: RequestView | None = None

    def view(self, address: RequestAddress) -> RequestView | None:
        self.calls.append("view")
        return self.shown or super().view(address)

    def decide(
        self, address: RequestAddress, person: str, word: Word, reason: str
    ) -> DecisionOutcome:
        self.calls.append("decide")
        return super().decide(address, person, word, reason)


@dataclass
class Answered:
    """An answer, and its page."""

    status: int
    headers: Mapping[str, str]
    page: str

    @property
    def text(self) -> str:
        """The page as its reader sees it."""
        return " ".join(html.unescape(re.sub(r"</?bdi>", "", self.page)).split())

    @property
    def has_form(self) -> bool:
        return "<form" in self.page

    @property
    def arguments(self) -> str:
        """The arguments as their reader sees them."""
        [shown] = re.findall(r"<pre[^>]*>(.*)</pre>", self.page, re.DOTALL)
        return html.unescape(re.sub(r"</?bdi>", "", shown))


class Stage:
    """The route, and an inbox with one request behind it that needs two people."""

    def __init__(self, *, groups: Iterable[ApproversSpec] = (), **settings: Any) -> None:
        self.world = ApprovingWorld(*groups, **settings)
        self.address = self.world.asked().address
        self.opened = self.world.view()
        self.log = io.StringIO()
        self.approving = Approving(
            self.world.manifest,
            self.world.ports,
            logger=Logger(service=f"approvals-{id(self.log)}", stream=self.log),
        )
        found = self.approving._requests
        assert isinstance(found, Requests)
        self.requests = found
        self.requests.calls = []

    def token(self, person: str = "ann", *, key: str = "") -> str:
        key = key or self.world.vault.live(APPROVAL_KEY)[0]
        return link_token(key, self.address, person, self.opened.expires_at)

    def ask(self, method: str, token: str, **changes: Any) -> Answered:
        """Sends a request; `changes` are of the event, or its `body` and `headers`."""
        headers = changes.pop("headers", {"host": HOST})
        body = changes.pop("body", b"")
        event = http_event(f"/approvals/{token}", method=method, headers=headers, body=body)
        event |= {"routeKey": "ANY /approvals/{token}", "pathParameters": {"token": token}}
        answer = json.loads(json.dumps(self.approving.answer({**event, **changes})))
        return Answered(answer["statusCode"], answer["headers"], answer["body"])

    def get(self, person: str = "ann") -> Answered:
        return self.ask("GET", self.token(person))

    def post(self, person: str = "ann", word: str = "approve", **fields: str) -> Answered:
        """Sends the form of the page, complete unless a field is changed."""
        form = {"decision": word, "reason": "", "confirm": "yes", **fields}
        return self.ask("POST", self.token(person), headers=FORM, body=urlencode(form).encode())

    def show(self, **changes: Any) -> None:
        """Lets the request be read with changes that no inbox of this test makes."""
        self.requests.shown = replace(self.opened, **changes)

    @property
    def decided(self) -> list[tuple[str, Word, str]]:
        decisions = self.world.request().decisions.items()
        return [(person, given.word, given.reason) for person, given in decisions]

    def rows(self) -> list[Any]:
        return deepcopy(list(self.world.table.everything()))


@pytest.fixture(autouse=True)
def _requests() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(approvals, "ApprovalRequests", Requests)
        yield


@pytest.fixture
def stage() -> Stage:
    return Stage()


def at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


# -- the page


def test_the_page_shows_what_the_approver_decides(stage: Stage) -> None:
    answer = stage.get()

    assert answer.status == 200
    for shown in (
        "<dd>Approve refund of acme.fulfil for acme evt-1?</dd>",
        f"<dd>acme.fulfil, stage {stage.world.manifest.stage}</dd>",
        "<dd>evt-1 of source acme</dd>",
        f"<dd>{at(stage.opened.opened_at)}</dd>",
        f"<dd>{at(stage.opened.expires_at)}, in 2 d 0 h</dd>",
        "<dd>2 approvals of different people, and no denial; it has 0</dd>",
        '{ "cents": 20000, "order": "o-1" }</pre>',
        "<li>ann (you): not decided</li><li>bob: not decided</li>",
        "This link is for ann.",
    ):
        assert shown in answer.text, shown
    assert answer.has_form


def test_the_page_is_never_cached_framed_scripted_or_named_to_another_site(stage: Stage) -> None:
    for answer in (stage.get(), stage.post(), stage.ask("GET", "guess"), stage.ask("PUT", "x")):
        headers = answer.headers
        assert headers["content-type"] == "text/html; charset=utf-8"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        policy = dict(part.strip().split(" ", 1) for part in headers[POLICY].split(";"))
        assert policy.pop("style-src").startswith("'sha256-")
        assert policy == {
            "default-src": "'none'",
            "form-action": "'self'",
            "frame-ancestors": "'none'",
            "base-uri": "'none'",
        }
        assert f"<style>{STYLE}</style>" in answer.page
        assert "<script" not in answer.page
        assert "set-cookie" not in headers
        assert not any(name.startswith("access-control") for name in headers)


POLICY = "content-security-policy"


def test_the_form_has_no_default_and_no_address_of_its_own(stage: Stage) -> None:
    """The Enter key must not approve, and the page must not have the token."""
    answer = stage.get()

    assert "checked" not in answer.page
    assert "action=" not in answer.page
    assert stage.token() not in answer.page
    assert answer.page.count("<button") == 1
    assert not re.search(r"(href|src)=", answer.page)


HOSTILE = (
    "</pre><script>alert(1)</script>",
    '" onmouseover="alert(1)',
    "<img src=x onerror=alert(1)>",
    "&lt;b&gt;",
    "\u202e00001\u202c",
    "a\u200bb\x1b]52;c;aGk=\x07\x00",
    "\ud800",
    "\u2028\r\n\t",
)


class Tags(HTMLParser):
    """Collects the elements and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(name for name, _ in attrs)))


def tags(page: str) -> set[tuple[str, tuple[str, ...]]]:
    parser = Tags()
    parser.feed(page)
    return set(parser.found)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_value_of_a_request_reaches_the_markup_or_hides_a_character(
    stage: Stage, text: str
) -> None:
    known = tags(stage.get().page)
    given = GivenDecision(Word.APPROVE, stage.world.now, text, "link")
    address = replace(stage.address, source=text, event_id=text, handler=text)
    arguments = json.dumps({text: [text]}, ensure_ascii=False, sort_keys=True)
    stage.show(
        address=address,
        question=text,
        effect=text,
        arguments=arguments,
        people={"ann": None, text: given},
    )

    page = stage.get().page

    assert tags(page) == known
    for hidden in "\u202e\u202c\u200b\x1b\x07\x00\ud800\u2028\r\t":
        assert hidden not in page


def test_arguments_show_invisible_characters_as_json_writes_them(stage: Stage) -> None:
    arguments = json.dumps({"to": "a\u202eb\u200d", "n": 1}, ensure_ascii=False, sort_keys=True)
    stage.show(arguments=arguments)

    answer = stage.get()

    assert answer.arguments == '{\n  "n": 1,\n  "to": "a\\u202eb\\u200d"\n}'
    assert json.loads(answer.arguments) == json.loads(arguments)
    # Each text keeps its reading direction to itself: it moves no number beside it.
    assert '<bdi>"n"</bdi>: 1,' in answer.page


def test_the_page_says_whether_it_shows_the_arguments_of_the_link(stage: Stage) -> None:
    assert "exactly as the effect will run with them" in stage.get().text

    stage.show(arguments=stage.opened.arguments.replace("20000", "200"))
    assert "secret and personal values are hidden" in stage.get().text
    assert "exactly" not in stage.get().text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@given(json_values)
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_the_arguments_on_the_page_are_the_arguments(stage: Stage, value: Any) -> None:
    arguments = json.dumps(value, ensure_ascii=False, sort_keys=True)
    if any(0xD800 <= ord(character) < 0xE000 for character in arguments):
        return
    stage.show(arguments=arguments)

    answer = stage.get()

    assert json.loads(answer.arguments) == value


@pytest.mark.parametrize(
    "text", ["", "no JSON", '{"a":1}', "[" * 5000, "9" * 5000, '{"b": 1, "a": 2}']
)
def test_other_arguments_are_shown_as_they_are(stage: Stage, text: str) -> None:
    stage.show(arguments=text)

    answer = stage.get()

    assert answer.arguments == (text or "(the handler gives none)")


def test_deep_arguments_make_no_large_page(stage: Stage) -> None:
    """Lambda returns 6 MB, so a sender could make a page that no approver can open."""
    deep = "[" * 400 + ", ".join(["1"] * 5000) + "]" * 400
    stage.show(arguments=deep)

    answer = stage.get()

    assert answer.arguments == deep
    assert len(answer.page) < 64 * 1024


# -- reading changes nothing


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_reading_writes_nothing(stage: Stage, method: str) -> None:
    """Mail scanners open links, and send what a browser would send."""
    form = urlencode({"decision": "approve", "confirm": "yes"})
    before = stage.rows()
    for headers in ({"host": HOST}, FORM, {**FORM, "sec-purpose": "prefetch"}):
        answer = stage.ask(
            method, stage.token(), headers=headers, body=form.encode(), rawQueryString=form
        )
        assert answer.status == 200
        assert (answer.page == "") is (method == "HEAD")
    assert set(stage.requests.calls) == {"view"}
    assert stage.rows() == before


# -- a decision


def test_two_people_approve_under_their_names_and_the_effect_runs_once(stage: Stage) -> None:
    first = stage.post("ann", reason="checked the order")
    now = at(stage.world.now)
    stage.world.work()
    assert first.status == 200
    assert "Recorded: you approved this request. Approvals: 1 of 2." in first.text
    assert f"<li>ann (you): approved at {now}: checked the order</li>" in first.text
    assert not first.has_form
    assert stage.world.refunds == []

    second = stage.post("bob")
    stage.world.work()
    assert "Recorded: you approved this request. The effect will run now." in second.text
    assert (stage.world.status, stage.world.refunds) == (Status.DONE, [stage.world.args])
    assert stage.decided == [
        ("ann", Word.APPROVE, "checked the order"),
        ("bob", Word.APPROVE, ""),
    ]
    assert {"approve by ann", "approve by bob"} <= set(stage.world.history)


def test_a_denial_says_that_the_effect_will_not_run(stage: Stage) -> None:
    answer = stage.post(word="deny", reason="a duplicate")
    stage.world.work()

    assert answer.status == 200
    assert "Recorded: you denied this request. The effect will not run." in answer.text
    assert (stage.world.status, stage.world.refunds) == (Status.SKIPPED, [])
    assert stage.world.run().last_error == "denied by ann: a duplicate"


def test_a_repeated_decision_counts_once(stage: Stage) -> None:
    stage.post()
    own = f"You approved this request at {at(stage.world.now)}."
    before = stage.rows()
    stage.world.clock.advance(minutes=5)
    again = stage.post()

    assert again.status == 200
    assert f"{own} {NOTHING}" in again.text
    assert stage.rows() == before
    opened = stage.get()
    assert (opened.status, opened.has_form) == (200, False)
    assert f"{own} The request is still open." in opened.text


def test_the_opposite_decision_is_a_conflict_that_names_the_first(stage: Stage) -> None:
    stage.post(word="approve")
    own = f"You approved this request at {at(stage.world.now)}. The first decision counts."
    answer = stage.post(word="deny")

    assert answer.status == 409
    assert f"{own} {NOTHING}" in answer.text
    assert stage.decided == [("ann", Word.APPROVE, "")]


def _approved(stage: Stage) -> None:
    for person in ("bob", "kim"):
        stage.world.says(person)


def _denied(stage: Stage) -> None:
    stage.world.says("bob", Word.DENY)


def _expired(stage: Stage) -> None:
    stage.world.look_at(stage.opened.expires_at)


def _other_arguments(stage: Stage) -> None:
    stage.world.args = {"order": "o-1", "cents": 2_000_000}
    stage.world.replay(event_ids=("evt-1",))
    stage.world.work()


def _run_ended(stage: Stage) -> None:
    stage.world.behaviours["acme.fulfil"] = lambda *_: None
    stage.world.replay(event_ids=("evt-1",))
    stage.world.work()


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (_approved, "This request is approved."),
        (_denied, "This request is denied."),
        (_expired, "This request has expired"),
        (_other_arguments, "This request no longer applies"),
        (_run_ended, "This request no longer applies"),
    ],
)
def test_a_request_that_has_ended_says_so_and_takes_no_decision(
    end: Callable[[Stage], None], text: str
) -> None:
    three = replace(FINANCE, people={**FINANCE.people, "kim": "chat:/kim"})
    stage = Stage(groups=(three,))
    end(stage)
    before = stage.rows()

    opened, decided = stage.get(), stage.post()

    assert (opened.status, opened.has_form) == (410, False)
    assert text in opened.text
    assert (decided.status, decided.has_form) == (410, False)
    assert NOTHING in decided.text
    assert stage.rows() == before


def test_a_link_whose_time_has_passed_never_reaches_the_ledger_with_a_decision(
    stage: Stage,
) -> None:
    stage.world.clock.advance(days=2, seconds=1)

    answer = stage.post()

    assert answer.status == 410
    assert "This request has expired" in answer.text
    assert "decide" not in stage.requests.calls


def test_a_person_who_is_no_longer_asked_reads_and_cannot_decide(stage: Stage) -> None:
    stage.requests._groups = {"finance": replace(FINANCE, people={"bob": "chat:/bob"})}

    opened, decided = stage.get(), stage.post()

    assert (opened.status, opened.has_form) == (410, False)
    assert "You are no longer asked about this request." in opened.text
    assert decided.status == 410
    assert NOTHING in decided.text
    assert stage.decided == []


def test_the_next_group_decides_under_its_own_links_after_the_escalation() -> None:
    finance = replace(FINANCE, escalate_after=4 * 3600.0, escalate_to="board")
    stage = Stage(groups=(finance, BOARD))
    early = stage.post("eve")
    stage.world.wait(hours=5)

    assert (early.status, stage.decided) == (410, [])
    assert stage.post("eve").status == 200
    assert stage.decided == [("eve", Word.APPROVE, "")]


def test_a_request_that_is_gone_says_so(stage: Stage) -> None:
    stage.world.clock.advance(days=100)

    for answer in (stage.get(), stage.post()):
        assert answer.status == 410
    assert "no longer exists" in stage.get().text


# -- what is no decision


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"decision=approve",
        b"confirm=yes",
        b"decision=approve&confirm=",
        b"decision=approve&confirm=no",
        b"decision=Approve&confirm=yes",
        b"decision=&confirm=yes",
        b"decision=approve&decision=deny&confirm=yes",
        b"decision=approve&confirm=yes&confirm=yes",
        b"decision=approve&confirm=yes&reason=" + b"x" * (REASON_LIMIT + 1),
        b"decision=approve&confirm=yes&reason=%ff%fe",
        b"decision=approve&confirm=yes&reason=\xff",
        b"decision=approve&confirm=yes&" + b"&".join(b"f%d=1" % n for n in range(9)),
        b"decision=approve;confirm=yes",
        b'{"decision": "approve", "confirm": "yes"}',
        b"&&&=&=",
        b"\x00" * 100,
    ],
)
def test_an_incomplete_form_decides_nothing_and_is_shown_again(stage: Stage, body: bytes) -> None:
    answer = stage.ask("POST", stage.token(), headers=FORM, body=body)

    assert (answer.status, answer.has_form) == (400, True)
    assert "Nothing was recorded: choose approve or deny" in answer.text
    assert "decide" not in stage.requests.calls


COMPLETE = b"decision=approve&confirm=yes&reason="


@pytest.mark.parametrize(
    ("status", "method", "headers", "body"),
    [
        (403, "POST", {**FORM, "origin": "https://evil.example"}, COMPLETE),
        (403, "POST", {**FORM, "origin": "null"}, COMPLETE),
        (403, "POST", {**FORM, "origin": f"https://{HOST}.evil.example"}, COMPLETE),
        (403, "POST", {**FORM, "origin": ""}, COMPLETE),
        (403, "POST", {**FORM, "sec-fetch-site": "cross-site"}, COMPLETE),
        (403, "POST", {**FORM, "sec-fetch-site": "same-site"}, COMPLETE),
        (403, "POST", {**FORM, "sec-fetch-site": "same-origin, cross-site"}, COMPLETE),
        (415, "POST", {**FORM, "content-type": "text/plain"}, COMPLETE),
        (415, "POST", {**FORM, "content-type": "multipart/form-data; boundary=x"}, COMPLETE),
        (415, "POST", {"host": HOST}, COMPLETE),
        (413, "POST", FORM, COMPLETE + b"x" * BODY_LIMIT),
        (405, "PUT", FORM, COMPLETE),
        (405, "DELETE", FORM, b""),
        (405, "OPTIONS", {**FORM, "access-control-request-method": "POST"}, b""),
        (405, "", FORM, COMPLETE),
    ],
)
def test_a_request_that_the_page_does_not_send_decides_nothing(
    stage: Stage, status: int, method: str, headers: dict[str, str], body: bytes
) -> None:
    answer = stage.ask(method, stage.token(), headers=headers, body=body)

    assert (answer.status, answer.has_form) == (status, False)
    assert answer.headers.get("allow") == ("GET, HEAD, POST" if status == 405 else None)
    assert stage.requests.calls == []


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": f"https://{HOST}"},
        {"origin": f"https://{HOST}", "sec-fetch-site": "same-origin"},
        {"origin": "null", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
        {"content-type": "Application/X-WWW-Form-Urlencoded; charset=UTF-8"},
    ],
)
def test_the_form_of_the_page_decides_in_every_browser(
    stage: Stage, headers: dict[str, str]
) -> None:
    answer = stage.ask("POST", stage.token(), headers={**FORM, **headers}, body=COMPLETE)

    assert answer.status == 200
    assert stage.decided == [("ann", Word.APPROVE, "")]


def test_a_reason_may_have_any_text_but_the_token(stage: Stage) -> None:
    stage.post(reason=" 1.\r\n✓ <b> ")
    link = f"https://{HOST}/approvals/{stage.token('bob')}"
    stage.post("bob", reason=f"see {link}")

    (_, _, first), (_, _, second) = stage.decided
    assert first == "1.\n✓ <b>"
    assert second == f"see https://{HOST}/approvals/[token]"


# -- tokens


def forged(stage: Stage) -> Iterator[str]:
    token = stage.token()
    content, _, mac = token.rpartition(".")
    yield from ("wp-login.php", "", ".", "v1..", token[:-1], token + "x", content, mac)
    yield content + "." + mac[::-1]
    yield stage.token(key="the-key-of-another-stack")
    yield quote(token, safe="") + "%00"
    yield "../completions/x"
    yield "\ud800"
    yield "é" * 50
    yield "A" * 8000


def test_every_wrong_token_gets_the_same_answer_and_no_read(stage: Stage) -> None:
    answers = set()
    for token in forged(stage):
        for method, body in (("GET", b""), ("POST", COMPLETE), ("DELETE", b"")):
            answer = stage.ask(method, token, headers=FORM, body=body)
            answers.add((answer.status, answer.page, json.dumps(dict(answer.headers))))

    [(status, _, _)] = answers
    assert status == 404
    assert stage.requests.calls == []


def test_a_token_is_read_from_the_path_of_a_stage_as_well(stage: Stage) -> None:
    token = stage.token()
    path = {"rawPath": f"/prod/approvals/{token}"}
    for parameters in (None, {}, {"token": None}, 7):
        assert stage.ask("GET", "x", pathParameters=parameters, **path).status == 200


def test_a_link_from_before_a_rotation_of_the_key_is_valid(stage: Stage) -> None:
    token = stage.token()
    stage.world.vault.rotate(APPROVAL_KEY, "the-next-key")
    stage.world.clock.advance(minutes=2)

    assert stage.ask("GET", token).status == 200


# -- failures


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("operation", ["GetItem", "PutItem", "UpdateItem", "SendMessageBatch"])
@pytest.mark.parametrize("skip", range(4))
def test_whatever_call_fails_the_repeated_form_decides_once(
    operation: str, fault: Fault, skip: int
) -> None:
    stage = Stage(approval=Approval(by="finance"))
    stage.world.plan.fail(operation, fault, skip=skip)
    answer = stage.post(reason="one")
    assert answer.status in {200, 503}
    if answer.status == 503:
        assert answer.headers["retry-after"] == "5"
        assert "a repeated decision counts once" in answer.text

    stage.world.plan.heal()
    assert stage.post(reason="one").status == 200
    stage.world.wait(minutes=30)
    assert stage.decided == [("ann", Word.APPROVE, "one")]
    assert (stage.world.status, stage.world.refunds) == (Status.DONE, [stage.world.args])


def test_a_decision_is_confirmed_although_the_request_cannot_be_read_after_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise Unavailable("dynamodb", "GetItem", "throttled")

    monkeypatch.setattr(Requests, "view", fail)
    assert stage.get().status == 503

    answer = stage.post()

    assert answer.status == 200
    assert "Recorded: you approved this request." in answer.text


def test_without_the_key_no_link_can_be_judged(stage: Stage) -> None:
    token = stage.token()
    [key] = stage.world.vault.live(APPROVAL_KEY)
    stage.world.vault.remove(APPROVAL_KEY)
    stage.world.clock.advance(minutes=2)
    assert stage.ask("GET", token).status == 503

    stage.world.vault.rotate(APPROVAL_KEY, key)
    stage.world.clock.advance(minutes=2)
    assert stage.ask("GET", token).status == 200


@pytest.mark.parametrize(
    "broken",
    [
        {"headers": 7},
        {"requestContext": None},
        {"body": 7},
        {"isBase64Encoded": True, "body": "no base64!"},
        {"headers": {"content-type": 7}},
    ],
)
def test_an_event_that_is_no_request_is_answered_and_decides_nothing(
    stage: Stage, broken: dict[str, Any]
) -> None:
    event = http_event(f"/approvals/{stage.token()}", headers=FORM, body=COMPLETE)

    answer = stage.approving.answer({**event, **broken})

    assert answer["statusCode"] in {400, 405, 415, 503}
    assert stage.decided == []


def test_a_fault_is_logged_without_the_token(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    token = stage.token()

    def fail(*_: object) -> None:
        raise RuntimeError(f"at {token}")

    monkeypatch.setattr(Requests, "view", fail)
    stage.post()
    answer = stage.get()

    assert answer.status == 503
    assert "RuntimeError: at [token]" in stage.log.getvalue()
    assert token.rpartition(".")[2] not in stage.log.getvalue() + answer.page


def test_a_decision_is_logged_with_its_person_and_without_the_token(stage: Stage) -> None:
    token = stage.token()
    stage.get()
    stage.ask("GET", token + "x")
    assert stage.log.getvalue() == ""

    stage.post(reason="my reason")

    [line] = map(json.loads, stage.log.getvalue().splitlines())
    told = ("message", "source", "event_id", "handler", "subject", "person", "decision", "outcome")
    assert [line[name] for name in told] == [
        "approval recorded",
        "acme",
        "evt-1",
        "acme.fulfil",
        "effect:refund",
        "ann",
        "approve",
        "recorded",
    ]
    assert token not in json.dumps(line)
    assert "my reason" not in json.dumps(line)


# -- anything at all


headers_of_any_kind = st.dictionaries(
    st.sampled_from(["origin", "sec-fetch-site", "content-type", "host", "x-forwarded-host"]),
    st.sampled_from(["", "null", HOST, f"https://{HOST}", "same-origin", FORM["content-type"]])
    | st.text(max_size=20),
)
bodies = st.binary(max_size=200) | st.lists(
    st.tuples(
        st.sampled_from(["decision", "confirm", "reason"]),
        st.sampled_from(["approve", "deny", "yes"]) | st.text(max_size=5),
    ),
    max_size=4,
).map(lambda pairs: urlencode(pairs, errors="surrogatepass").encode())
methods = st.sampled_from(["GET", "HEAD", "POST", "PUT", "get", "post", ""])


@given(
    method=methods,
    headers=headers_of_any_kind,
    body=bodies,
    damage=st.sampled_from(["", "x", "."]) | st.text(max_size=3),
)
@settings(max_examples=200)
def test_only_a_confirmed_post_under_a_genuine_token_writes(
    method: str, headers: dict[str, str], body: bytes, damage: str
) -> None:
    stage = Stage()
    before = stage.rows()

    answer = stage.ask(method, stage.token() + damage, headers=headers, body=body)

    assert answer.status in {200, 400, 403, 404, 405, 413, 415}
    if damage:
        assert (answer.status, stage.requests.calls) == (404, [])
    if stage.rows() != before:
        assert (method.upper(), answer.status) == ("POST", 200)
        assert b"confirm=yes" in body
        assert headers.get("content-type", "").strip().lower().startswith(FORM["content-type"])
        assert headers.get("sec-fetch-site", "same-origin") in {"same-origin", "none"}
        assert len(stage.decided) == 1


def test_every_outcome_has_a_status() -> None:
    assert set(STATUSES) == set(DecisionOutcome)
