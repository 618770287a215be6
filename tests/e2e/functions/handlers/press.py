"""A handler that starts a job at the sink and waits for its completion."""

from typing import Any, Final

from webhook_inbox import Context, Event, Router

press: Final = Router("press", source="lab")


@press.on("print", backoff="fast", max_attempts=3)
def bind(event: Event, ctx: Context) -> None:
    """Prints, as the test says, and binds what was printed."""

    def start(key: str, token: Any) -> Any:
        work = {"event": event.id, "callback": token.path}
        return ctx.http("sink").post("/press", json=work).json()["id"]

    printed = ctx.wait_for("print", start)
    ctx.http("sink").post("/bindery", json={"printed": printed}, effect="bind")
