"""Deployments, webhooks and functions that define small worlds."""

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from simulation.engine.acting import Behavior
from simulation.worlds.scenario import Budget, Deployment, Scenario, Webhook, handler, manifest
from webhook_inbox.domain.manifest import SERIAL, SPLITTER, Order

MAIL: Final = Deployment("mail", manifest(handler("mail")))
ONCE: Final = Deployment("once", manifest(handler("mail", max_attempts=1)))
BOTH: Final = Deployment("both", manifest(handler("mail"), handler("bill", lane="slow")))
GITHUB: Final = Deployment("github", manifest(handler("note", "github")))
LAX: Final = Deployment("lax", manifest(handler("note", "lax")))
TYPED: Final = Deployment("typed", manifest(handler("note", "typed")))
NOTES_IN_ORDER: Final = Deployment(
    "notes in order",
    manifest(handler("note", "github", lane="notes", order=Order(SERIAL, "content"))),
)
FORMS: Final = Deployment("forms", manifest(handler("file", "forms")))
BATCHES: Final = Deployment("batches", manifest(handler("note", "line"), SPLITTER))
ONLY_MAIL: Final = manifest(handler("mail"))
JOURNAL: Final = Deployment("journal", ONLY_MAIL, behaviors={"mail": Behavior(journals=True)})
KEYLESS: Final = Deployment(
    "keyless", ONLY_MAIL, behaviors={"mail": Behavior(journals=True, in_doubt="hold")}
)
LEARNING: Final = Deployment(
    "learning",
    ONLY_MAIL,
    behaviors={"mail": Behavior(journals=True, in_doubt="hold", learns_keys=True)},
)
# Long enough for a second attempt after a lost answer, and over before the one after a death.
FORGETFUL: Final = Deployment(
    "forgetful",
    ONLY_MAIL,
    behaviors={"mail": Behavior(journals=True, lifetime=timedelta(seconds=90))},
)
VARYING: Final = Deployment(
    "varying", ONLY_MAIL, behaviors={"mail": Behavior(journals=True, varies="silently")}
)
RENAMING: Final = Deployment(
    "renaming", ONLY_MAIL, behaviors={"mail": Behavior(journals=True, varies="as arguments")}
)
PROBING: Final = Deployment(
    "probing", ONLY_MAIL, behaviors={"mail": Behavior(journals=True, probes=True)}
)
APPROVED: Final = Deployment(
    "approved",
    ONLY_MAIL,
    behaviors={"mail": Behavior(journals=True, approve=True, in_doubt="hold")},
)
ASKED: Final = Deployment("asked", ONLY_MAIL, behaviors={"mail": Behavior(asks=True)})
SHARED: Final = Deployment(
    "shared", ONLY_MAIL, behaviors={"mail": Behavior(journals=True, shared="pay 1")}
)
FIRST: Final = Webhook("first")
AGAIN: Final = Webhook("again")


def world(name: str, *webhooks: Webhook, on: Deployment = MAIL, **parts: Any) -> Scenario:
    """Returns a small world with the given settings and the defaults of the others."""
    budget = Budget(**parts.pop("budget"))
    return Scenario(
        name, webhooks or (FIRST,), (on, *parts.pop("then", ())), budget=budget, **parts
    )


def wider(scenario: Scenario, more: int) -> Scenario:
    """Returns the same world with `more` further faults and, if it has any, clock jumps."""
    budget = scenario.budget
    jumps = budget.jumps + (more if budget.jumps else 0)
    return replace(scenario, budget=replace(budget, faults=budget.faults + more, jumps=jumps))
