"""YOURS, an example: pages where an invoice cannot be finalized, and resolves once it is.

Events API v2 knows a repetition by `dedup_key`, a field of the body: while the alert is open, a
second trigger joins it. So trigger and resolution have one key that both events can make, the
invoice's. A trigger that came late, after its resolution, would open an alert for ever: `latest`
skips it.

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
