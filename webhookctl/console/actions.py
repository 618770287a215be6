"""The actions of the console: each one is a command, with a page that explains and confirms it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webhook_inbox.client.errors import OperationError, WrongArgument
from webhook_inbox.client.holds import HeldRun, HoldDecision
from webhook_inbox.client.rejected import RejectionFilter
from webhook_inbox.client.runs import JobResult
from webhook_inbox.client.suggestions import Command as CommandLine
from webhook_inbox.client.suggestions import Program
from webhook_inbox.domain.printable import counted
from webhookctl.checkout import Checkout, declared_manifest
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.console.requests import Form, Pages
from webhookctl.console.views import Views, event_path
from webhookctl.display.erasure import erasure_notes
from webhookctl.display.rejected import why_text
from webhookctl.display.run_changes import completion_note, skip_note
from webhookctl.errors import CommandError

Values = dict[str, Any]
# Performs an action with the values of its form, and returns what happened.
Perform = Callable[[ConsoleInbox, Values], str]
# Parameters that a command takes as its argument.
ARGUMENTS: Final = frozenset({"event_id", "name", "id"})
# The words for the values of options that a form asks for.
PLACEHOLDERS: Final = {"result": "JSON", "reason": "TEXT"}


def _decided(decision: HoldDecision) -> str:
    """Returns what a decision did: one of several approvals leaves the run held."""
    people = decision.hold.people
    approved = f"; {len(people.approved_by)} of {people.count} approved" if people else ""
    outcome = decision.outcome if decision.committed is None else "happened"
    return f"Recorded as {outcome}{approved}."


def _approve(inbox: ConsoleInbox, values: Values) -> str:
    return _decided(inbox.client.holds.approve(**values, by=inbox.actor))


def _happened(inbox: ConsoleInbox, values: Values) -> str:
    names = {name: value for name, value in values.items() if name != "happened"}
    confirm = inbox.client.holds.confirm_effect
    return _decided(confirm(**{**names, "result": _parsed(values["result"])}, by=inbox.actor))


def _parsed(result: str) -> Any:
    try:
        return json.loads(result)
    except ValueError as error:
        raise WrongArgument(f'the result is not JSON ({error}), such as {{"id": 1}}') from error


def _deny(inbox: ConsoleInbox, values: Values) -> str:
    return _decided(inbox.client.holds.deny(**values, by=inbox.actor))


def given_reason(form: Mapping[str, str]) -> str:
    """Returns the reason in a form; raises CommandError without one."""
    reason = form.get("reason", "").strip()
    if not reason:
        raise CommandError("reason: fill it in")
    return reason


def _unchanged(values: Values) -> Values:
    return values


def _pause_handler(inbox: ConsoleInbox, values: Values) -> str:
    inbox.client.handlers.pause(values["name"], reason=values["reason"], by=inbox.actor)
    return "Takes effect within 5 seconds."


def _resume_handler(inbox: ConsoleInbox, values: Values) -> str:
    resumed = inbox.client.handlers.resume(values["name"], reason=values["reason"], by=inbox.actor)
    return f"Waiting runs: {resumed.waiting}; sending starts within a minute."


def _pause_tenant(inbox: ConsoleInbox, values: Values) -> str:
    inbox.client.tenants.pause(values["name"], reason=values["reason"], by=inbox.actor)
    return "Takes effect within 5 seconds."


def _resume_tenant(inbox: ConsoleInbox, values: Values) -> str:
    resumed = inbox.client.tenants.resume(values["name"], reason=values["reason"], by=inbox.actor)
    least = "" if resumed.waiting_is_complete else "at least "
    runs = counted(resumed.waiting, "run")
    return f"Waiting: {least}{runs}; sending starts within a minute."


def _open_circuit(inbox: ConsoleInbox, values: Values) -> str:
    inbox.client.destinations.open(values["name"], reason=values["reason"], by=inbox.actor)
    return "Takes effect within a second."


def _close_circuit(inbox: ConsoleInbox, values: Values) -> str:
    inbox.client.destinations.close(values["name"], reason=values["reason"], by=inbox.actor)
    return "Waiting runs return within minutes, at the drain rate of the destination."


def _skip(inbox: ConsoleInbox, values: Values) -> str:
    return skip_note(inbox.client.runs.skip(**values, by=inbox.actor))


def _complete(inbox: ConsoleInbox, values: Values) -> str:
    result = JobResult(_parsed(values["result"]))
    job = inbox.client.runs.complete(**{**values, "result": result}, by=inbox.actor)
    return completion_note(job, inbox.program)


def _set_secret(inbox: ConsoleInbox, values: Values) -> str:
    client, name, value = inbox.client, values["name"], values["value"]
    declared = declared_manifest(client.target.stage)
    client.secrets.set(name, value, declared=declared, reason=values["reason"], by=inbox.actor)
    return ""


def _erase(inbox: ConsoleInbox, values: Values) -> str:
    names = {name: values[name] for name in ("event_id", "source", "reason")}
    erased = inbox.client.events.erase(**names, by=inbox.actor)
    return " ".join(erasure_notes(erased))


@dataclass(frozen=True, slots=True)
class FormAction:
    """An action.

    Attributes:
        path: its page.
        title: the heading and the button.
        explains: what it does, and what it does not.
        verb: the words of the command that does the same in a terminal.
        perform: performs it, and returns what happened; raises an error where nothing did.
        names: the parameters of the command that select its subject, from the page's address.
        asks: the parameters that the form asks for, with their labels.
        back: the page to return to, and its entry in the menu; an event's own page for "/events".
        fixed: parameters that are always given.
        danger: whether it cannot be undone.
        hidden: parameters whose values are never shown.
        given: makes the parameters of what the form has.
        decides: whether it decides a request for approval, which its page then shows.
    """

    path: str
    title: str
    explains: str
    verb: str
    perform: Perform
    names: tuple[str, ...]
    asks: Mapping[str, str]
    back: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    danger: bool = False
    hidden: frozenset[str] = frozenset()
    given: Callable[[Values], Values] = _unchanged
    decides: bool = False

    def address(self, **names: str) -> str:
        """Returns the address of its page for a subject."""
        return f"{self.path}?{urlencode(names)}"

    def values(self, form: Mapping[str, str]) -> Values:
        """Returns the command's parameters in a form; raises CommandError where one is missing."""
        given = {name: form.get(name, "") for name in (*self.names, *self.asks)}
        given = {n: v if n in self.hidden else v.strip() for n, v in given.items()}
        if missing := [name for name, value in given.items() if not value.strip()]:
            raise CommandError(f"{', '.join(missing)}: fill it in")
        return self.given({**given, **self.fixed})

    def after(self, names: Mapping[str, str]) -> str:
        """Returns the page to return to."""
        if self.back == "/events" and names.get("event_id"):
            return event_path(names.get("source", ""), names["event_id"])
        return self.back

    def line(self, program: Program, names: Mapping[str, str]) -> CommandLine:
        """Returns the command that does the same in a terminal."""
        arguments = [value for name, value in names.items() if name in ARGUMENTS]
        arguments += [name.upper() for name in self.asks if name in ARGUMENTS]
        options = [(f"--{n}", v) for n, v in names.items() if n not in ARGUMENTS]
        options += [(f"--{n}", PLACEHOLDERS[n]) for n in self.asks if n in PLACEHOLDERS]
        switches = [f"--{name}" for name, value in self.fixed.items() if value is True]
        words = (*(word for option in options for word in option), *switches)
        argument = next(iter(arguments), None)
        return program.command(self.verb, *words, argument=argument)


REASON: Final = {"reason": "Reason, for the audit"}
APPROVE = FormAction(
    "/approvals/approve",
    "Approve",
    "The run continues. An effect that is in doubt is performed again with the same key: ask the"
    " destination first whether it happened; one that ignores keys would perform it twice.",
    "hold approve",
    _approve,
    ("event_id", "source", "handler", "hold"),
    REASON,
    "/approvals",
    decides=True,
)
HAPPENED = FormAction(
    "/approvals/happened",
    "Record that it happened",
    "The effect is recorded as committed with this result, and is not performed again. The run"
    " continues, and its handler receives the result.",
    "hold approve",
    _happened,
    ("event_id", "source", "handler", "hold"),
    {"result": "Result as JSON, as in a run that is done", **REASON},
    "/approvals",
    fixed={"happened": True},
    decides=True,
)
DENY = FormAction(
    "/approvals/deny",
    "Deny",
    "The run ends as skipped. Effects that happened stay.",
    "hold deny",
    _deny,
    ("event_id", "source", "handler", "hold"),
    REASON,
    "/approvals",
    danger=True,
    decides=True,
)
PAUSE_HANDLER = FormAction(
    "/handlers/pause",
    "Pause the handler",
    "Its runs wait without an attempt, and none is lost. Other handlers continue: a later event,"
    " such as a cancellation, can take effect before a paused one. Takes effect within 5 seconds.",
    "handlers pause",
    _pause_handler,
    ("name",),
    REASON,
    "/handlers",
)
RESUME_HANDLER = FormAction(
    "/handlers/resume",
    "Resume the handler",
    "Waiting runs are sent from the next minute on, 20 per second.",
    "handlers resume",
    _resume_handler,
    ("name",),
    REASON,
    "/handlers",
)
RESUME_TENANT = FormAction(
    "/tenants/resume",
    "Resume the tenant",
    "Waiting runs of the tenant are sent from the next minute on.",
    "tenants resume",
    _resume_tenant,
    ("name",),
    REASON,
    "/handlers",
)
PAUSE_TENANT = FormAction(
    "/tenants/pause",
    "Pause a tenant",
    "The tenant's runs wait without an attempt, in all handlers; those of other tenants continue.",
    "tenants pause",
    _pause_tenant,
    (),
    {"name": "Tenant", **REASON},
    "/handlers",
)
OPEN = FormAction(
    "/destinations/open",
    "Open the circuit",
    "Runs that call this destination wait without an attempt until the circuit is closed by hand."
    " Calls in progress finish.",
    "destinations open",
    _open_circuit,
    ("name",),
    REASON,
    "/destinations",
)
CLOSE = FormAction(
    "/destinations/close",
    "Close the circuit",
    "Waiting runs return within minutes, at the destination's drain rate.",
    "destinations close",
    _close_circuit,
    ("name",),
    REASON,
    "/destinations",
)
SKIP = FormAction(
    "/skip",
    "Close the dead run",
    "The run ends as skipped and is not replayed with others. Later events of its ordering key"
    " continue.",
    "skip",
    _skip,
    ("event_id", "source", "handler"),
    REASON,
    "/events",
)
ERASE = FormAction(
    "/erase",
    "Erase the payload",
    "Deletes body, headers and texts of the event for ever; its runs, attempts and effects stay"
    " listed. It can then no longer be replayed.",
    "erase",
    _erase,
    ("event_id", "source"),
    REASON,
    "/events",
    fixed={"yes": True},
    danger=True,
)


def release(inbox: ConsoleInbox, values: Values, *, limit: int = 1) -> str:
    """Releases the deliveries of `wanted`; raises CommandError where none was accepted."""
    manifest = Checkout.required().manifest(inbox.target.stage)
    rejected, reason, by = inbox.client.rejected, values["reason"], inbox.actor
    released = rejected.release(
        values["wanted"], limit=limit, manifest=manifest, reason=reason, by=by
    )
    results = list(released)
    why = [why_text(each) for each in results if each.reason]
    if why and len(why) == len(results):
        raise CommandError(f"nothing was released; still refused: {why[0]}")
    counts = ", ".join(f"{number} {result}" for result, number in released.counts.items())
    return f"{counts or 'no delivery found'}."


def _with_filter(values: Values) -> Values:
    wanted = RejectionFilter((values["id"],), source=values["source"])
    return {"wanted": wanted, "reason": values["reason"]}


RELEASE = FormAction(
    "/rejected/release",
    "Release",
    "Verifies the delivery again with the present secrets. If it is valid, it is recorded as an"
    " event, and its runs are sent; otherwise nothing changes.",
    "rejected release",
    release,
    ("source", "id"),
    REASON,
    "/rejected",
    fixed={"yes": True},
    given=_with_filter,
)
COMPLETE = FormAction(
    "/complete",
    "Record the job's result",
    "The job ends with this result, as if its own system had reported it, and the run continues.",
    "complete",
    _complete,
    ("event_id", "source", "handler", "effect"),
    {"result": "Result as JSON"},
    "/events",
)
SET_SECRET = FormAction(
    "/sources/secret",
    "Set the secret",
    "Stores the value that the provider shows for this source; its functions use it within a"
    " minute. The previous value stays valid until the next change. The value is never shown.",
    "secrets set",
    _set_secret,
    ("name",),
    {"value": "Value", **REASON},
    "/rejected",
    hidden=frozenset({"value"}),
)
ACTIONS: Final = (
    APPROVE,
    HAPPENED,
    DENY,
    PAUSE_HANDLER,
    RESUME_HANDLER,
    PAUSE_TENANT,
    RESUME_TENANT,
    OPEN,
    CLOSE,
    SKIP,
    ERASE,
    RELEASE,
    COMPLETE,
    SET_SECRET,
)


def routes(inbox: ConsoleInbox, views: Views, pages: Pages) -> list[Route]:
    """Returns the page and the endpoint of each action."""
    return [
        route for each in ACTIONS for route in _routes(each, inbox=inbox, views=views, pages=pages)
    ]


def _request(inbox: ConsoleInbox, names: Mapping[str, str]) -> HeldRun | None:
    """Returns the held run that is decided; None once it is."""
    try:
        return inbox.reading().holds.get(**names)
    except OperationError:
        return None


def _routes(action: FormAction, *, inbox: ConsoleInbox, views: Views, pages: Pages) -> list[Route]:
    def page(typed: Mapping[str, str], status: int, error: str) -> Response:
        names = {name: typed.get(name, "") for name in action.names}
        return views.page(
            "action.html",
            title=action.title,
            path=action.back,
            status=status,
            action=action,
            names=names,
            typed={n: typed.get(n, "") for n in action.asks if n not in action.hidden},
            error=error,
            request=_request(inbox, names) if action.decides else None,
            back=action.after(names),
            line=action.line(inbox.program, names),
        )

    def shown(request: Request) -> Response:
        return page(request.query_params, 200, "")

    def performed(_: Request, form: Form) -> str:
        happened = inbox.changing(action.perform, action.values(form))
        subject = form.get("event_id") or form.get("name") or form.get("source", "")
        text = f"{action.title}: done. {subject}: {happened}"
        return views.after(action.after(form), text)

    return [
        Route(action.path, pages.view(shown), methods=["GET"]),
        Route(action.path, pages.action(performed, page), methods=["POST"]),
    ]
