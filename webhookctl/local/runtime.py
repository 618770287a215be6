"""Everything that runs on the laptop, started and stopped as one."""

import contextlib
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from webhook_inbox.domain.manifest import Manifest
from webhookctl.local import dev_secrets, state
from webhookctl.local.deployment.deploy import Deployer
from webhookctl.local.deployment.functions import Deployed, Fleet, deployed
from webhookctl.local.deployment.synth import synthesize
from webhookctl.local.errors import LocalError
from webhookctl.local.http.gateway import Gateway
from webhookctl.local.http.server import IN_FLIGHT, Front
from webhookctl.local.logs import LogFollower
from webhookctl.local.ports import LOOPBACK, accepts
from webhookctl.local.processes.ministack import REGION, Ministack
from webhookctl.local.processes.process_group import Child
from webhookctl.local.project import Project
from webhookctl.local.reload import Versions, bundles, compiled, template_inputs

API_HOST: Final = re.compile(r"https?://([^./]+)\.execute-api\.")
# One worker of each at the start; ingest gets as many as the front ever uses at once.
WARM: Final[Mapping[str, int]] = {"ingest": IN_FLIGHT, "processor": 2}
SINK_LIMIT: Final = 60.0  # seconds; it takes half a one
POLL: Final = 0.02


@dataclass(frozen=True, slots=True)
class Settings:
    """What a runtime is told: ports, secrets by source, and where the sink's lines go.

    Without a `sink_log` they go to the terminal.
    """

    port: int
    sink_port: int
    secrets: Mapping[str, str] = field(default_factory=dict)
    sink_log: Path | None = None


class Runtime:
    """ministack with the deployed stack, the front, the sink and the functions' logs."""

    def __init__(self, project: Project, settings: Settings, tell: Callable[[str], None]) -> None:
        """Prepares; `start` starts.

        Args:
            project: where things are.
            settings: what the user chose.
            tell: receives the lines for the terminal.
        """
        self.project = project
        self.settings = settings
        self.ministack = Ministack(project.state)
        self.front = Front(settings.port, tell)
        self.sink_url = f"http://{LOOPBACK}:{settings.sink_port}"
        self.outputs: dict[str, str] = {}
        self.secrets: dict[str, str] = {}
        self.manifest = Manifest()
        self.functions: tuple[Deployed, ...] = ()
        self._tell = tell
        self._deployer = Deployer(self.ministack.client)
        self._fleet = Fleet(self.ministack.client)
        self._closing = contextlib.ExitStack()
        self._versions = Versions(self._fleet, {})
        self._logs: LogFollower | None = None
        self._sink: Child | None = None
        self._journal = project.state / "sink.jsonl"

    def start(self) -> None:
        """Starts all of it; raises LocalError or ConfigurationError, and then nothing runs."""
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stops all of it; may be called twice."""
        self._closing.close()

    def reload(self) -> bool:
        """Brings the edited files into what runs; returns whether they differ from it.

        Raises LocalError or ConfigurationError where they cannot be used; what ran before goes
        on running.
        """
        manifest = compiled(self.project)
        if template_inputs(manifest) != template_inputs(self.manifest):
            # It takes ten seconds, in which somebody may already post to a new source.
            self._tell(f"{_changed(self.manifest, manifest)} changed: reloading the stack …")
            self._deploy(manifest)
            self._fleet.warm(dict.fromkeys(self.functions, 1))
            self._follow_logs()
            self._write_state()
            self._tell("reloaded: the stack")
            self._announce(manifest)
            differs = True
        else:
            made = bundles(self.project, manifest)
            differs = self._versions.replace(
                made, self.functions, lambda names: self._tell(f"reloaded: {names}")
            )
        self.manifest = manifest
        return differs

    def check(self) -> None:
        """Raises LocalError where ministack has ended by itself."""
        if not self.ministack.running:
            message = f"ministack has ended: see {self.ministack.log}"
            raise LocalError(message)

    def start_sink(self) -> None:
        """Starts the sink; it knows the effects of this runtime's earlier starts."""
        port = str(self.settings.sink_port)
        command = [
            "webhookctl.local.processes.sink",
            "--port",
            port,
            "--journal",
            str(self._journal),
        ]
        with contextlib.ExitStack() as closing:
            log = self.settings.sink_log
            output = closing.enter_context(log.open("ab")) if log is not None else None
            self._sink = Child(command, env=os.environ, output=output)
        deadline = time.monotonic() + SINK_LIMIT
        while not accepts(self.settings.sink_port):
            if not self._sink.running or time.monotonic() > deadline:
                message = f"the sink did not start on port {port}"
                raise LocalError(message)
            time.sleep(POLL)

    def signal_sink(self, number: int) -> None:
        """Sends the sink a signal; one that is stopped gets none."""
        if self._sink is not None and self._sink.running:
            os.killpg(self._sink.pid, number)

    def stop_sink(self) -> None:
        """Stops the sink; may be called twice."""
        if self._sink is not None:
            self._sink.stop()

    def _start(self) -> None:
        # First what can be wrong with the user's files, in milliseconds and without Node.
        manifest = compiled(self.project)
        self._closing.callback(self.front.stop)
        self._listen()
        self._closing.callback(self.stop_sink)
        # The ledger begins empty: old effects would answer for events that it does not know.
        self._journal.unlink(missing_ok=True)
        # At once, as the front: somebody else could take its port while the stack is deployed.
        self.start_sink()
        self._closing.callback(self.ministack.stop)
        self.ministack.start()
        self._deploy(manifest)
        self.manifest = manifest
        self._fleet.warm({f: WARM.get(f.kind, 1) for f in self.functions})
        self._closing.callback(self._stop_logs)
        self._follow_logs()
        self._closing.callback(state.remove, self.project.state)
        self._write_state()

    def _announce(self, manifest: Manifest) -> None:
        for name, source in manifest.sources.items():
            if name not in self.manifest.sources:
                address = f"{self.front.url}/webhooks/{name}"
                given = {name, source.secret} & set(self.settings.secrets)
                secret = "as given" if given else self.secrets[source.secret]
                self._tell(f"new source: {address} ({source.provider}), secret: {secret}")

    def _listen(self) -> None:
        try:
            self.front.start()
        except OSError as error:
            message = f"port {self.settings.port} is taken: choose another with --port"
            raise LocalError(message) from error

    def _deploy(self, manifest: Manifest) -> None:
        assembly = synthesize(self.project)
        self.secrets = dev_secrets.choose(manifest, self.settings.secrets, self.project.state)
        self.outputs = self._deployer.deploy(assembly)
        self.functions = deployed(self.outputs)
        self._versions = Versions(self._fleet, bundles(self.project, manifest))
        dev_secrets.store(
            self.secrets,
            prefix=self.outputs["SecretPrefix"],
            vault=self.ministack.client("secretsmanager"),
        )
        self.front.gateway = Gateway(
            self.ministack.port, api_id(self.outputs), self.outputs["IngestFunctionName"]
        )

    def _follow_logs(self) -> None:
        self._stop_logs()
        groups = {function.shown: self._fleet.log_group(function) for function in self.functions}
        self._logs = LogFollower(self.ministack.client("logs"), groups, self._tell)
        self._logs.start()

    def _stop_logs(self) -> None:
        if self._logs is not None:
            self._logs.stop()

    def _write_state(self) -> None:
        children: dict[str, Any] = {"ministack": self.ministack.pid}
        if self._sink is not None:
            children["sink"] = self._sink.pid
        state.write(
            self.project.state,
            state.State(
                pid=os.getpid(),
                endpoint=self.ministack.endpoint,
                region=REGION,
                front=self.front.url,
                sink=self.sink_url,
                outputs=self.outputs,
                children=children,
            ),
        )


def _changed(before: Manifest, after: Manifest) -> str:
    configured = before.sources == after.sources and before.secrets == after.secrets
    return "what a handler asks for" if configured else "inbox.toml"


def api_id(outputs: Mapping[str, str]) -> str:
    """Returns the API's id, which its URL begins with."""
    found = API_HOST.match(outputs["ApiUrl"])
    if found is None:
        message = f"the stack's ApiUrl is no HTTP API's: {outputs['ApiUrl']}"
        raise LocalError(message)
    return found[1]
