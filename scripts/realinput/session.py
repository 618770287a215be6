"""The inbox that receives the payloads: a running or a temporary one."""

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from scripts.realinput.chaos import IMPATIENT
from webhook_inbox.client import local_session
from webhookctl.errors import CommandError
from webhookctl.local.dev_secrets import FILE
from webhookctl.local.inbox import LocalInbox

ROOT: Final = Path(__file__).resolve().parents[2]
# Handlers of each sample, whatever the app in `functions/` has.
FUNCTIONS: Final = ROOT / "tests" / "project"


@dataclass(frozen=True, slots=True)
class Session:
    """The addresses of an inbox; `inbox` is set for a temporary one."""

    front: str
    sink: str
    endpoint: str
    credentials: Mapping[str, str]
    outputs: Mapping[str, str]
    secrets: Mapping[str, str]
    home: Path
    inbox: LocalInbox | None = None


def running(directory: Path, given: Mapping[str, str]) -> Session:
    """Returns the session whose state is in this directory.

    Raises:
        CommandError: there is none.
    """
    found = local_session.read(directory)
    if found is None:
        message = f"no session runs here ({directory}): start `make dev`, or use --own"
        raise CommandError(message)
    secrets = json.loads((directory / FILE).read_text())
    return Session(
        front=found.front,
        sink=found.sink,
        endpoint=found.endpoint,
        credentials=found.credentials,
        outputs=found.outputs,
        secrets={**secrets, **given},
        home=directory.parent,
    )


@contextlib.contextmanager
def own(*, impatient: bool) -> Iterator[Session]:
    """Starts a temporary session in its own directory and on its own ports."""
    with tempfile.TemporaryDirectory(prefix="real-input-") as scratch:
        home = Path(scratch)
        functions = home / "given"
        shutil.copytree(FUNCTIONS / "handlers", functions / "handlers")
        shutil.copyfile(FUNCTIONS / "inbox.toml", functions / "inbox.toml")
        if impatient:
            with (functions / "handlers" / "__init__.py").open("a") as registry:
                registry.write(IMPATIENT)
        with LocalInbox(functions, state=home / ".local") as inbox:
            yield Session(
                front=inbox.front_url,
                sink=inbox.sink_url,
                endpoint=inbox.endpoint,
                credentials=inbox.credentials,
                outputs=inbox.outputs,
                secrets=inbox.secrets,
                home=home,
                inbox=inbox,
            )
