"""The example that announces issues and counts events."""

import pytest

from webhook_inbox.testing import Inbox

ISSUE = "events/ingest/github/issues.opened__label.json"


def test_an_issue_is_announced(inbox: Inbox) -> None:
    run = inbox.run("github.announce", ISSUE)
    [message] = inbox.destinations["sink"].done
    assert (run.status, message.path) == ("done", "/messages")
    assert message.json["text"].startswith("#")
    assert message.key == "announce:github.announce:github:evt-1"


@pytest.mark.parametrize(
    ("sample", "type_"), [("issues.opened__label", "issues.opened"), ("push__main", "push")]
)
def test_every_event_is_counted(inbox: Inbox, sample: str, type_: str) -> None:
    run = inbox.run("github.count", f"events/ingest/github/{sample}.json")
    [count] = inbox.destinations["sink"].done
    assert (run.status, count.path, count.json) == ("done", "/counts", {"type": type_})


def test_the_async_one_keeps_its_effect_over_a_crash_as_well(inbox: Inbox) -> None:
    run = inbox.run("github.count", ISSUE, crash_before_commit="count").settle()
    assert (run.status, run.effects["count"].starts) == ("done", 2)
    assert len(inbox.destinations["sink"].done) == 1


def test_a_sink_that_refuses_the_message_is_not_asked_again(inbox: Inbox) -> None:
    inbox.destinations["sink"].answers(422)
    run = inbox.run("github.announce", ISSUE).settle()
    assert (run.status, run.attempts) == ("dead_letter", 1)
