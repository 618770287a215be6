"""Tokens: which wait they name, who may make one, and where they are never seen."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from string import ascii_lowercase, digits

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.handlers.completions.job_stage import Labour
from webhook_inbox import Permanent
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.secrets import COMPLETION_KEY
from webhook_inbox.handlers.completions.receiver import CompletionOutcome
from webhook_inbox.handlers.completions.tokens import (
    CompletionToken,
    WaitAddress,
    hashed,
    is_one_of,
    mint,
    place_of,
)
from webhook_inbox.ledger.schema import ID_LIMIT

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLACE = WaitAddress("acme", "evt-1", "acme.fulfil", "render")
ALPHABET = st.sampled_from("abcABC019-_")

names = st.text(st.sampled_from(ascii_lowercase + digits + "_.-"), min_size=1, max_size=64)
labels = st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters="#"))
event_ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=128)


def made(
    place: WaitAddress = PLACE, *, key: str = "k", number: int = 1, at: datetime = NOW
) -> CompletionToken:
    return mint(key, replace(place, number=number), received_at=at)


@given(names, event_ids, names, labels.filter(bool))
def test_a_token_names_its_wait_whatever_that_is_called(
    source: str, event_id: str, handler: str, name: str
) -> None:
    place = WaitAddress(source, event_id, handler, name[:120])

    token = made(place)

    assert place_of(token) == place
    assert token.replace("-", "").replace("_", "").replace(".", "").isalnum()
    assert token.isascii()


def test_the_longest_names_make_a_token_of_about_a_kilobyte() -> None:
    longest = WaitAddress("s" * 64, "é" * (ID_LIMIT // 2), "h" * 64, "n" * 120)
    token = made(longest)

    assert len(token) < 1100
    assert place_of(token) == longest
    assert token.path == f"/completions/{token}"


def test_a_token_is_the_same_each_time_and_another_for_everything_else() -> None:
    others = [
        made(key="other"),
        made(number=2),
        made(at=NOW + timedelta(milliseconds=1)),
        made(WaitAddress("acme", "evt-2", "acme.fulfil", "render")),
        made(WaitAddress("acme", "evt-1", "acme.notify", "render")),
        made(WaitAddress("acme", "evt-1", "acme.fulfil", "bind")),
        made(WaitAddress("github", "evt-1", "acme.fulfil", "render")),
    ]
    assert made() == made()
    assert len({made(), *others}) == len(others) + 1
    # 256 bits behind the address, none of them from it.
    assert len({token.partition(".")[2] for token in (made(), *others)}) == len(others) + 1
    assert len(made().partition(".")[2]) == 43


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "a",
        "YQ." + "A" * 43,  # names too little
        "IyMj." + "A" * 43,  # names nothing
        "_w." + "A" * 43,  # no UTF-8
        "A" * 1201 + "." + "A" * 43,
        "YWNtZSNoI24jZQ." + "A" * 42,
        "YWNtZSNoI24jZQ." + "A" * 43 + "\n",
        made(WaitAddress("a" * 129, "e", "h", "n")),
        made(WaitAddress("a", "e" * (ID_LIMIT + 1), "h", "n")),
        made(WaitAddress("a", "e", "h" * 129, "n")),
        made(WaitAddress("a", "e", "h", "n" * 129)),
    ],
)
def test_what_is_no_token_names_nothing(text: str) -> None:
    assert place_of(text) is None


def test_a_token_is_compared_with_all_that_are_known() -> None:
    assert is_one_of(made(), [hashed("other"), hashed(made())])
    assert not is_one_of(made(), [hashed("other")])
    assert not is_one_of(made(), [])
    assert not is_one_of(hashed(made()), [hashed(made())])


# -- forged


@pytest.fixture(scope="module")
def job() -> Labour:
    """A job that is under way, and stays so."""
    labour = Labour()
    labour.begin()
    return labour


@given(st.data())
def test_no_forged_token_completes_anything(job: Labour, data: st.DataObject) -> None:
    token = str(job.token)
    place = data.draw(st.integers(0, len(token) - 1))
    forged = data.draw(
        st.one_of(
            st.text(),
            st.text(ALPHABET).map(lambda text: f"{token.partition('.')[0]}.{text}"),
            ALPHABET.map(lambda letter: token[:place] + letter + token[place + 1 :]),
            st.just(token[:place]),
            st.just(token + token[: place + 1]),
            st.just(made(PLACE, key="guessed")),
        ).filter(lambda text: text != token)
    )
    before = list(job.world.table)
    job.world.plan.operations()

    assert job.complete(forged or "-") is CompletionOutcome.UNKNOWN
    assert job.world.plan.operations() in ([], ["GetItem"])
    assert list(job.world.table) == before


@pytest.mark.parametrize(
    "token",
    ["-", made(PLACE, key="guessed"), made(replace(PLACE, event_id="evt-9"))],
    ids=["no token", "another key's", "no wait"],
)
def test_the_body_of_a_forged_token_is_not_parsed(
    job: Labour, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("it was parsed")

    monkeypatch.setattr(json, "loads", refused)

    assert job.complete(token, b'{"result": [[]]}') is CompletionOutcome.UNKNOWN


def test_a_token_of_an_event_that_has_expired_is_unknown() -> None:
    labour = Labour()
    labour.begin()
    labour.world.clock.advance(hours=24 * 50)

    assert labour.complete() is CompletionOutcome.UNKNOWN


def test_an_id_that_comes_again_is_another_event_with_other_tokens() -> None:
    labour = Labour()
    first = labour.begin()
    labour.complete()
    labour.world.work()
    labour.world.clock.advance(hours=24 * 50)
    labour.world.table.delete_expired(labour.world.now)
    second = labour.begin()

    assert first != second
    assert labour.complete(first) is CompletionOutcome.UNKNOWN
    assert labour.complete(second) is CompletionOutcome.RECORDED


# -- rotated


@pytest.mark.parametrize("times", [1, 2])
def test_a_start_that_is_repeated_under_a_new_key_leaves_no_token_without_use(times: int) -> None:
    labour = Labour()

    def refuse(key: str, token: str) -> None:
        raise RuntimeError("the connection broke")

    labour.starting = refuse
    first = labour.begin()
    for number in range(times):
        labour.world.vault.rotate(COMPLETION_KEY, f"a-new-key-{number}")
    labour.starting = lambda key, token: {"job": key}
    labour.pass_seconds(400)

    assert len(labour.started) == 2
    # The previous key is still live after one rotation, and gone after two.
    assert (labour.token == first) is (times == 1)
    assert labour.complete(first) is CompletionOutcome.RECORDED
    assert labour.complete() is CompletionOutcome.REPEATED


# -- secret


def everything(labour: Labour) -> str:
    """Returns all that was written, anywhere but in the job's own hands."""
    rows = [repr(row) for row in labour.world.table]
    messages = [repr(queue.bodies) for queue in labour.world.queues.values()]
    return "".join([*rows, *messages])


@pytest.mark.parametrize("trouble", ["", "returned", "raised", "refused", "polled"])
def test_a_token_is_in_no_row_and_no_message_whatever_handlers_do_with_it(trouble: str) -> None:
    labour = Labour()

    def start(key: str, token: CompletionToken) -> object:
        if trouble == "raised":
            raise RuntimeError(f"POST {token.path} failed")
        if trouble == "refused":
            raise Permanent(f"422: callback {token.path}")
        return {"callback": token.path} if trouble == "returned" else None

    def ask(job: object) -> object:
        raise RuntimeError(f"asked for {labour.token}") if trouble == "polled" else Permanent("no")

    labour.starting = start
    labour.options = {"poll": ask}
    labour.begin()
    labour.pass_seconds(400)

    assert labour.started
    assert labour.token not in everything(labour)
    assert labour.token.partition(".")[2] not in everything(labour)


def test_a_token_that_its_job_sends_back_is_not_kept() -> None:
    labour = Labour()
    labour.begin()
    told = {"result": {"log": f"called {labour.token.path}"}}

    assert labour.complete(body=told) is CompletionOutcome.RECORDED
    labour.world.work()
    assert labour.returned == [{"log": "called /completions/[token]"}]


def test_a_token_does_not_show_where_it_is_looked_at() -> None:
    token = made()
    assert repr(token) == "Token(…)"
    assert repr({"token": token}) == "{'token': Token(…)}"
    assert f"{token}" == str(token)


def test_the_key_is_in_no_row() -> None:
    labour = Labour()
    labour.begin()
    (key,) = labour.world.vault.live(COMPLETION_KEY)
    assert key not in everything(labour)
    assert labour.world.run().status is Status.DEFERRED
