"""An example: fulfils a payment once, although Stripe sends two events for it."""

from typing import Final

from pydantic import BaseModel

from webhook_inbox import Context, Event, Router

stripe: Final = Router("stripe")


class Invoice(BaseModel):
    """The fields of an invoice that fulfilment needs."""

    id: str
    amount_paid: int
    currency: str


class InvoiceData(BaseModel):
    """Stripe's envelope of an object."""

    object: Invoice


class InvoiceEvent(BaseModel):
    """An `invoice.*` event; a mismatch is a permanent failure."""

    data: InvoiceData


@stripe.on("invoice.paid", "invoice.payment_succeeded", destinations=["sink"])
def fulfil(event: Event, ctx: Context) -> None:
    """Creates the order of a paid invoice.

    Stripe sends both types for one payment, as two events. The key names the payment, so both share
    one effect: the second receives the result of the first.
    """
    invoice = event.parse(InvoiceEvent).data.object
    wanted = {"invoice": invoice.id, "amount": invoice.amount_paid, "currency": invoice.currency}
    ctx.effect(
        "create-order",
        lambda _: ctx.http("sink").post("/orders", json=wanted).json(),  # which sends the key
        key=f"invoice:{invoice.id}",
        args=wanted,
    )


@stripe.on("checkout.session.completed", destinations=["sink"])
def welcome(event: Event, ctx: Context) -> None:
    """Greets a new customer."""
    session = event.json()["data"]["object"]
    body = {"session": session.get("id"), "customer": session.get("customer")}
    ctx.http("sink").post("/welcomes", json=body, effect="welcome")
