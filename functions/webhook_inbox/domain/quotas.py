"""The quotas of DynamoDB and SQS, for the adapters and the doubles."""

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, Final

from webhook_inbox.domain.ports import Item, Outgoing

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
ITEM_BYTES: Final = 400 * 1024
PK_BYTES: Final = 2048
SK_BYTES: Final = 1024
NUMBER_LIMIT: Final = 10**38  # numbers have 38 digits
GET_BATCH: Final = 100
PAGE_BYTES: Final = 1024 * 1024  # of what one query reads

# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
MESSAGE_BYTES: Final = 1024 * 1024  # of one message, and of all messages of one batch
SEND_BATCH: Final = 10
RECEIVE_BATCH: Final = 10
DELAY_SECONDS: Final = 900
HIDE_SECONDS: Final = 43200  # at once, and altogether from the receive
# The characters of XML 1.0; SQS rejects all others.
_TEXT: Final = "[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]+"
# The characters of a message group id and a deduplication id.
_TOKEN: Final = re.compile("[!-~]{1,128}")
NAME_LENGTH: Final = 80  # of a queue's name


def text_size(text: str) -> int:
    """Returns the bytes of the text in UTF-8; raises ValueError on a lone surrogate."""
    return len(text) if text.isascii() else len(text.encode())


def sendable(body: str) -> bool:
    """Returns whether SQS accepts a body: not empty, no control characters, not too long."""
    # The pattern takes 4 ms to compile, and most bodies are printable ASCII.
    plain = body != "" and body.isascii() and body.isprintable()
    text = plain or re.fullmatch(_TEXT, body) is not None
    return text and text_size(body) <= MESSAGE_BYTES


def takes(message: Outgoing, *, fifo: bool = False) -> bool:
    """Returns whether a queue accepts a message; an invalid one can fail its whole batch.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
    """
    if fifo:
        named = _TOKEN.fullmatch(message.group) and _TOKEN.fullmatch(message.dedup)
        return named is not None and message.delay == 0 and sendable(message.body)
    fair = not message.group or _TOKEN.fullmatch(message.group) is not None
    plain = fair and not message.dedup
    return plain and 0 <= message.delay <= DELAY_SECONDS and sendable(message.body)


def token(text: str) -> str:
    """Returns the text as a group or deduplication id: its hash if it has other characters."""
    if _TOKEN.fullmatch(text):
        return text
    return f"sha256:{sha256(text.encode(errors='surrogatepass')).hexdigest()}"


def queue_name(prefix: str, lane: str, *, fifo: bool) -> str:
    """Returns a unique queue name of 1-80 letters, digits, - and _.

    The ".fifo" suffix of a FIFO queue counts towards the 80. `prefix` distinguishes the inboxes of
    an account and region, also where it is longer than the room for a name.
    """
    name, suffix = f"{prefix}{lane}", ".fifo" if fifo else ""
    room = NAME_LENGTH - len(suffix)
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name) or len(name) > room:
        hashed = sha256(name.encode()).hexdigest()[:8]
        name = f"{re.sub(r'[^A-Za-z0-9_-]', '-', name)[: room - 9]}-{hashed}"
    return name + suffix


def batches(messages: Sequence[Outgoing]) -> Iterator[list[Outgoing]]:
    """Yields the messages in batches of up to 10 messages and 1 MB."""
    batch: list[Outgoing] = []
    size = 0
    for message in messages:
        added = text_size(message.body)
        if batch and (len(batch) == SEND_BATCH or size + added > MESSAGE_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(message)
        size += added
    if batch:
        yield batch


def item_size(item: Item) -> int:
    """Returns the size of a row in bytes.

    Raises:
        TypeError: a value is none of str, int, bool, bytes, list and dict.
        ValueError: a text is not Unicode, a number is too large, an attribute has no name.
    """
    return sum(text_size(check_name(name)) + _value_size(value) for name, value in item.items())


def check_number(value: int) -> int:
    """Returns the number; raises ValueError if it has more digits than DynamoDB stores."""
    if not -NUMBER_LIMIT < value < NUMBER_LIMIT:
        raise ValueError("a number has more than 38 digits")
    return value


def check_name(name: str) -> str:
    """Returns the attribute's name; raises ValueError if it is empty or not Unicode."""
    if not text_size(name):
        raise ValueError("an attribute has no name")
    return name


def _value_size(value: Any) -> int:
    match value:
        case str():
            return text_size(value)
        case bool():
            return 1
        case int():
            # A byte for two significant digits, and one more, as DynamoDB counts.
            digits = str(abs(check_number(value))).rstrip("0")
            return (len(digits) + 1) // 2 + 1
        case bytes():
            return len(value)
        case list():
            return 3 + sum(1 + _value_size(entry) for entry in value)
        case dict():
            return 3 + sum(1 + text_size(check_name(k)) + _value_size(v) for k, v in value.items())
        case _:
            raise TypeError(f"a row cannot hold {type(value).__name__}")
