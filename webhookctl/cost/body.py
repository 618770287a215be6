"""A body like those of payment providers, of any size."""

import json
from hashlib import sha256
from typing import Any, Final

# The members of a charge that are mostly null, as Stripe's API reference has them.
_NULLS: Final = (
    *("application", "application_fee", "application_fee_amount", "failure_balance_transaction"),
    *("failure_code", "failure_message", "on_behalf_of", "order", "receipt_number", "review"),
    *("shipping", "source", "source_transfer", "statement_descriptor", "transfer_group"),
)


def sample_body(
    size: int, *, number: int = 0, event_type: str = "invoice.payment_succeeded"
) -> bytes:
    """Returns an event as Stripe writes it, of so many bytes, at least 500.

    An event of 3 KB is a charge; smaller ones have fewer members, larger ones more refunds. Ids,
    amounts and times differ from event to event, by `number`.
    """
    event = {**_event(number), "type": event_type}
    charge = event["data"]["object"]
    for name, value in _members(number):
        charge[name] = value
        if len(_encoded(event)) > size:
            del charge[name]
            break
    charge["refunds"] = [_refund(number, place) for place in range(_refunds(event, number, size))]
    # A customer's words fill the rest.
    words = f"order {_id(number, 'order', 8)} of two annual plans with support, paid by card; "
    short = size - len(_encoded(event))
    charge["description"] = (words * (short // len(words) + 1))[: max(0, short)]
    return _encoded(event)


def _refunds(event: dict[str, Any], number: int, size: int) -> int:
    """Returns how many refunds fit into an event of so many bytes; all have the same length."""
    refunds: list[Any] = event["data"]["object"]["refunds"]
    lengths = []
    for place in range(2):
        refunds.append(_refund(number, place))
        lengths.append(len(_encoded(event)))
    one, two = lengths
    return 0 if one > size else 1 + (size - one) // (two - one)


def _event(number: int) -> dict[str, Any]:
    return {
        "id": f"evt_{_id(number, 'event')}",
        "object": "event",
        "api_version": "2024-06-20",
        "created": 1_795_161_600 + number,
        "data": {
            "object": {
                "id": f"ch_{_id(number, 'charge')}",
                "object": "charge",
                "amount": 1000 + number * 7919 % 100_000,
                "currency": "usd",
                "description": "",
                "refunds": [],
            }
        },
        "livemode": True,
        "pending_webhooks": 1,
        "request": {"id": f"req_{_id(number, 'request', 14)}", "idempotency_key": None},
    }


def _members(number: int) -> list[tuple[str, Any]]:
    address = dict.fromkeys(("city", "line1", "line2", "state"))
    card = {
        "brand": "visa",
        "checks": dict.fromkeys(("address_line1_check", "address_postal_code_check")),
        "country": "US",
        "exp_month": 1 + number % 12,
        "exp_year": 2030,
        "fingerprint": _id(number, "fingerprint", 16),
        "funding": "credit",
        "last4": f"{number * 31 % 10_000:04d}",
        "network": "visa",
    }
    return [
        ("amount_captured", 1000 + number * 7919 % 100_000),
        ("amount_refunded", 0),
        ("balance_transaction", f"txn_{_id(number, 'transaction')}"),
        ("billing_details", {"address": address, "email": None, "name": None, "phone": None}),
        ("captured", True),
        ("created", 1_795_161_590 + number),
        ("customer", f"cus_{_id(number, 'customer', 14)}"),
        *((name, None) for name in _NULLS),
        ("fraud_details", {}),
        ("invoice", f"in_{_id(number, 'invoice')}"),
        ("metadata", {"order_id": str(6735 + number)}),
        ("outcome", {"network_status": "approved_by_network", "risk_level": "normal"}),
        ("paid", True),
        ("payment_intent", f"pi_{_id(number, 'intent')}"),
        ("payment_method", f"pm_{_id(number, 'method')}"),
        ("payment_method_details", {"card": card, "type": "card"}),
        ("receipt_email", f"customer-{number}@example.com"),
        ("receipt_url", f"https://pay.stripe.com/receipts/{_id(number, 'receipt', 60)}"),
        ("refunded", False),
        ("status", "succeeded"),
    ]


def _refund(number: int, place: int) -> dict[str, Any]:
    return {
        "id": f"re_{_id(number, f'refund {place}')}",
        "object": "refund",
        "amount": 100 + (number + place) * 31 % 900,
        "balance_transaction": f"txn_{_id(number, f'refunded {place}')}",
        "created": 1_795_161_600 + number + place,
        "currency": "usd",
        "reason": "requested_by_customer",
        "status": "succeeded",
    }


def _id(number: int, what: str, length: int = 24) -> str:
    text = ""
    while len(text) < length:
        text += sha256(f"{number} {what} {len(text)}".encode()).hexdigest()
    return text[:length]


def _encoded(event: dict[str, Any]) -> bytes:
    # Stripe indents.
    return json.dumps(event, indent=2).encode()
