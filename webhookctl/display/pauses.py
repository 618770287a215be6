"""Shows the pause of a handler or a tenant."""

from webhook_inbox.client.handlers import HandlerState
from webhook_inbox.client.tenants import TenantState
from webhook_inbox.client.times import iso


def pause_text(state: HandlerState | TenantState) -> str:
    """Returns the cell of a table, "" where it is not paused."""
    if not state.paused:
        return ""
    return f"since {iso(state.paused_at)} by {state.paused_by}: {state.reason}"
