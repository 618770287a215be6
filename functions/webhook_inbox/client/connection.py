"""Connects to an inbox: the stack or the session on this machine that an operator selects."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from webhook_inbox.adapters.aws.account import Clients, SharedClients, loopback_client, resolve
from webhook_inbox.adapters.aws.cloudformation import describe_stack, template_metadata
from webhook_inbox.adapters.aws.remedies import remedy
from webhook_inbox.adapters.aws.sdk_errors import is_error
from webhook_inbox.client import local_session
from webhook_inbox.client.errors import Refused, WrongArgument
from webhook_inbox.client.repository import own_directories
from webhook_inbox.client.target import NoStack, Target
from webhook_inbox.domain.manifest import METADATA, Manifest

VARIABLE: Final = "WEBHOOKCTL_TARGET"
LOCAL: Final = "local"
INBOX: Final = Path("functions", "inbox.toml")
URL_OUTPUT: Final = "WebhookUrl"


@dataclass(frozen=True, slots=True)
class Selection:
    """The user's options that select the target."""

    local: bool = False
    stack: str | None = None
    profile: str | None = None
    region: str | None = None


def connect(selection: Selection, directory: Path | None = None) -> Target:
    """Returns the selected inbox.

    Args:
        selection: the options that select it.
        directory: where the search for a session on this machine begins; by default the working
            directory.

    Raises:
        WrongArgument: the options contradict each other.
        NotFound: the stack does not exist.
        Refused: no inbox is selected, none runs on this machine, or a setting of AWS is missing.
    """
    here = directory or Path.cwd()
    named = _target_name(selection, here)
    if named == LOCAL:
        if selection.profile or selection.region:
            raise WrongArgument(
                "--profile and --region select an AWS account: leave them out for the inbox on this"
                " machine, or use --stack NAME"
            )
        return _local(here)
    try:
        clients = resolve(selection.profile, selection.region).clients
        return _stack(named, SharedClients(clients))
    except Exception as error:
        if not is_error(error):
            raise
        # A setting of this machine; the errors of calls are `Unavailable` and `AccessDenied`.
        raise Refused(f"{error}: {remedy(error)}") from error


def _target_name(selection: Selection, here: Path) -> str:
    if selection.local and selection.stack:
        raise WrongArgument("--local and --stack are two targets: give one of them")
    named = LOCAL if selection.local else selection.stack or os.environ.get(VARIABLE, "")
    if named:
        return named
    if _running(here) is not None:
        raise Refused(
            "no target: an inbox runs on this machine, so use --local"
            f" (or set {VARIABLE}={LOCAL}); for one in AWS use --stack NAME"
        )
    raise Refused(
        f"no target: use --stack NAME or --local, or set {VARIABLE} to a stack's name or {LOCAL}"
    )


def _running(here: Path) -> local_session.State | None:
    """Returns the session of this directory or of its nearest parent.

    The search ends at the inbox that the directory belongs to: without a session of its own, a
    command must not reach that of an inbox around it.
    """
    for directory in own_directories(here):
        session = local_session.read(directory / local_session.DIRECTORY)
        if session is not None or (directory / INBOX).is_file():
            return session
    return None


def _local(here: Path) -> Target:
    session = _running(here)
    if session is None:
        raise Refused(
            "no inbox runs on this machine: start one with `webhookctl dev`, and call webhookctl in"
            " that directory"
        )
    urls = {name: f"{session.front}/webhooks/{name}" for name in _urls(session.outputs)}
    client = SharedClients(
        partial(loopback_client, endpoint=session.endpoint, credentials=session.credentials)
    )
    read = partial(Manifest.from_data, session.manifest)
    front = session.front
    return Target.of(LOCAL, session.outputs, client, urls=urls, read_manifest=read, front=front)


def _stack(name: str, client: Clients) -> Target:
    stack = describe_stack(client, name)
    if stack is None:
        raise NoStack(name, client)
    outputs = {o["OutputKey"]: o["OutputValue"] for o in stack.get("Outputs", ())}
    read = partial(_deployed, name, client)
    return Target.of(
        name, outputs, client, urls=_urls(outputs), read_manifest=read, stack_id=stack["StackId"]
    )


def _deployed(name: str, client: Clients) -> Manifest:
    """Returns the manifest that the stack was deployed with, from its template."""
    metadata = template_metadata(client, name)
    try:
        return Manifest.from_data(json.loads(json.loads(metadata)[METADATA]))
    except (KeyError, TypeError, ValueError) as error:
        raise Refused(
            f"the stack {name} has no manifest of this version in its template: deploy it again"
        ) from error


def _urls(outputs: Mapping[str, str]) -> dict[str, str]:
    """Returns the sources' URLs by name, their last path segment."""
    urls = (value for name, value in outputs.items() if name.startswith(URL_OUTPUT))
    return {url.rpartition("/")[2]: url for url in urls}
