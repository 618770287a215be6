"""An example: opens an alert for an invoice that cannot be finalized, and resolves it.

Events API v2 deduplicates by `dedup_key` in the body: a second trigger joins the open alert. The
trigger and the resolution use the invoice's id as the key. A trigger that arrives after its
resolution would open an alert for ever; `latest` skips it.

https://developer.pagerduty.com/docs/events-api-v2/trigger-events/
"""

from typing import Any, Final

from webhook_inbox import Context, Event, Router, latest

pagerduty: Final = Router("pagerduty", source="stripe")

FAILED: Final = "invoice.finalization_failed"
RECOVERED: Final = "invoice.finalized"


@pagerduty.on(
    FAILED, RECOVERED, order=latest("data.object.id", "created"), destinations=["pagerduty"]
)
def page(event: Event, ctx: Context) -> None:
    """Opens or resolves the alert of an invoice."""
    invoice = event.json()["data"]["object"]
    failed = event.type == FAILED
    alert: dict[str, Any] = {
        "routing_key": ctx.secret("pagerduty"),
        "event_action": "trigger" if failed else "resolve",
        "dedup_key": f"stripe-invoice-{invoice['id']}",
    }
    if failed:
        summary = f"Invoice {invoice['id']} cannot be finalized"
        alert["payload"] = {"summary": summary, "source": "stripe", "severity": "error"}
    ctx.http("pagerduty").post("/v2/enqueue", json=alert, effect="page")
