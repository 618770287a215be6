"""`verify`: explains offline why a request fails verification."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from webhook_inbox import providers
from webhook_inbox.client.diagnosis.diagnose import Diagnosis, diagnose
from webhook_inbox.client.diagnosis.hypothesis import RejectionCause, Trial
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import UNAVAILABLE_FETCHER, Fetch, Fetcher
from webhookctl.checkout import Checkout
from webhookctl.commands.secrets import read_value
from webhookctl.deliveries.saved_request import read_headers
from webhookctl.display.times import moment
from webhookctl.errors import CommandError
from webhookctl.invocation import Invocation, SecretEnv, Stage, offline, read_bytes, secret_of


@offline
def verify(  # noqa: PLR0913 - one parameter per option
    call: Invocation,
    *,
    headers: Annotated[
        Path, typer.Option(metavar="FILE", help="`Name: value` lines, or a JSON object.")
    ],
    body: Annotated[Path, typer.Option(metavar="FILE", help="The exact bytes of the body.")],
    source: Annotated[
        str | None, typer.Option(metavar="NAME", help="The source in inbox.toml.")
    ] = None,
    provider: Annotated[
        str | None, typer.Option(metavar="NAME", help="The provider, without an inbox.toml.")
    ] = None,
    secret_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The secret; prompted for by default.")
    ] = None,
    secret_env: SecretEnv = None,
    others: Annotated[
        list[Path] | None,
        typer.Option("--try", metavar="FILE", help="Another secret to try; repeatable."),
    ] = None,
    published: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The provider's published key or certificate."),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="When it was received: 2h (ago), or a time; default now."
        ),
    ] = None,
    url: Annotated[
        str, typer.Option(metavar="URL", help="The URL registered at the provider.")
    ] = "",
    method: Annotated[str, typer.Option(metavar="METHOD", help="The request's method.")] = "POST",
    stage: Stage = "dev",
) -> None:
    """Explain which verification step fails for a request, and why; exit with 1 if one fails.

    Sends and fetches nothing.
    """
    spec = _spec(source, provider, stage)
    now = call.clock.now()
    came = moment(at, now) if at else now
    delivery = _delivery(spec, read_headers(headers), read_bytes(body), url, method, came)
    shared = providers.load(spec).needs_secret
    secrets = (_secret(secret_file, secret_env),) if shared else ()
    found = diagnose(
        Trial(spec, delivery, secrets),
        fetcher=UNAVAILABLE_FETCHER if published is None else _Published(read_bytes(published)),
        others=[(str(file), _text(file)) for file in others or ()],
        url=url,
    )
    if call.as_json:
        call.output.json(_object(spec, found))
    else:
        _print(call, found)
    if found.failed is not None:
        raise typer.Exit(1)


class _Published(Fetcher):
    """Returns the published key for any request."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    def fetch(self, wanted: Fetch) -> bytes:  # noqa: ARG002 - part of the port
        """See the port."""
        return self._answer


def _spec(source: str | None, provider: str | None, stage: str) -> SourceSpec:
    if provider is not None and source is None:
        return SourceSpec("it", provider, "it")
    if source is None or provider is not None:
        raise typer.BadParameter("give either --source or --provider")
    return Checkout.required().source(source, stage)


def _delivery(
    spec: SourceSpec, headers: dict[str, str], body: bytes, url: str, method: str, came: datetime
) -> Delivery:
    base, _, query = url.partition("?")
    host, slash, path = base.partition("://")[2].partition("/")
    known = {"host": host} if host else {}
    where = slash + path or f"/webhooks/{spec.name}"
    return Delivery(spec.name, method.upper(), where, query, {**known, **headers}, body, came)


def _secret(file: Path | None, variable: str | None) -> str:
    if file is not None and variable is not None:
        raise typer.BadParameter("give either --secret-file or --secret-env")
    if file is not None:
        return _text(file)
    if variable is None:
        return read_value("The source's secret: ")
    return secret_of(variable, otherwise="--secret-file")


def _text(file: Path) -> str:
    try:
        text = read_bytes(file).decode()
    except UnicodeDecodeError:
        # Not chained: the original error carries the secret's bytes.
        raise CommandError(f"{file} is not UTF-8 text") from None
    return text.removesuffix("\n").removesuffix("\r")


def _object(spec: SourceSpec, found: Diagnosis) -> dict[str, object]:
    identity = found.identity
    return {
        "source": spec.name,
        "provider": spec.provider,
        "valid": found.failed is None,
        "reason": None if found.reason is None else str(found.reason),
        "detail": found.detail or None,
        "steps": [{"step": str(s), "result": result} for s, result in found.results.items()],
        "causes": [_cause(cause) for cause in found.causes],
        "tried": found.tried,
        "event_id": identity.event_id if identity else None,
        "type": identity.type if identity else None,
    }


def _cause(cause: RejectionCause) -> dict[str, object]:
    return {
        "cause": cause.code,
        "words": cause.words,
        "remedy": cause.remedy,
        "proven": cause.proven,
    }


def _print(call: Invocation, found: Diagnosis) -> None:
    call.output.fields({str(step): result for step, result in found.results.items()})
    call.output.line()
    if found.failed is None:
        identity = found.identity
        named = f"event {identity.event_id}, type {identity.type}" if identity else ""
        call.output.line(f"valid: {', '.join(filter(None, (found.detail, named)))}")
        return
    call.output.line(f"{found.reason}: {found.detail}")
    for cause in found.causes:
        how = "cause" if cause.proven else "possible cause"
        call.output.line(f"{how}: {cause.words}")
        call.output.line(f"  fix: {cause.remedy}")
    call.output.note(f"Tried {found.tried} variants.")
