"""Two answers that differ have different keys and lead to different nodes."""

from copy import deepcopy
from datetime import UTC, datetime, timedelta

import pytest

from simulation.engine.stepping import Answer, Call, Stepping
from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.ports import Backlog, Message, Outgoing, Page

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MESSAGE = Message("m-1", "lane/m-1/1", "{}", NOON, 1)

ANSWERS = {
    "nothing": Answer(None),
    "zero": Answer(0),
    "one": Answer(1),
    "true": Answer(True),
    "a float": Answer(1.0),
    "a text": Answer("1"),
    "bytes": Answer(b"1"),
    "a row": Answer({"pk": "event#a", "count": 1}),
    "another row": Answer({"pk": "event#a", "count": 2}),
    "a row without": Answer({"pk": "event#a"}),
    "rows": Answer([{"pk": "event#a"}, {"pk": "event#b"}]),
    "no rows": Answer([]),
    "noon": Answer(NOON),
    "a moment later": Answer(NOON + timedelta(milliseconds=1)),
    "a message": Answer(MESSAGE),
    "its next receive": Answer(Message("m-1", "lane/m-1/2", "{}", NOON, 2)),
    "messages": Answer([MESSAGE]),
    "a page": Answer(Page([{"pk": "event#a"}])),
    "a page before another": Answer(Page([{"pk": "event#a"}], {"pk": "event#a"})),
    "an empty page": Answer(Page([])),
    "an empty queue": Answer(Backlog(0, None)),
    "a queue": Answer(Backlog(1, timedelta(seconds=1))),
    "an older queue": Answer(Backlog(1, timedelta(seconds=2))),
    "refused": Answer([Outgoing("{}")]),
    "refused with delay": Answer([Outgoing("{}", 5)]),
    "a secret": Answer(("whsec",)),
    "unavailable": Answer(("aws", "Call", "no"), Unavailable),
    "failed on nothing": Answer((None,), ConditionFailed),
    "failed on a row": Answer(({"pk": "event#a"},), ConditionFailed),
}


def test_no_two_different_answers_have_the_same_key() -> None:
    keys = {name: answer.key for name, answer in ANSWERS.items()}
    assert len(set(keys.values())) == len(keys)


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_an_answer_that_is_equal_has_an_equal_key(name: str) -> None:
    value, error = ANSWERS[name]
    assert Answer(deepcopy(value), error).key == ANSWERS[name].key


def test_an_answer_that_nothing_tells_apart_is_refused() -> None:
    steps = Stepping()
    start = steps.begin("asks", lambda ask: ask(Call("port", "first")))
    with pytest.raises(TypeError, match="no key for"):
        steps.advance(start, Answer(object()))
