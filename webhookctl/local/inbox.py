"""An inbox for tests: everything `webhookctl dev` runs, on ports and in a directory of its own."""

import contextlib
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Self

from webhookctl.local.deployment import embedding
from webhookctl.local.deployment.functions import Deployed
from webhookctl.local.ports import LOOPBACK, free_port
from webhookctl.local.processes.process_group import await_end, commands, members
from webhookctl.local.project import Project
from webhookctl.local.runtime import Runtime, Settings

ROOT: Final = Path(__file__).resolve().parents[2]
# Where inbox.toml says the sink is, on a laptop.
USUAL_SINK: Final = "http://127.0.0.1:8788"


class LocalInbox:
    """A running inbox with the handlers and sources of any directory."""

    def __init__(
        self,
        functions: Path,
        *,
        state: Path | None = None,
        secrets: Mapping[str, str] | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Prepares; entering the context starts.

        Args:
            functions: a directory with `handlers/` and `inbox.toml`. It is copied; where
                inbox.toml names the usual sink, the copy names this inbox's own.
            state: for everything it writes; a temporary directory unless given. A kept one
                spares the synthesis while nothing changed.
            secrets: values by source; the others get fake ones.
            tell: receives what a session would print.
        """
        self._closing = contextlib.ExitStack()
        if state is None:
            scratch = tempfile.TemporaryDirectory(prefix="webhook-inbox-")
            state = Path(self._closing.enter_context(scratch))
        settings = Settings(
            port=0,
            sink_port=free_port(),
            secrets=secrets or {},
            sink_log=state / "sink.log",
        )
        self.functions = state / "functions"
        self.sink_url = f"http://{LOOPBACK}:{settings.sink_port}"
        self._given = functions
        project = Project(
            root=ROOT, functions=self.functions, state=state, app=Path(embedding.__file__)
        )
        self._runtime = Runtime(project, settings, tell)

    def __enter__(self) -> Self:
        try:
            self.copy_functions()
            self._closing.callback(self._runtime.stop)
            self._runtime.start()
        except BaseException:
            self._closing.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    @property
    def front_url(self) -> str:
        """The stable address; post to `{front_url}/webhooks/{source}`."""
        return self._runtime.front.url

    @property
    def endpoint(self) -> str:
        """The address of ministack."""
        return self._runtime.ministack.endpoint

    @property
    def outputs(self) -> Mapping[str, str]:
        """The stack's outputs."""
        return self._runtime.outputs

    @property
    def secrets(self) -> Mapping[str, str]:
        """The secrets' values by name."""
        return self._runtime.secrets

    @property
    def group(self) -> int:
        """The process group of ministack and its Lambda workers."""
        return self._runtime.ministack.pid

    def client(self, service: str) -> Any:
        """Returns a boto3 client of this inbox."""
        return self._runtime.ministack.client(service)

    def copy_functions(self) -> None:
        """Takes the given directory's files as they are now; `reload` brings them in."""
        shutil.rmtree(self.functions, ignore_errors=True)
        shutil.copytree(
            self._given / "handlers",
            self.functions / "handlers",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        text = (self._given / "inbox.toml").read_text()
        (self.functions / "inbox.toml").write_text(text.replace(USUAL_SINK, self.sink_url))

    def reload(self) -> bool:
        """Does what a session does after an edit of `functions`; tells whether it mattered."""
        return self._runtime.reload()

    def start_sink(self) -> None:
        """Starts the sink again; it knows what it did before."""
        self._runtime.start_sink()

    def stop_sink(self) -> None:
        """Stops the sink: its port refuses connections."""
        self._runtime.stop_sink()

    @contextlib.contextmanager
    def frozen_sink(self) -> Iterator[None]:
        """Freezes the sink: it takes requests, and answers them when it thaws."""
        self._runtime.signal_sink(signal.SIGSTOP)
        try:
            yield
        finally:
            self._runtime.signal_sink(signal.SIGCONT)

    def workers(self, kind: str = "processor") -> list[int]:
        """Returns the process ids of the live Lambda workers of a kind of function."""
        names = [function.name for function in self._functions(kind)]
        listed = commands(members(self.group))
        return [
            pid
            for pid, command in listed.items()
            if any(f"ministack-lambda-{name}-" in command for name in names)
        ]

    def kill_workers(self, kind: str = "processor") -> int:
        """Kills the workers of a kind of function as `kill -9` does; returns how many.

        They are gone when it returns: ministack would hand work to one that is still dying.
        """
        killed = []
        for pid in self.workers(kind):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
        await_end(self.group, killed)
        return len(killed)

    def hurry(self, *, timeout: int = 6, visibility: int = 20) -> None:
        """Shortens the time until a killed worker's message comes back.

        Args:
            timeout: of the processors' invocations, seconds.
            visibility: of their queues, seconds. A lease ends 5 s after the invocation's
                deadline and counts as expired 5 s later: it has to be longer than both.
        """
        for function in self._functions("processor"):
            found = self.client("lambda").get_function_configuration(FunctionName=function.name)
            variables = {**found["Environment"]["Variables"], "VISIBILITY_TIMEOUT": str(visibility)}
            self.client("lambda").update_function_configuration(
                FunctionName=function.name,
                Timeout=timeout,
                Environment={"Variables": variables},
            )
        for url in json.loads(self.outputs["QueueUrls"]).values():
            self.client("sqs").set_queue_attributes(
                QueueUrl=url, Attributes={"VisibilityTimeout": str(visibility)}
            )

    def _functions(self, kind: str) -> list[Deployed]:
        return [function for function in self._runtime.functions if function.kind == kind]
