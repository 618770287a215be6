"""Forwards every event of the source `shop` to your service."""

from webhook_inbox import Router, forward

shop = Router("shop")
shop.on("*", name="shop.forward")(forward("app"))
