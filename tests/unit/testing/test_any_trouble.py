"""Whatever a destination does and wherever the worker dies: once where keys are honoured."""

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from webhook_inbox import Backoff, Context, Event, Router
from webhook_inbox.testing import Fake, Inbox

EFFECTS = ("first", "second", "third")
TROUBLES: dict[str, Callable[[Fake], Any]] = {
    "refuses": lambda fake: fake.refuses(),
    "stalls": lambda fake: fake.stalls(),
    "stalls before": lambda fake: fake.stalls(done=False),
    "breaks": lambda fake: fake.breaks(),
    "breaks before": lambda fake: fake.breaks(done=False),
    "500": lambda fake: fake.answers(500),
    "500 and done": lambda fake: fake.answers(500, done=True),
    "429": lambda fake: fake.answers(429, headers={"Retry-After": "3"}),
    "503": lambda fake: fake.answers(503),
}
CRASHES = ("crash_before", "crash_before_commit", "crash_after")


def router() -> Router:
    made = Router("three")

    @made.on("go", max_attempts=30, backoff=Backoff(base=1, factor=1, cap=1))
    def act(event: Event, ctx: Context) -> None:
        for name in EFFECTS:
            ctx.http("crm").post(f"/{name}", json={"event": event.id}, effect=name)

    return made


troubles = st.lists(st.sampled_from(sorted(TROUBLES)), max_size=6)
crashes = st.none() | st.tuples(st.sampled_from(CRASHES), st.sampled_from(EFFECTS[:1]))


@settings(max_examples=60)
@given(troubles=troubles, crash=crashes)
def test_each_effect_happens_once_where_keys_are_honoured(
    troubles: list[str], crash: tuple[str, str] | None
) -> None:
    crm = Fake(breaker=False)
    inbox = Inbox(router(), destinations={"crm": crm})
    first = {crash[0]: crash[1]} if crash else {}
    # A worker that dies at its first effect comes to it before any trouble does.
    if not crash:
        for trouble in troubles:
            TROUBLES[trouble](crm)
    run = inbox.run("three.act", {}, **first)  # type: ignore[arg-type]
    if crash:
        for trouble in troubles:
            TROUBLES[trouble](crm)

    run.settle()

    assert run.status == "done"
    assert [request.path for request in crm.done] == [f"/{name}" for name in EFFECTS]
    assert all(run.effects[name].committed for name in EFFECTS)


@settings(max_examples=40)
@given(troubles=troubles)
def test_each_effect_happens_at_most_once_where_there_are_none(troubles: list[str]) -> None:
    crm = Fake(idempotency=False, breaker=False, honours_keys=False)
    for trouble in troubles:
        TROUBLES[trouble](crm)

    run = Inbox(router(), destinations={"crm": crm}).run("three.act", {}).settle()

    paths = [request.path for request in crm.done]
    assert len(paths) == len(set(paths))
    assert run.status in {"done", "held"}
    in_doubt = [name for name in run.effects if run.effects[name].in_doubt]
    assert (run.status == "held") is bool(in_doubt)
