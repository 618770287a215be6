"""An inbox for tests: everything `webhookctl dev` runs, on its own ports and directory."""

import contextlib
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Self

from webhookctl.local.deployment.functions import Deployed
from webhookctl.local.deployment.synth import Project
from webhookctl.local.ports import LOOPBACK, free_port
from webhookctl.local.processes.process_group import await_end, command_line, members
from webhookctl.local.runtime import Runtime, Settings

ROOT: Final = Path(__file__).resolve().parents[2]


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
        """Prepares the inbox; entering the context starts it.

        Args:
            functions: a directory with `handlers/` and `inbox.toml`. It is copied.
            state: for everything it writes; by default a temporary directory. A directory that
                is reused avoids the synthesis while its inputs are the same.
            secrets: values by source; the others get fake ones.
            tell: receives the lines that a session would print.
        """
        self._closing = contextlib.ExitStack()
        if state is None:
            scratch = tempfile.TemporaryDirectory(prefix="webhook-inbox-")
            state = Path(self._closing.enter_context(scratch))
        settings = Settings(
            port=0, sink_port=free_port(), secrets=secrets or {}, sink_log=state / "sink.log"
        )
        self.functions = state / "functions"
        self.sink_url = f"http://{LOOPBACK}:{settings.sink_port}"
        self._given = functions
        self._runtime = Runtime(Project(ROOT, self.functions, state), settings, tell)

    def __enter__(self) -> Self:
        try:
            self.copy_functions()
            self._closing.callback(self._runtime.stop)
            self._runtime.start()
            self._runtime.await_workers()
        except BaseException:
            self._closing.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    @property
    def front_url(self) -> str:
        """The URL of the local API; post to `{front_url}/webhooks/{source}`."""
        return self._runtime.front.url

    @property
    def endpoint(self) -> str:
        """The address of ministack."""
        return self._runtime.ministack.endpoint

    @property
    def credentials(self) -> Mapping[str, str]:
        """The variables with the credentials that ministack takes."""
        return self._runtime.ministack.credentials

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
        """Copies the given directory again; `reload` deploys the copy."""
        shutil.rmtree(self.functions, ignore_errors=True)
        shutil.copytree(
            self._given / "handlers",
            self.functions / "handlers",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        shutil.copyfile(self._given / "inbox.toml", self.functions / "inbox.toml")

    def reload(self) -> bool:
        """Reloads as a session does after an edit; returns whether the code changed."""
        return self._runtime.reload()

    def start_sink(self) -> None:
        """Starts the sink again, with its journal."""
        self._runtime.start_sink()

    def stop_sink(self) -> None:
        """Stops the sink, so that its port refuses connections."""
        self._runtime.stop_sink()

    @contextlib.contextmanager
    def frozen_sink(self) -> Iterator[None]:
        """Suspends the sink; it answers pending requests after the block."""
        self._runtime.signal_sink(signal.SIGSTOP)
        try:
            yield
        finally:
            self._runtime.signal_sink(signal.SIGCONT)

    def workers(self, kind: str = "processor") -> list[int]:
        """Returns the ids of the live Lambda workers of a kind of function, or of a named one."""
        names = [f"ministack-lambda-{function.name}-" for function in self._functions(kind)]
        listed = {pid: command_line(pid) for pid in members(self.group)}
        return [pid for pid, line in listed.items() if any(name in line for name in names)]

    def kill_workers(self, kind: str = "processor") -> int:
        """Kills the workers of a kind of function, or of a named one; returns how many.

        Waits until they are gone: ministack would assign work to a worker that is still exiting.
        """
        killed = []
        for pid in self.workers(kind):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
        await_end(self.group, killed)
        return len(killed)

    def hurry(self, *, timeout: int = 6, visibility: int = 20) -> None:
        """Shortens the time until the message of a killed worker is received again.

        Args:
            timeout: the processors' timeout, seconds.
            visibility: their queues' visibility timeout, seconds. It must exceed a lease, which
                ends 5 s after the invocation's deadline and expires 5 s later.
        """
        for function in self._functions("processor"):
            found = self.client("lambda").get_function_configuration(FunctionName=function.name)
            variables = {**found["Environment"]["Variables"], "VISIBILITY_TIMEOUT": str(visibility)}
            self.client("lambda").update_function_configuration(
                FunctionName=function.name, Timeout=timeout, Environment={"Variables": variables}
            )
        for url in json.loads(self.outputs["QueueUrls"]).values():
            self.client("sqs").set_queue_attributes(
                QueueUrl=url, Attributes={"VisibilityTimeout": str(visibility)}
            )

    def _functions(self, kind: str) -> list[Deployed]:
        return [each for each in self._runtime.functions if kind in {each.kind, each.name}]
