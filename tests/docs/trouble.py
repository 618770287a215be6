"""The failures in the last table of docs/handlers.md, and the runs that meet them."""

from collections.abc import Callable
from typing import Any

from webhook_inbox import Context, Event, Router
from webhook_inbox.testing import Fake, HandlerRun, Inbox

Doing = Callable[[Event, Context], Any]
# Each returns the error text of the run or declaration.
TROUBLES: dict[str, Callable[[], str]] = {}


def of(*rows: str) -> Callable[[Callable[[], str]], Callable[[], str]]:
    """Registers a function as the demonstration of these rows."""

    def noted(function: Callable[[], str]) -> Callable[[], str]:
        TROUBLES.update(dict.fromkeys(rows, function))
        return function

    return noted


def an_inbox(doing: Doing, *, crm: Fake | None = None, **options: Any) -> Inbox:
    router = Router("x")
    router.on("go", name="x.go", **{"backoff": "fast", **options})(doing)
    return Inbox(router, destinations={"crm": crm or Fake()})


def a_run(doing: Doing, *, crm: Fake | None = None, **options: Any) -> HandlerRun:
    return an_inbox(doing, crm=crm, **options).run("x.go", {})


def refused(given: Doing, status: str = "dead_letter") -> str:
    """Returns the error of a run that called nothing at its destination."""
    crm = Fake()
    run = a_run(given, crm=crm)
    assert (run.status, crm.done) == (status, [])
    return run.error


def posted(ctx: Context) -> Any:
    return ctx.http("crm").post("/notes", json={}, effect=None)
