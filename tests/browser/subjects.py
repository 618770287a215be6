"""The subject of each action in the seeded inbox."""

from collections.abc import Callable

from tests.browser.seeded import Names
from webhookctl.console import actions


def _held(event_id: str, handler: str, names: Names) -> dict[str, str]:
    named = {"event_id": event_id, "source": "acme", "handler": handler}
    return {**named, "hold": names.holds[event_id]}


# The fields of the page's address, by the path of the action.
SUBJECTS: dict[str, Callable[[Names], dict[str, str]]] = {
    actions.APPROVE.path: lambda names: _held(names.asking, "acme.fulfil", names),
    actions.HAPPENED.path: lambda names: _held(names.doubtful, "acme.refund", names),
    actions.DENY.path: lambda names: _held(names.asking, "acme.fulfil", names),
    actions.PAUSE_HANDLER.path: lambda _: {"name": "acme.fulfil"},
    actions.RESUME_HANDLER.path: lambda _: {"name": "github.announce"},
    actions.PAUSE_TENANT.path: lambda _: {},
    actions.RESUME_TENANT.path: lambda _: {"name": "acct_9"},
    actions.OPEN.path: lambda _: {"name": "crm"},
    actions.CLOSE.path: lambda _: {"name": "erp"},
    actions.SKIP.path: lambda names: {
        "event_id": names.dead,
        "source": "acme",
        "handler": "acme.fulfil",
    },
    actions.ERASE.path: lambda names: {"event_id": names.done, "source": "acme"},
    actions.SET_SECRET.path: lambda _: {"name": "acme"},
    actions.COMPLETE.path: lambda names: {
        "event_id": names.doubtful,
        "source": "acme",
        "handler": "acme.refund",
        "effect": "refund",
    },
    actions.RELEASE.path: lambda names: {"source": "acme", "id": names.rejected},
}
