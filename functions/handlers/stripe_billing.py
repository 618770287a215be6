"""YOURS, an example: fulfils what was paid for, once, however often Stripe tells of it."""

from typing import Final

from pydantic import BaseModel

from webhook_inbox import Context, Event, Router

stripe: Final = Router("stripe")


class Invoice(BaseModel):
    """What fulfilment needs of an invoice."""

    id: str
    amount_paid: int
    currency: str


class InvoiceData(BaseModel):
    """Stripe's envelope: the object an event is about."""

    object: Invoice


class InvoiceEvent(BaseModel):
    """An `invoice.*` event; a body that does not fit is a permanent failure."""

    data: InvoiceData


@stripe.on("invoice.paid", "invoice.payment_succeeded", destinations=["sink"])
def fulfil(event: Event, ctx: Context) -> None:
    """Orders what an invoice paid for.

    Stripe sends both types for one payment, as two events. The key is the payment's, not the
    event's, so both have one effect: whichever comes second is given the order of the first.
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
