"""Reads forms, and turns errors of pages and actions into answers."""

import hmac
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from webhook_inbox.domain.errors import InboxError
from webhookctl.console.filters import BadFilter
from webhookctl.console.guard import Session
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.console.views import Views
from webhookctl.errors import CommandError, explain, is_unavailable

# Bytes; the longest form has a reason and a filter.
FORM_LIMIT: Final = 64 * 1024
TOKEN_FIELD: Final = "form_token"  # noqa: S105 - the name of the field

Form = Mapping[str, str]
# Performs an action and returns the path of the page to show next.
Action = Callable[[Request, Form], str]
# Returns the page of a form again, with what was typed, a status and the error.
Again = Callable[[Form, int, str], Response]
View = Callable[[Request], Response]


class Pages:
    """Wraps views and actions of one console as endpoints."""

    def __init__(self, inbox: ConsoleInbox, views: Views, session: Session) -> None:
        self._inbox = inbox
        self._views = views
        self._session = session

    def view(self, view: View) -> Callable[[Request], Response]:
        """Returns an endpoint; errors are pages that name the cause and the fix."""

        def endpoint(request: Request) -> Response:
            try:
                return view(request)
            except Exception as error:  # noqa: BLE001 - the user gets a page for any error
                return self._error(*told_of(error))

        return endpoint

    def action(self, action: Action, again: Again | None = None) -> Callable[[Request], "Response"]:
        """Returns an endpoint for a form; refuses it where the console is read-only.

        An error is shown by `again`, beside the form; without it, as a page.
        """

        async def endpoint(request: Request) -> Response:
            if self._inbox.refusal:
                return PlainTextResponse(self._inbox.refusal, 403)
            form = await read_form(request)
            if form is None:
                return PlainTextResponse(f"The form exceeds {FORM_LIMIT} bytes.", 413)
            if not hmac.compare_digest(
                form.get(TOKEN_FIELD, "").encode(), self._session.form_token.encode()
            ):
                return PlainTextResponse("The form is of an earlier session: reload its page.", 403)
            try:
                after = await run_in_threadpool(action, request, form)
            except Exception as error:  # noqa: BLE001 - as for views
                return await run_in_threadpool(self._refused, error, form, again)
            return RedirectResponse(after, 303)

        return endpoint  # type: ignore[return-value]

    def _refused(self, error: Exception, form: Form, again: Again | None) -> Response:
        status, text = told_of(error)
        if again is None:
            return self._error(status, text)
        try:
            return again(form, status, text)
        except Exception:  # noqa: BLE001 - the form cannot be shown: its subject is gone, or wrong
            return self._error(status, text)

    def _error(self, status: int, text: str) -> Response:
        return self._views.page("error.html", title="Error", path="", status=status, message=text)


def told_of(error: Exception) -> tuple[int, str]:
    """Returns the HTTP status and the text of an error."""
    if isinstance(error, BadFilter):
        return 400, str(error)
    if is_unavailable(error):
        return 503, explain(error)
    return 409 if isinstance(error, CommandError | InboxError) else 500, explain(error)


async def read_form(request: Request) -> Form | None:
    """Returns a form's fields, the last value of each; None if it is too long."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > FORM_LIMIT:
            return None
    return dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True))
