"""`send`: signs sample events as their provider would, and posts them."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from webhook_inbox import providers
from webhook_inbox.client.post import PostAnswer, post
from webhook_inbox.domain.manifest import LOCAL, SourceSpec
from webhook_inbox.domain.printable import counted
from webhookctl.checkout import Checkout
from webhookctl.commands.secrets import read_value
from webhookctl.deliveries.samples import Draft, Forge
from webhookctl.deliveries.signing import address_of, stored_secret
from webhookctl.display.table import Column, Fit
from webhookctl.invocation import EXPOSED, Invocation, SecretEnv, secret_of, takes_options

IN_FLIGHT: Final = 16
STDIN: Final = "-"
COLUMNS: Final = (
    Column("FILE", Fit.NAME),
    Column("EVENT_ID", Fit.ID),
    Column("HTTP"),
    Column("ANSWER", Fit.NOTE),
)


@takes_options
def send(  # noqa: PLR0913 - one parameter per option
    call: Invocation,
    *,
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Files with the bodies.")],
    source: Annotated[str, typer.Option(metavar="NAME", help="The source to post to.")],
    times: Annotated[
        int, typer.Option(min=1, max=1000, help="Concurrent copies of each delivery.")
    ] = 1,
    type_: Annotated[
        str | None,
        typer.Option("--type", help="The event type; by default the file name up to `__`."),
    ] = None,
    event_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="The event id.")
    ] = None,
    new_id: Annotated[
        bool, typer.Option("--new-id", help="Replace the id in the body by a new one.")
    ] = False,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="Post to this URL instead of the target.")
    ] = None,
    secret: Annotated[
        str | None,
        typer.Option(
            help="The signing secret, visible to other users of this machine; `-` reads it from"
            " standard input."
        ),
    ] = None,
    secret_env: SecretEnv = None,
) -> None:
    """Sign sample events and post them.

    Each FILE becomes an event with a new id, unless its body contains the id.
    """
    if event_id and (new_id or len(files) > 1):
        raise typer.BadParameter("--id needs exactly one FILE, without --new-id")
    if secret and secret_env:
        raise typer.BadParameter("give either --secret or --secret-env")
    apart = url is not None and bool(secret or secret_env)
    spec = Checkout.required().source(source, LOCAL if apart else call.target.stage)
    address = url or address_of(call.client, source)
    key = _secret(call, spec, secret, secret_env)
    forge = Forge(provider=providers.load(spec), spec=spec, secret=key, clock=call.clock)
    drafts = [forge.draft(file, type_=type_, event_id=event_id, new_id=new_id) for file in files]
    with ThreadPoolExecutor(IN_FLIGHT) as pool:
        repeated = [draft for draft in drafts for _ in range(times)]
        answers = [
            *pool.map(lambda each: post(address, each.body, each.headers, each.query), repeated)
        ]
    _show(call, repeated, answers)
    if not all(answer.accepted for answer in answers):
        raise typer.Exit(1)


def _secret(call: Invocation, spec: SourceSpec, given: str | None, variable: str | None) -> str:
    if given == STDIN:
        return read_value(f"Secret of {spec.name}: ")
    if given:
        call.output.note(f"Note: --secret {EXPOSED}: use --secret - or --secret-env.")
        return given
    if variable:
        return secret_of(variable, otherwise="--secret -")
    return stored_secret(call.client, spec)


def _show(call: Invocation, drafts: list[Draft], answers: list[PostAnswer]) -> None:
    pairs = list(zip(drafts, answers, strict=True))
    if call.as_json:
        for draft, answer in pairs:
            call.output.json(_object(draft, answer))
        return
    rows = [(draft.file, draft.event_id, answer.status, answer.text) for draft, answer in pairs]
    call.output.table(COLUMNS, rows)
    counts = Counter(answer.outcome for answer in answers)
    told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    call.output.line(f"{counted(len(answers), 'delivery', 'deliveries')}: {told}.")
    for hint in dict.fromkeys(_hints(call, drafts, counts)):
        call.output.note(hint)


def _object(draft: Draft, answer: PostAnswer) -> dict[str, Any]:
    return {
        "file": str(draft.file),
        "source": draft.source,
        "event_id": draft.event_id,
        "type": draft.type,
        "http_status": answer.status,
        "answer": answer.data,
    }


def _hints(call: Invocation, drafts: list[Draft], counts: Counter[str]) -> list[str]:
    hints = []
    if counts["duplicate"] and not counts["accepted"] and any(d.id_in_body for d in drafts):
        hints.append("The body contains the id of a known event: use --new-id for a new event.")
    if counts["held"]:
        hints.append(
            "This content was received before under another id, so its runs are held: decide with"
            f" `{call.program.command('hold list')}`, or use --new-id for a new event."
        )
    if counts["replayed"]:
        hints.append(
            "This content was received before under another id, so its handlers do not run: use"
            " --new-id for a new event."
        )
    if counts["conflict"]:
        hints.append(
            "This id was received before with different content: use --new-id for a new event."
        )
    return hints
