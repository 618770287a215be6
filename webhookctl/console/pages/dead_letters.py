"""Dead letters by cause, and their replay: dry run, canary, the rest, stop."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webhook_inbox.domain.model import EventStatus
from webhookctl.commands.dlq import list_dlqs
from webhookctl.commands.failures import errors
from webhookctl.commands.replay import replay
from webhookctl.console.filters import BadFilter, EventFilter
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.console.replays import ReplayJobs
from webhookctl.console.requests import Form, Pages
from webhookctl.console.views import Views
from webhookctl.errors import CommandError

PATH: Final = "/dead-letters"
RATE: Final = 10.0
# The filters that a replay can use.
SELECTS: Final = ("source", "type", "handler", "tenant", "since", "until", "error_class")


def routes(inbox: ConsoleInbox, views: Views, pages: Pages) -> list[Route]:
    """Returns the routes of dead letters and replays."""
    jobs = ReplayJobs()

    def listed(request: Request) -> Response:
        groups = inbox.read(errors, limit=100)
        queues = inbox.read(list_dlqs)
        return views.page(
            "dead_letters.html",
            title="Dead letters",
            path=PATH,
            groups=[(each, _plan(each)) for each in groups.objects],
            lanes=[each for each in queues.objects if "lane" in each],
            notes=groups.notes,
            done=views.message(request.query_params.get("done", "")),
        )

    def planned(_: Request, form: Form) -> str:
        told = inbox.act(replay, **_selects(form))
        [report] = told.objects
        if not report["sent"]:
            raise CommandError("nothing to replay: the runs changed meanwhile, or none matches")
        return f"/replays/plan?{urlencode({'selection': report['selection']})}"

    def plan(request: Request) -> Response:
        selection = request.query_params.get("selection", "")
        [report] = inbox.act(replay, selection=selection).objects
        return views.page(
            "replay_plan.html",
            title="Replay",
            path=PATH,
            selection=selection,
            report=report,
            rate=f"{RATE:g}",
        )

    def started(_: Request, form: Form) -> str:
        first = form.get("first", "").strip()
        number = jobs.start(
            inbox.call,
            form.get("selection", ""),
            first=_number(first, 1, 200) if first else None,
            rate=float(_number(form.get("rate", "") or f"{RATE:g}", 1, 500)),
            reason=form.get("reason", "").strip(),
        )
        return f"/replays?{urlencode({'number': number})}"

    def shown(request: Request) -> Response:
        number = request.query_params.get("number", "")
        job = jobs.get(number)
        if job is None:
            raise CommandError("this replay is no longer remembered: the audit has its row")
        values: dict[str, Any] = {"job": job, "number": number}
        if request.query_params.get("part") == "job":
            return views.fragment("replay_progress.html", **values)
        live = f"/replays?{urlencode({'number': number, 'part': 'job'})}"
        return views.page("replay.html", title="Replay", path=PATH, live=live, **values)

    def stopped(_: Request, form: Form) -> str:
        number = form.get("number", "")
        jobs.stop(number)
        return f"/replays?{urlencode({'number': number})}"

    return [
        Route(PATH, pages.view(listed), methods=["GET"]),
        Route("/replays/plan", pages.view(plan), methods=["GET"]),
        Route("/replays/plan", pages.action(planned), methods=["POST"]),
        Route("/replays", pages.view(shown), methods=["GET"]),
        Route("/replays", pages.action(started), methods=["POST"]),
        Route("/replays/stop", pages.action(stopped), methods=["POST"]),
    ]


def _plan(group: Mapping[str, Any]) -> dict[str, str]:
    """Returns the fields of the form that selects a group's dead runs."""
    return {"handler": group["handler"], "error_class": group["error_class"] or ""}


def _selects(form: Form) -> dict[str, Any]:
    chosen = EventFilter.of(form)
    values = {name: form.get(name, "").strip() for name in (*SELECTS, "error_contains")}
    given: dict[str, Any] = {name: value for name, value in values.items() if value}
    given["type_"] = given.pop("type", None)
    if chosen.text:
        raise BadFilter("the text filter selects nothing that a replay can: clear it")
    status = EventStatus(chosen.status) if chosen.status else None
    return given | {"status": [status] if status else None}


def _number(text: str, low: int, high: int) -> int:
    if not text.isdecimal() or not low <= int(text) <= high:
        raise CommandError(f"{text!r} is not a number from {low} to {high}")
    return int(text)
