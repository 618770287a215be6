"""A replay: the fixed selection of a dry run, a canary, the rest, stop and resume."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webhook_inbox.replay.report import ReplayOutcome
from webhookctl.commands.replay import replay
from webhookctl.commands.replay_output import MEANINGS
from webhookctl.console import actions
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.console.replay_scope import values_of
from webhookctl.console.replays import ReplayJobs, sent_of
from webhookctl.console.requests import Form, Pages
from webhookctl.console.views import Views
from webhookctl.display.output import priced
from webhookctl.errors import CommandError

PATH: Final = "/dead-letters"
RATE: Final = 10
FASTEST: Final = 500
# A selection has at most so many runs.
MOST: Final = 10_000
CANARY: Final = 200
DIGITS: Final = 9
YES: Final = "yes"
FIELDS: Final = ("reason", "rate", "first", "force", "more")


def routes(inbox: ConsoleInbox, views: Views, pages: Pages) -> list[Route]:
    """Returns the routes of replays."""
    its = ReplayPages(inbox, views)
    return [
        Route("/replays/plan", pages.view(its.plan), methods=["GET"]),
        Route("/replays/plan", pages.action(its.planned), methods=["POST"]),
        Route("/replays", pages.view(its.shown), methods=["GET"]),
        Route("/replays", pages.action(its.started, its.plan_page), methods=["POST"]),
        Route("/replays/stop", pages.action(its.stopped), methods=["POST"]),
    ]


class ReplayPages:
    """The pages of one console's replays."""

    def __init__(self, inbox: ConsoleInbox, views: Views) -> None:
        self._inbox = inbox
        self._views = views
        self._jobs = ReplayJobs()

    def planned(self, _: Request, form: Form) -> str:
        """Plans a replay: fixes the runs that match."""
        force = form.get("force") == YES
        told = self._inbox.act(replay, **values_of(form), force=force, limit=MOST)
        [report] = told.objects
        if not sent_of(report):
            raise CommandError(_nothing(report))
        more = {"force": YES} if force else {}
        more |= {"more": YES} if report["cursor"] else {}
        return f"/replays/plan?{urlencode({'selection': report['selection'], **more})}"

    def plan_page(self, typed: Mapping[str, str], status: int, error: str) -> Response:
        """Returns the page of a selection."""
        selection = typed.get("selection", "")
        told = self._inbox.read(replay, selection=selection, force=_forced(typed), limit=MOST)
        [report] = told.objects
        return self._views.page(
            "replay_plan.html",
            title="Replay",
            path=PATH,
            status=status,
            error=error,
            typed={name: typed.get(name, "") for name in FIELDS},
            selection=selection,
            report=report,
            sent=sent_of(report),
            price=priced(report["estimate"]["dollars"]),
            others=_others(report),
            rate=typed.get("rate") or RATE,
            most=MOST,
            canary=CANARY,
            fastest=FASTEST,
        )

    def plan(self, request: Request) -> Response:
        """Returns the page of a selection."""
        return self.plan_page(request.query_params, 200, "")

    def started(self, _: Request, form: Form) -> str:
        """Starts the replay of a selection."""
        canary = form.get("send") == "canary"
        number = self._jobs.start(
            self._inbox,
            form.get("selection", ""),
            first=_number(form.get("first", ""), CANARY) if canary else None,
            rate=_number(form.get("rate", ""), FASTEST),
            reason=actions.given_reason(form),
            force=_forced(form),
        )
        return f"/replays?{urlencode({'number': number})}"

    def shown(self, request: Request) -> Response:
        """Returns the page of a replay, or its progress."""
        number = request.query_params.get("number", "")
        job = self._jobs.get(number)
        if job is None:
            raise CommandError("this replay is no longer remembered: the audit has its row")
        live = f"/replays?{urlencode({'number': number, 'part': 'job'})}"
        values: dict[str, Any] = {"job": job, "number": number, "live": live}
        if request.query_params.get("part") == "job":
            return self._views.fragment("replay_progress.html", **values)
        return self._views.page("replay.html", title="Replay", path=PATH, **values)

    def stopped(self, _: Request, form: Form) -> str:
        """Stops a replay."""
        number = form.get("number", "")
        self._jobs.stop(number)
        return f"/replays?{urlencode({'number': number})}"


def _forced(typed: Mapping[str, str]) -> bool:
    return typed.get("force") == YES


def _nothing(report: Mapping[str, Any]) -> str:
    """Returns why a dry run selected nothing."""
    if why := _others(report):
        return f"nothing to replay; {'; '.join(f'{number} {what}' for what, number in why)}"
    if report.get("cursor"):
        return "the search found no run in its time: narrow the filters, for example with From"
    return "nothing to replay: no run matches, or they changed meanwhile"


def _others(report: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Returns the outcomes of the runs that a replay would leave as they are."""
    counts = report.get("counts", {})
    would = {ReplayOutcome.WOULD_REPLAY, ReplayOutcome.WOULD_ADD}
    return [(MEANINGS[ReplayOutcome(n)], c) for n, c in counts.items() if n not in would]


def _number(text: str, high: int) -> int:
    # Python refuses to convert thousands of digits.
    if not text.strip().isdecimal() or len(text) > DIGITS or not 1 <= int(text) <= high:
        raise CommandError(f"{text!r} is not a number from 1 to {high}")
    return int(text)
