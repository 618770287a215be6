"""The messages that announce a request for approval: Slack, Teams and plain JSON."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from webhook_inbox.domain.idempotency import key_of
from webhook_inbox.domain.printable import printable
from webhook_inbox.handlers.approvals.request_row import RequestRow

# Slack allows 3,000 characters in a block. https://docs.slack.dev/reference/block-kit/blocks/section-block/
SHOWN: Final = 2000


@dataclass(frozen=True, slots=True)
class Announcement:
    """The message for one person; `link` is for that person only."""

    request: RequestRow
    person: str
    link: str

    @property
    def key(self) -> str:
        """The idempotency key, the same in each repetition of the message."""
        return key_of("announce", *self.request.key, self.person)

    @property
    def question(self) -> str:
        """One line in which every character shows."""
        return printable(self.request.question)

    @property
    def arguments(self) -> str:
        """The arguments as they fit into a message; the page shows all of them."""
        # An invisible character could make one amount look like another.
        text = printable(self.request.row["arguments"])
        return text if len(text) <= SHOWN else f"{text[:SHOWN]}… (the page shows all of it)"

    @property
    def terms(self) -> str:
        """How many approvals are needed, and until when."""
        request = self.request
        return f"Needs {request.count} of {request.group}, until {request.until:%Y-%m-%d %H:%M} UTC"

    @property
    def text(self) -> str:
        """The whole message as plain text."""
        return f"{self.question}\n\n{self.arguments}\n\n{self.terms}\n{self.link}\n"


def slack(message: Announcement, address: str) -> tuple[str, Any]:
    """Returns the path and the body of `chat.postMessage`; the address is a user or channel."""
    question = _section(f"*{_escaped(message.question)}*")
    arguments = {"type": "section", "text": {"type": "plain_text", "text": message.arguments}}
    terms = _section(f"{_escaped(message.terms)}\n<{message.link}|Open the request>")
    body = {
        "channel": address,
        "text": _escaped(message.question),
        "blocks": [question, arguments, terms],
        "unfurl_links": False,
    }
    return "/chat.postMessage", body


def teams(message: Announcement, address: str) -> tuple[str, Any]:
    """Returns the path and the body for a Teams workflow; the address is the path of its URL."""
    texts = (message.question, message.arguments, message.terms)
    # A RichTextBlock shows text as it is; a TextBlock would render Markdown of the arguments.
    blocks = [
        {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text}]} for text in texts
    ]
    card = {
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": blocks,
        "actions": [{"type": "Action.OpenUrl", "title": "Open the request", "url": message.link}],
    }
    kind = "application/vnd.microsoft.card.adaptive"
    return address, {"type": "message", "attachments": [{"contentType": kind, "content": card}]}


def plain_json(message: Announcement, address: str) -> tuple[str, Any]:
    """Returns the path and the body for any other destination."""
    row = message.request.row
    body = {
        "question": message.question,
        "person": message.person,
        "effect": row["effect"],
        "arguments": json.loads(row["arguments"]) if _is_json(row["arguments"]) else message.text,
        "count": message.request.count,
        "expires_at": f"{message.request.until:%Y-%m-%dT%H:%M:%SZ}",
        "link": message.link,
    }
    return address, body


# By the first word of the destination's name: "slack" or "slack-eu".
FORMATS: Final[Mapping[str, Callable[[Announcement, str], tuple[str, Any]]]] = {
    "slack": slack,
    "teams": teams,
}


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def _escaped(text: str) -> str:
    """Returns a text without Slack's links and mentions."""
    # https://docs.slack.dev/messaging/formatting-message-text/
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _is_json(text: str) -> bool:
    """Returns whether the shown arguments are JSON; hidden values may have changed them."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
