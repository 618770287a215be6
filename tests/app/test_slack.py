"""The example of a downstream without keys: Slack is asked whether it has the message."""

from collections.abc import Callable
from typing import Any

import pytest

from webhook_inbox.testing import Fake, HandlerRun, Inbox, Request

FAILED = {
    "id": "evt_1",
    "type": "invoice.payment_failed",
    "data": {"object": {"id": "in_1", "number": "0D5A-3", "customer_email": "a@example.com"}},
}
POST, HISTORY = "/api/chat.postMessage", "/api/conversations.history"


class Slack:
    """Slack as far as the example knows it: a channel, and its history in pages of two."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.fake = Fake().handles(self._answer)

    def _answer(self, request: Request) -> Any:
        if request.path == POST:
            body = request.json
            self.messages.append({"ts": f"{len(self.messages)}.0", "metadata": body["metadata"]})
            return {"ok": True, "ts": self.messages[-1]["ts"]}
        assert "include_all_metadata=true" in request.path
        start = int(request.path.partition("cursor=")[2] or 0)
        more = start + 2 < len(self.messages)
        return {
            "ok": True,
            "messages": self.messages[start : start + 2],
            "response_metadata": {"next_cursor": str(start + 2) if more else ""},
        }

    def chatter(self, number: int) -> None:
        """Lets others say something."""
        for index in range(number):
            other = {"metadata": {"event_type": "webhook_inbox", "event_payload": {"key": "x"}}}
            self.messages.append({"ts": f"o{index}", **(other if index % 2 else {})})

    def asked(self) -> list[str]:
        return [request.path.partition("?")[0] for request in self.fake.requests]


@pytest.fixture
def slack() -> Slack:
    return Slack()


@pytest.fixture
def inbox(production: Callable[..., Inbox], slack: Slack) -> Inbox:
    return production(slack=slack.fake)


def tell(inbox: Inbox, **crash: str) -> HandlerRun:
    return inbox.run("slack.tell", FAILED, **crash)  # type: ignore[arg-type]


def test_a_failed_payment_is_told_once(inbox: Inbox, slack: Slack) -> None:
    run = tell(inbox)

    assert (run.status, slack.asked()) == ("done", [POST])
    [request] = slack.fake.requests
    assert request.json["text"] == "Payment of 0D5A-3 by a@example.com failed"
    assert request.json["metadata"]["event_payload"] == {"key": "tell:slack.tell:stripe:evt_1"}
    assert request.headers["authorization"] == "Bearer testing-slack-api"
    assert request.key == ""


@pytest.mark.parametrize("chatter", [0, 3, 4])
def test_a_message_that_is_there_is_not_posted_again(
    inbox: Inbox, slack: Slack, chatter: int
) -> None:
    slack.chatter(chatter)
    run = tell(inbox, crash_before_commit="tell").settle()

    assert run.status == "done"
    assert slack.asked().count(POST) == 1
    assert run.effects["tell"].result == {"ok": True, "ts": f"{chatter}.0"}


def test_a_message_that_is_not_there_is_posted(inbox: Inbox, slack: Slack) -> None:
    slack.chatter(3)
    run = tell(inbox, crash_before="tell").settle()
    assert (run.status, slack.asked()) == ("done", [HISTORY, HISTORY, POST])


def test_a_stalled_post_is_looked_for(inbox: Inbox, slack: Slack) -> None:
    slack.fake.stalls()
    run = tell(inbox).settle()
    assert (run.status, len(slack.messages)) == ("done", 1)
    assert slack.asked() == [POST, HISTORY]


def test_a_history_too_long_to_be_read_decides_nothing(inbox: Inbox, slack: Slack) -> None:
    slack.chatter(40)
    run = tell(inbox, crash_before="tell")
    inbox.advance(minutes=8)
    assert "has too many messages since then to search" in run.error
    assert POST not in slack.asked()


@pytest.mark.parametrize(
    ("error", "status", "effect"),
    [
        ("channel_not_found", "dead_letter", "failed"),
        ("invalid_auth", "dead_letter", "failed"),
        ("ratelimited", "failed", "failed"),
        ("rate_limited", "failed", "failed"),
        ("internal_error", "failed", "started"),
        ("fatal_error", "failed", "started"),
    ],
)
def test_slack_says_200_to_what_it_refuses(
    inbox: Inbox, slack: Slack, error: str, status: str, effect: str
) -> None:
    slack.fake.answers(200, {"ok": False, "error": error})
    run = tell(inbox)
    assert (run.status, run.effects["tell"].status) == (status, effect)
    assert run.error.endswith(f"slack: {error}")


def test_at_most_one_message_a_second_is_posted(inbox: Inbox, slack: Slack) -> None:
    began = inbox.now
    runs = [inbox.run("slack.tell", {**FAILED, "id": f"evt_{number}"}) for number in range(4)]
    inbox.settle()
    assert {run.status for run in runs} == {"done"}
    assert (inbox.now - began).total_seconds() >= 2
    assert len(slack.messages) == 4
