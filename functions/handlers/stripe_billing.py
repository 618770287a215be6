"""YOURS, an example: fulfils what was paid for, once, however often Stripe tells of it."""

from typing import Final

from pydantic import BaseModel

from handlers._downstream import post
from webhook_inbox.handling import Context, Event, Router

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


@stripe.on("invoice.payment_succeeded", max_attempts=8)
def fulfil(event: Event, ctx: Context) -> None:
    """Orders what an invoice paid for.

    Not for `invoice.paid` as well: Stripe sends both for one payment, as two events.
    """
    invoice = event.parse(InvoiceEvent).data.object
    order = {"invoice": invoice.id, "amount": invoice.amount_paid, "currency": invoice.currency}
    post(ctx, "/orders", effect="create-order", body=order)


@stripe.on("checkout.session.completed")
def welcome(event: Event, ctx: Context) -> None:
    """Greets a new customer."""
    session = event.json()["data"]["object"]
    body = {"session": session.get("id"), "customer": session.get("customer")}
    post(ctx, "/welcomes", effect="welcome", body=body)
