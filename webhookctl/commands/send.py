"""`send`: posts sample events, signed as their provider would."""

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from webhook_inbox import providers
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.manifest import SourceSpec
from webhookctl.checkout import Checkout
from webhookctl.commands.secrets import read_value
from webhookctl.deliveries.post import Answer, post
from webhookctl.deliveries.samples import Draft, Forge
from webhookctl.display.output import counted
from webhookctl.errors import CommandError
from webhookctl.invocation import Invocation, takes_options
from webhookctl.local import dev_secrets
from webhookctl.target import STATE

IN_FLIGHT: Final = 16
STDIN: Final = "-"
COLUMNS: Final = ("FILE", "EVENT_ID", "HTTP", "ANSWER")


@takes_options
def send(  # noqa: PLR0913 - one option for each thing a provider may vary
    call: Invocation,
    *,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Bodies, as they are.")],
    source: Annotated[str, typer.Option(help="The source they are posted to.")],
    times: Annotated[
        int, typer.Option(min=1, max=1000, help="Post each so often, at the same time.")
    ] = 1,
    type_: Annotated[
        str | None,
        typer.Option("--type", help="The event's type; by default the file's name up to `__`."),
    ] = None,
    event_id: Annotated[str | None, typer.Option("--id", help="The event's id.")] = None,
    new_id: Annotated[
        bool, typer.Option("--new-id", help="A new event, even where the body holds the id.")
    ] = False,
    url: Annotated[str | None, typer.Option(help="Post there, and not to the target.")] = None,
    secret: Annotated[
        str | None, typer.Option(help="The signing secret; `-` reads standard input.")
    ] = None,
    secret_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="The variable that holds the secret.")
    ] = None,
) -> None:
    """Sign sample events and post them.

    Each FILE is a new event under a fresh id, unless its body holds the id.
    """
    if event_id and (new_id or len(files) > 1):
        raise typer.BadParameter("--id names one event: give one FILE, and no --new-id")
    apart = url is not None and bool(secret or secret_env)
    spec = _spec(source, stage="local" if apart else call.target.stage)
    address = url or _address(call, source)
    key = _secret(call, spec, secret, secret_env)
    forge = Forge(provider=providers.load(spec), spec=spec, secret=key, clock=call.clock)
    drafts = [forge.draft(file, type_=type_, event_id=event_id, new_id=new_id) for file in files]
    with ThreadPoolExecutor(IN_FLIGHT) as pool:
        repeated = [draft for draft in drafts for _ in range(times)]
        answers = list(pool.map(lambda draft: post(address, draft), repeated))
    _show(call, repeated, answers)
    if not all(answer.accepted for answer in answers):
        raise typer.Exit(1)


def _spec(source: str, *, stage: str) -> SourceSpec:
    sources = Checkout.required().sources(stage)
    if source not in sources:
        raise CommandError(f"inbox.toml has no source {source}; it has: {', '.join(sources)}")
    return sources[source]


def _address(call: Invocation, source: str) -> str:
    urls = call.target.urls
    if source not in urls:
        if call.target.local:
            raise CommandError(
                f"the source {source} is not loaded yet: wait for `make dev` to say"
                f" `new source: …/{source}`, or why it did not reload"
            )
        raise CommandError(
            f"the inbox that runs has no source {source} (it has: {', '.join(urls)}): deploy first"
        )
    return urls[source]


def _secret(call: Invocation, spec: SourceSpec, given: str | None, variable: str | None) -> str:
    if given == STDIN:
        return read_value(f"Secret of {spec.name}: ")
    if given:
        return given
    if variable:
        if not os.environ.get(variable):
            raise CommandError(f"the variable {variable} is not set: export it, or use --secret -")
        return os.environ[variable]
    return _stored(call, spec)


def _stored(call: Invocation, spec: SourceSpec) -> str:
    private = _signing_key(spec) if call.target.local else None
    if private is not None:
        return private
    try:
        values = call.target.secrets.fetch(spec.secret)
    except Unavailable as error:
        raise CommandError(
            f"the secret {spec.secret} cannot be read ({error}): give it with --secret - or"
            " --secret-env"
        ) from error
    if not values:
        command = call.pasteable(f"webhookctl secrets set {spec.secret}")
        raise CommandError(f"the secret {spec.secret} is not set: `{command}`")
    return values[0]


def _signing_key(spec: SourceSpec) -> str | None:
    """Returns the private key that the local inbox keeps beside a fake public one."""
    return dev_secrets.signing_key(Checkout.required().functions.parent / STATE, spec.secret)


def _show(call: Invocation, drafts: list[Draft], answers: list[Answer]) -> None:
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
    for hint in dict.fromkeys(_hints(drafts, counts)):
        call.output.note(hint)


def _object(draft: Draft, answer: Answer) -> dict[str, Any]:
    return {
        "file": str(draft.file),
        "source": draft.source,
        "event_id": draft.event_id,
        "type": draft.type,
        "http_status": answer.status,
        "answer": answer.data,
    }


def _hints(drafts: list[Draft], counts: Counter[str]) -> list[str]:
    hints = []
    if counts["duplicate"] and not counts["accepted"] and any(d.id_in_body for d in drafts):
        hints.append("The body holds the event's id, which came before: --new-id makes a new one.")
    if counts["replayed"]:
        hints.append(
            "This content came before under another id, and such a copy is not run:"
            " --new-id makes a new event of it."
        )
    if counts["conflict"]:
        hints.append("This id came before with other content: --new-id makes a new event of it.")
    return hints
