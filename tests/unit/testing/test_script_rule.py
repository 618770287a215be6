"""One rule decides what a fake answers: failure, known key, answer, function, usual response."""

import gzip
from collections.abc import Callable
from dataclasses import dataclass

import httpx
import pytest

from webhook_inbox.adapters.memory import ManualClock
from webhook_inbox.domain.manifest import DestinationSpec
from webhook_inbox.testing import Fake, KitError
from webhook_inbox.testing.worker import Died, WorkerLife

SPEC = DestinationSpec("crm", "https://crm.example", key_header="Idempotency-Key")


@dataclass
class Line:
    """A connection to a fake; each call gives the status with the id, or the error's name."""

    fake: Fake

    def __post_init__(self) -> None:
        self.life = WorkerLife()
        self.fake.bind(SPEC, ManualClock(), self.life)

    def call(self, key: str = "k", body: str = "b", method: str = "POST") -> str:
        headers = {"Idempotency-Key": key} if key else {}
        request = httpx.Request(method, "https://crm.example/n", headers=headers, content=body)
        try:
            answer = self.fake.handle_request(request)
        except httpx.RequestError as error:
            return type(error).__name__
        told = answer.json() if answer.content else {}
        return f"{answer.status_code} {told.get('id', '')}".strip()

    def calls(self, *keys: str) -> list[str]:
        return [self.call(key) for key in keys]

    @property
    def done(self) -> list[bool]:
        return [request.done for request in self.fake.requests]


# A failure: how it is scripted, what a call gets, whether it was received, and carried out.
FAILURES: dict[str, tuple[Callable[[Fake], Fake], str, bool, bool]] = {
    "stalls": (lambda fake: fake.stalls(), "ReadTimeout", True, True),
    "stalls before": (lambda fake: fake.stalls(done=False), "ReadTimeout", True, False),
    "breaks": (lambda fake: fake.breaks(), "RemoteProtocolError", True, True),
    "breaks before": (lambda fake: fake.breaks(done=False), "RemoteProtocolError", True, False),
    "refuses": (lambda fake: fake.refuses(), "ConnectError", False, False),
    "error": (lambda fake: fake.answers(503), "503", True, False),
    "error after": (lambda fake: fake.answers(503, done=True), "503", True, True),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_applies_to_a_new_key(name: str) -> None:
    script, got, received, done = FAILURES[name]
    line = Line(script(Fake()))
    assert line.calls("k", "k", "k") == [got, "201 crm-1", "201 crm-1"]
    assert line.done == ([done, not done, False] if received else [True, False])
    assert len(line.fake.done) == 1


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_applies_to_a_known_key_and_does_nothing_again(name: str) -> None:
    script, got, received, _ = FAILURES[name]
    line = Line(Fake())
    assert line.call() == "201 crm-1"
    script(line.fake)
    assert line.calls("k", "k") == [got, "201 crm-1"]
    assert line.done == [True, False, False][: 2 + received]


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_without_a_key_is_done_as_often_as_it_says(name: str) -> None:
    script, got, _, done = FAILURES[name]
    line = Line(script(Fake()))
    assert line.calls("", "") == [got, f"201 crm-{1 + done}"]


@pytest.mark.parametrize("name", FAILURES)
def test_keys_that_are_not_honoured_are_never_known(name: str) -> None:
    script, got, _, done = FAILURES[name]
    line = Line(script(Fake(honours_keys=False)))
    assert line.calls("k", "k", "k") == [got, f"201 crm-{1 + done}", f"201 crm-{2 + done}"]


@pytest.mark.parametrize("name", FAILURES)
def test_the_answer_after_a_failure_is_that_of_the_repetition(name: str) -> None:
    line = Line(FAILURES[name][0](Fake()).answers(201, {"id": "mine"}))
    _, *later = line.calls("k", "k", "k", "other")
    assert later[:2] == ["201 mine", "201 mine"]
    assert later[2] == "201 crm-2"
    assert len(line.fake.done) == 2


@pytest.mark.parametrize("name", FAILURES)
def test_failures_follow_each_other(name: str) -> None:
    script, got, _, _ = FAILURES[name]
    line = Line(script(Fake().stalls()))
    assert line.calls("k", "k", "k") == ["ReadTimeout", got, "201 crm-1"]
    assert len(line.fake.done) == 1


@pytest.mark.parametrize("name", FAILURES)
def test_a_function_carries_out_what_a_failure_hides(name: str) -> None:
    script, got, _, _ = FAILURES[name]
    seen: list[str] = []

    def answer(request: object) -> object:
        seen.append("called")
        return 201, {"id": f"f-{len(seen)}"}

    line = Line(script(Fake().handles(answer)))
    assert line.calls("k", "k") == [got, "201 f-1"]
    assert seen == ["called"]


# -- answers


def test_an_answer_is_kept_for_a_new_request() -> None:
    line = Line(Fake().answers(201, {"id": "a"}).answers(201, {"id": "b"}))
    assert line.calls("k", "k", "k", "l", "l", "m") == [
        *["201 a"] * 3,
        *["201 b"] * 2,
        "201 crm-3",
    ]
    assert len(line.fake.done) == 3


def test_a_failure_behind_an_answer_waits_for_it() -> None:
    line = Line(Fake().answers(201, {"id": "a"}).answers(201, {"id": "b"}).answers(500))
    assert line.calls("k", "k", "l", "l", "l") == ["201 a", "201 a", "201 b", "500", "201 b"]


def test_a_lasting_answer_is_for_every_new_request() -> None:
    line = Line(Fake().answers(201, {"id": "x"}, times=None))
    assert line.calls("k", "k", "l", "") == ["201 x"] * 4
    assert line.done == [True, False, True, True]
    line.fake.recovers()
    assert line.call("m") == "201 crm-4"


@pytest.mark.parametrize("name", ["stalls", "breaks", "refuses"])
def test_a_lasting_failure_is_for_every_request(name: str) -> None:
    line = Line(getattr(Fake(), name)(times=None))
    assert len({*line.calls("k", "k", "l")}) == 1
    line.fake.recovers()
    assert line.call("k") == "201 crm-1"


def test_an_answer_comes_before_the_function() -> None:
    line = Line(Fake().handles(lambda _: (201, {"id": "f"})).answers(201, {"id": "a"}))
    assert line.calls("k", "l", "k") == ["201 a", "201 f", "201 a"]


def test_an_answer_that_does_nothing_leaves_its_key_unknown() -> None:
    line = Line(Fake().answers(202, {"id": "lost"}, done=False))
    assert line.calls("k", "k") == ["202 lost", "201 crm-1"]
    assert line.done == [False, True]


def test_a_function_that_refuses_leaves_its_key_unknown() -> None:
    answers = iter([(422, {}), (201, {"id": "f"})])
    line = Line(Fake().handles(lambda _: next(answers)))
    assert line.calls("k", "k", "k") == ["422", "201 f", "201 f"]


@pytest.mark.parametrize("lost", [False, True])
def test_another_body_under_a_known_key_uses_no_answer(lost: bool) -> None:
    line = Line(Fake().stalls() if lost else Fake())
    line.call("k", "first")
    line.fake.answers(201, {"id": "next"})
    assert line.call("k", "second") == "422"
    assert line.call("l") == "201 next"


def test_a_forgotten_key_is_new() -> None:
    line = Line(Fake())
    line.call()
    line.fake.forgets_keys().answers(201, {"id": "again"})
    assert line.calls("k", "k") == ["201 again", "201 again"]
    assert line.done == [True, True, False]


def test_a_repetition_says_that_it_is_one() -> None:
    line = Line(Fake())
    request = httpx.Request("POST", "https://crm.example/", headers={"Idempotency-Key": "k"})
    first, second = (line.fake.handle_request(request) for _ in range(2))
    assert "idempotent-replayed" not in first.headers
    assert second.headers["idempotent-replayed"] == "true"


def test_the_repetition_of_an_encoded_answer_is_decoded_once() -> None:
    encoded = gzip.compress(b'{"id": "n-1"}')
    headers = {"content-encoding": "gzip"}
    line = Line(Fake().handles(lambda _: httpx.Response(200, headers=headers, content=encoded)))
    assert line.calls("k", "k", "k") == ["200 n-1", "200 n-1", "200 n-1"]


# -- strict


def test_a_strict_fake_expects_what_is_scripted() -> None:
    line = Line(Fake(strict=True).stalls().answers(201, {"id": "a"}).answers(200, {}))
    assert line.calls("k", "k", "k") == ["ReadTimeout", "201 a", "201 a"]
    assert line.call("l", method="GET") == "200"
    assert Line(Fake(strict=True).handles(lambda _: {"id": "f"})).call() == "200 f"


@pytest.mark.parametrize(("method", "script"), [("POST", False), ("GET", False), ("POST", True)])
def test_a_strict_fake_refuses_the_rest(method: str, script: bool) -> None:
    line = Line(Fake(strict=True))
    if script:
        line.fake.breaks()
        line.call()
    with pytest.raises(Died):
        line.call(method=method)
    with pytest.raises(KitError, match=rf"test_script_rule.py:\d+: crm expects no {method} /n: "):
        line.life.begin()
    assert line.life.alive


def test_a_function_that_refuses_carries_nothing_out() -> None:
    statuses = iter([500, 200])
    line = Line(Fake().handles(lambda _: (next(statuses), {"id": "1"})))
    assert line.calls("k", "k", "k") == ["500 1", "200 1", "200 1"]
    assert line.done == [False, True, False]


def test_a_function_that_refuses_a_lost_request_carries_nothing_out() -> None:
    line = Line(Fake().handles(lambda _: (500, {})).stalls())
    assert line.calls("k", "k") == ["ReadTimeout", "500"]
    assert line.done == [False, False]


@pytest.mark.parametrize("body", ["a=b", "[1]", '"x"', "{}", '{"key":null}'])
def test_a_body_without_the_field_of_the_key_has_no_key(body: str) -> None:
    line = Line(Fake())
    spec = DestinationSpec("crm", "https://crm.example", key_header="", key_field="key")
    line.fake.bind(spec, ManualClock(), line.life)
    assert [line.call(body=body), line.call(body=body)] == ["201 crm-1", "201 crm-2"]
