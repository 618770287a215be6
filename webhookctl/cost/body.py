"""A body like those of payment providers, of any size."""

import json
from hashlib import sha256
from typing import Any, Final

# Amounts, ids and times differ in each event, as they do in real ones; names do not.
_LINE: Final = 245


def sample_body(
    size: int, *, number: int = 0, event_type: str = "invoice.payment_succeeded"
) -> bytes:
    """Returns a JSON object of so many bytes, at least 350: an invoice with as many lines as fit.

    `number` distinguishes events.
    """
    event = {**_event(number), "type": event_type}
    count = max(0, (size - len(_encoded(event))) // _LINE)
    event["data"]["object"]["lines"]["data"] = [_line(number, each) for each in range(count)]
    short = size - len(_encoded(event))
    event["data"]["object"]["description"] = _hex(number, "description", max(0, short))
    return _encoded(event)


def _event(number: int) -> dict[str, Any]:
    return {
        "id": f"evt_1{_hex(number, 'event', 23)}",
        "object": "event",
        "created": 1_795_161_600 + number,
        "livemode": True,
        "data": {
            "object": {
                "id": f"in_1{_hex(number, 'invoice', 23)}",
                "object": "invoice",
                "amount_paid": number * 7919 % 100_000,
                "currency": "usd",
                "customer": f"cus_{_hex(number, 'customer', 14)}",
                "description": "",
                "lines": {"object": "list", "data": []},
            }
        },
    }


def _line(number: int, place: int) -> dict[str, Any]:
    return {
        "id": f"il_1{_hex(number, f'line {place}', 23)}",
        "object": "line_item",
        "amount": int(_hex(number, f"amount {place}", 4), 16),
        "currency": "usd",
        "description": "1 x Plan (at $20.00 / month)",
        "invoice_item": f"ii_1{_hex(number, f'item {place}', 23)}",
        "period": {"start": 1_795_161_600 + number + place, "end": 1_797_753_600 + number + place},
        "quantity": 1,
    }


def _hex(number: int, what: str, length: int) -> str:
    text = ""
    while len(text) < length:
        text += sha256(f"{number} {what} {len(text)}".encode()).hexdigest()
    return text[:length]


def _encoded(event: dict[str, Any]) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode()
