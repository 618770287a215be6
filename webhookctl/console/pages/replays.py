"""A replay: the fixed selection of a dry run, a canary, the rest, stop and resume."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webhook_inbox.client.replays import ReplayOptions
from webhook_inbox.domain.replay_cost import estimate
from webhook_inbox.domain.replay_report import WOULD_SEND, ReplayOutcome, ReplayReport, most
from webhookctl.console import actions
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.console.replay_scope import filter_of
from webhookctl.console.replays import ReplayJobs
from webhookctl.console.requests import Form, Pages
from webhookctl.console.views import Views
from webhookctl.display.output import priced
from webhookctl.display.replay import MEANINGS
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
        options = ReplayOptions(force=_forced(form), limit=MOST)
        filters = filter_of(form, self._inbox.clock.now())
        plan = self._inbox.client.replays.plan(filters, options, by=self._inbox.actor)
        if plan.error is not None:
            raise plan.error
        if not plan.report.sent:
            raise CommandError(_nothing(plan.report))
        more = {"force": YES} if options.force else {}
        more |= {"more": YES} if plan.is_cut else {}
        return f"/replays/plan?{urlencode({'selection': plan.selection, **more})}"

    def plan_page(self, typed: Mapping[str, str], status: int, error: str) -> Response:
        """Returns the page of a selection."""
        selection = typed.get("selection", "")
        options = ReplayOptions(force=_forced(typed), limit=MOST)
        plan = self._inbox.reading().replays.resume(selection, options, by=self._inbox.actor)
        report, cost = plan.report, estimate(plan.report.sent)
        return self._views.page(
            "replay_plan.html",
            title="Replay",
            path=PATH,
            status=status,
            error=error,
            typed={name: typed.get(name, "") for name in FIELDS},
            selection=selection,
            report=report,
            errors=most(report.errors),
            sent=report.sent,
            cost=cost,
            price=priced(cost.dollars),
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
        first = _number(form.get("first", ""), CANARY) if canary else None
        options = ReplayOptions(
            rate=_number(form.get("rate", ""), FASTEST),
            reason=actions.given_reason(form),
            force=_forced(form),
        )
        number = self._jobs.start(self._inbox, form.get("selection", ""), options, first=first)
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


def _nothing(report: ReplayReport) -> str:
    """Returns why a dry run selected nothing."""
    if why := _others(report):
        return f"nothing to replay; {'; '.join(f'{number} {what}' for what, number in why)}"
    if report.cursor:
        return "the search found no run in its time: narrow the filters, for example with From"
    return "nothing to replay: no run matches, or they changed meanwhile"


def _others(report: ReplayReport) -> list[tuple[str, int]]:
    """Returns the outcomes of the runs that a replay would leave as they are."""
    return [
        (MEANINGS[ReplayOutcome(name)], count)
        for name, count in report.counts.items()
        if name not in WOULD_SEND
    ]


def _number(text: str, high: int) -> int:
    # Python refuses to convert thousands of digits.
    if not text.strip().isdecimal() or len(text) > DIGITS or not 1 <= int(text) <= high:
        raise CommandError(f"{text!r} is not a number from 1 to {high}")
    return int(text)
