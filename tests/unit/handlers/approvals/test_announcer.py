"""Messages about requests: one for each person, repeated until it is sent."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.support.approving import API_URL, ApprovingWorld, given
from tests.unit.support.people import person
from webhook_inbox import Approval
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.manifest import ApproversSpec, DestinationSpec
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.ports import NoTopics
from webhook_inbox.handlers.approvals.hold import ApprovalRequest
from webhook_inbox.handlers.approvals.links import read_link
from webhook_inbox.handlers.approvals.messages import Announcement, plain_json, slack, teams
from webhook_inbox.handlers.approvals.request_row import DecisionOutcome, RequestRows
from webhook_inbox.ledger.pauses import PauseRequest, pause

LINK = "https://inbox.example/approvals/v1.x.y"
TOPIC = "arn:aws:sns:eu-central-1:123456789012:finance"


def test_each_person_gets_a_link_of_their_own() -> None:
    world = ApprovingWorld()
    request = world.asked()
    assert world.chat.paths == ["/ann", "/bob"]
    for name, (_, body) in zip(("ann", "bob"), world.chat.sent, strict=True):
        link = body.pop("link")
        assert link.startswith(f"{API_URL}/approvals/")
        found = read_link(("a-key-for-links",), link.rpartition("/")[2])
        assert found is not None
        assert (found.address, found.person) == (request.address, name)
        assert found.expires_at == request.until.replace(microsecond=0) + timedelta(seconds=1)
        assert body == {
            "question": "Approve refund of acme.fulfil for acme evt-1?",
            "person": name,
            "effect": "refund",
            "arguments": {"order": "o-1", "cents": 20_000},
            "count": 2,
            "expires_at": "2026-01-03T00:00:00Z",
        }


def test_a_person_who_was_told_is_not_told_again() -> None:
    world = ApprovingWorld()
    world.asked()
    world.replay(event_ids=("evt-1",))
    world.work()
    assert (world.status, world.chat.paths) == (Status.HELD, ["/ann", "/bob"])


def test_a_message_that_fails_is_sent_later_and_the_run_stays_held() -> None:
    world = ApprovingWorld()
    world.chat.down = {"/ann"}
    world.asked()
    held = ApprovalRequest(world.held())
    assert world.chat.paths == ["/bob"]
    assert held.unannounced == {"ann": "POST [address]: 503"}
    assert world.run().attempt_count == 0

    world.chat.down = set()
    world.wait(minutes=2)
    assert world.chat.paths == ["/bob", "/ann"]
    assert ApprovalRequest(world.held()).unannounced == {}


def test_repetitions_become_rarer() -> None:
    world = ApprovingWorld(
        ApproversSpec("finance", {"ann": "chat:/ann"}), approval=Approval("finance")
    )
    world.chat.down = {""}
    world.asked()
    world.wait(hours=24)
    # After 1, 2, 4, 8, 16, 32 minutes, then once an hour.
    assert 25 <= world.request().failures <= 30
    assert world.status is Status.HELD


def test_a_request_without_a_key_or_a_url_says_so() -> None:
    world = ApprovingWorld()
    world.vault.remove("inbox/approval-key")
    world.asked()
    why = "secret 'inbox/approval-key' or API_URL is not set: deploy again"
    assert ApprovalRequest(world.held()).unannounced == {"ann": why, "bob": why}


def test_a_person_without_a_destination_is_named_with_the_remedy() -> None:
    world = ApprovingWorld(ApproversSpec("finance", {"ann": "gone:/ann", "bob": f"sns:{TOPIC}"}))
    world.asked()
    told = ApprovalRequest(world.held()).unannounced
    assert told["ann"] == "destination 'gone' is not in inbox.toml: add [destinations.gone]"
    assert told["bob"].startswith("[address] cannot be reached from here")


def test_an_attempt_without_time_sends_later() -> None:
    world = ApprovingWorld()

    def slow(event: object, ctx: object) -> None:
        world.clock.advance(seconds=45)
        world.refund(event, ctx)  # type: ignore[arg-type]

    world.behaviours["acme.fulfil"] = slow
    world.asked()
    told = set(ApprovalRequest(world.held()).unannounced.values())
    assert (world.chat.sent, told) == ([], {"too little time is left in the attempt"})


def test_a_message_that_cannot_be_recorded_is_repeated_and_the_attempt_has_not_failed() -> None:
    world = ApprovingWorld(max_attempts=1)
    world.deliver()
    # After the lease: the note of the first message.
    world.plan.fail("UpdateItem", Fault.BEFORE, skip=1, times=1)
    world.work()
    assert ApprovalRequest(world.held()).unannounced["ann"].startswith("sent, and not recorded")
    world.wait(minutes=30)
    assert sorted(set(world.chat.paths)) == ["/ann", "/bob"]
    assert len(world.chat.sent) == 3
    assert world.status is Status.HELD


def test_secrets_and_personal_values_are_not_shown() -> None:
    world = ApprovingWorld()
    world.args = {"note": "a-secret-of-the-provider"}
    world.secrets.get("acme")
    world.asked()
    assert world.view().arguments == '{"note": "[secret]"}'


# -- a decision while the run is being held


def test_a_decision_during_the_attempt_is_found_at_its_end() -> None:
    world = ApprovingWorld(approval=Approval("finance"))

    def decided(path: str, **_: object) -> None:
        if path == "/bob":
            assert world.says("ann") is DecisionOutcome.RECORDED

    world.chat.post = decided  # type: ignore[method-assign,assignment]
    world.asked()
    world.work()
    assert (world.status, len(world.refunds)) == (Status.DONE, 1)


def test_a_worker_lost_before_that_look_delays_the_run_by_an_hour() -> None:
    world = ApprovingWorld(approval=Approval("finance"))
    world.asked()
    # As if the person had read the run before it was held.
    RequestRows(world.table).decide(world.request(), "ann", given(world), mark="a")
    world.wait(minutes=58)
    assert world.status is Status.HELD
    world.wait(minutes=4)
    assert (world.status, len(world.refunds)) == (Status.DONE, 1)


def test_a_paused_handler_is_not_woken() -> None:
    world = ApprovingWorld()
    request = world.asked()
    paused = PauseRequest("acme.fulfil", person("ops"), "looked at", world.now)
    pause(world.table, world.randomness, paused)
    world.look_at(request.until + timedelta(minutes=1))
    assert world.status is Status.HELD


# -- the formats


def message(**args: object) -> Announcement:
    world = ApprovingWorld()
    world.args = args
    return Announcement(world.asked(), "ann", LINK)


def test_slack_shows_arguments_as_plain_text() -> None:
    path, body = slack(message(note="<!channel> *now*"), "U0123456")
    assert (path, body["channel"], body["unfurl_links"]) == ("/chat.postMessage", "U0123456", False)
    said, shown, asked = body["blocks"]
    assert said["text"]["text"] == "*Approve refund of acme.fulfil for acme evt-1?*"
    assert shown["text"] == {"type": "plain_text", "text": '{"note": "<!channel> *now*"}'}
    assert asked["text"]["text"].endswith(f"\n<{LINK}|Open the request>")


def test_long_arguments_refer_to_the_page() -> None:
    _, body = slack(message(note="x" * 5000), "U0123456")
    text = body["blocks"][1]["text"]["text"]
    assert text.endswith("x… (the page shows all of it)")
    assert len(text) < 3000


def test_teams_gets_a_card_without_markdown() -> None:
    path, body = teams(message(note="[a](https://b)"), "/workflows/1?sig=2")
    card = body["attachments"][0]["content"]
    assert path == "/workflows/1?sig=2"
    assert {block["type"] for block in card["body"]} == {"RichTextBlock"}
    assert card["actions"] == [{"type": "Action.OpenUrl", "title": "Open the request", "url": LINK}]


def test_an_email_is_plain_text() -> None:
    text = message(order="o-1").text
    assert text.splitlines()[0] == "Approve refund of acme.fulfil for acme evt-1?"
    assert '{"order": "o-1"}' in text
    assert text.endswith(f"\n{LINK}\n")


def test_another_destination_gets_json() -> None:
    path, body = plain_json(message(order="o-1"), "/hooks")
    assert (path, body["arguments"], body["link"]) == ("/hooks", {"order": "o-1"}, LINK)


def test_slack_refuses_with_the_status_200() -> None:
    people = ApproversSpec("finance", {"ann": "slack:U0123456"})
    world = ApprovingWorld(people, approval=Approval("finance"))
    destinations = {"slack": DestinationSpec("slack", "https://slack.com/api")}
    world.deploy(replace(world.manifest, destinations=destinations))
    world.chat.answer = {"ok": False, "error": "channel_not_found"}
    world.asked()
    why = ApprovalRequest(world.held()).unannounced
    assert why == {"ann": "Slack answered 'channel_not_found'"}


def test_topics_get_a_subject_and_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    published: list[tuple[str, str, str]] = []

    def publish(_: NoTopics, arn: str, subject: str, text: str) -> None:
        published.append((arn, subject, text))

    monkeypatch.setattr(NoTopics, "publish", publish)
    world = ApprovingWorld(
        ApproversSpec("finance", {"ann": f"sns:{TOPIC}"}), approval=Approval("finance")
    )
    world.asked()
    [(arn, subject, text)] = published
    assert (arn, subject) == (TOPIC, "Approve refund of acme.fulfil for acme evt-1?")
    assert API_URL in text
