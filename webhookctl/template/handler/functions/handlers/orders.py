"""Handlers of the source `shop`."""

from typing import Any

from webhook_inbox import Context, Event, Router

shop = Router("shop")


@shop.on("order.paid")
def confirm(event: Event, ctx: Context) -> None:
    """Confirms a paid order, once.

    A failed attempt is retried with backoff, from the top of this function. An effect that has
    happened is not repeated: later attempts receive its recorded result.
    """
    order = event.json()
    ctx.effect("confirm", lambda key: send_confirmation(order, key))


def send_confirmation(order: dict[str, Any], key: str) -> dict[str, str]:
    """Replace this: call your service, and send the idempotency key with the request.

    The key is the same in every attempt and replay of this event.
    """
    print(f"confirmed order {order['id']} with idempotency key {key}")
    return {"order": order["id"]}
