"""The local runtime: ministack, the local API, the sink and the log follower."""

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from botocore.exceptions import BotoCoreError

from webhook_inbox.client import local_session
from webhook_inbox.client.secret_documents import SecretDocuments
from webhook_inbox.domain.manifest import LOCAL, Manifest
from webhookctl.checkout import Checkout
from webhookctl.errors import CommandError
from webhookctl.local import dev_secrets
from webhookctl.local.deployment.deploy import Deployer
from webhookctl.local.deployment.functions import Deployed, Fleet, deployed
from webhookctl.local.deployment.synth import Project, synthesize, unchanged
from webhookctl.local.http.gateway import Gateway
from webhookctl.local.http.server import IN_FLIGHT, Front
from webhookctl.local.kept import Kept
from webhookctl.local.logs import LogFollower
from webhookctl.local.ports import LOOPBACK, accepts
from webhookctl.local.processes.ministack import Ministack
from webhookctl.local.processes.process_group import Child, inherited
from webhookctl.local.reload import Versions, bundles, template_inputs

API_HOST: Final = re.compile(r"https?://([^./]+)\.execute-api\.")
# Workers at the start, one by default; ingest gets as many as the local API uses at once. An event
# needs these kinds.
WARM: Final[Mapping[str, int]] = {"ingest": IN_FLIGHT, "processor": 2}
SINK_LIMIT: Final = 60.0  # seconds; it takes half a one
POLL: Final = 0.02


@dataclass(frozen=True, slots=True)
class Settings:
    """The ports, the secrets by source, the hosts of tunnels, and files.

    Without a log file, the sink logs to the terminal; without `kept`, the session's events end with
    it.
    """

    port: int
    sink_port: int
    secrets: Mapping[str, str] = field(default_factory=dict)
    hosts: frozenset[str] = frozenset()
    sink_log: Path | None = None
    kept: Kept | None = None


class Runtime:
    """Starts, reloads and stops all parts together."""

    def __init__(self, project: Project, settings: Settings, tell: Callable[[str], None]) -> None:
        """Prepares the parts; `tell` receives lines for the terminal."""
        self.project = project
        self.settings = settings
        self.sink_url = f"http://{LOOPBACK}:{settings.sink_port}"
        kept = settings.kept
        self.ministack = Ministack(
            project.state,
            port=kept.port() if kept else None,
            variables={
                "SINK_URL": self.sink_url,
                "API_URL": links_url(settings),
                **(kept.variables if kept else {}),
            },
        )
        self.front = Front(settings.port, tell, hosts=settings.hosts)
        self.outputs: dict[str, str] = {}
        self.secrets: dict[str, str] = {}
        # Names of stored secrets that `webhookctl secrets set` has replaced.
        self.replaced: frozenset[str] = frozenset()
        self.manifest = Manifest()
        self.functions: tuple[Deployed, ...] = ()
        self._tell = tell
        self._deployer = Deployer(self.ministack.client)
        self._fleet = Fleet(self.ministack.client)
        self._closing = contextlib.ExitStack()
        self._versions = Versions(self._fleet, {})
        self._logs: LogFollower | None = None
        self._sink: Child | None = None
        self._warming = threading.Thread()
        self._journal = kept.journal if kept else project.state / "sink.jsonl"

    def start(self) -> None:
        """Starts all parts; raises CommandError or ConfigurationError after stopping them again."""
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stops all parts; may be called twice."""
        self._closing.close()

    def reload(self) -> bool:
        """Deploys the edited files; returns whether they differ from the running version.

        Raises CommandError or ConfigurationError for invalid files; the previous version keeps
        running.
        """
        manifest = Checkout(self.project.functions).manifest(LOCAL)
        if template_inputs(manifest) != template_inputs(self.manifest):
            # It takes ten seconds, in which a user may already post to a new source.
            self._tell(f"{_changed(self.manifest, manifest)} changed: updating the stack …")
            self._deploy(manifest)
            self._fleet.warm(dict.fromkeys(self.functions, 1))
            self._follow_logs()
            before, self.manifest = self.manifest, manifest
            self._write_state()
            self._tell("reloaded: the stack")
            self._announce(before)
            differs = True
        else:
            made = bundles(self.project, manifest)
            differs = self._versions.replace(
                made, self.functions, lambda names: self._tell(f"reloaded: {names}")
            )
            self.manifest = manifest
            self._write_state()
        return differs

    def check(self) -> None:
        """Raises CommandError where ministack has exited."""
        if not self.ministack.running:
            raise CommandError(f"ministack exited: see {self.ministack.log}")

    def start_sink(self) -> None:
        """Starts the sink with the journal of this runtime's earlier starts."""
        port = str(self.settings.sink_port)
        command = ["webhookctl.local.processes.sink", "--port", port]
        command += ["--journal", str(self._journal)]
        with contextlib.ExitStack() as closing:
            log = self.settings.sink_log
            output = closing.enter_context(log.open("ab")) if log is not None else None
            self._sink = Child(command, env=inherited(), output=output)
        deadline = time.monotonic() + SINK_LIMIT
        while not accepts(self.settings.sink_port):
            if not self._sink.running or time.monotonic() > deadline:
                raise CommandError(f"the sink did not start on port {port}")
            time.sleep(POLL)

    def signal_sink(self, number: int) -> None:
        """Sends the sink a signal where it is running."""
        if self._sink is not None and self._sink.running:
            os.killpg(self._sink.pid, number)

    def stop_sink(self) -> None:
        """Stops the sink; may be called twice."""
        if self._sink is not None:
            self._sink.stop()

    def _start(self) -> None:
        # Errors in the user's files show within milliseconds, before Node starts.
        assembly = unchanged(self.project)
        checkout = Checkout(self.project.functions)
        manifest = assembly.manifest() if assembly else checkout.manifest(LOCAL)
        self._closing.callback(self.front.stop)
        self._listen()
        self._closing.callback(self.stop_sink)
        if self.settings.kept is None:
            # The ledger starts empty; old effects would answer for unknown events.
            self._journal.unlink(missing_ok=True)
        # As early as the local API: another process could take the port during the deployment.
        self.start_sink()
        self._closing.callback(self.ministack.stop)
        self.ministack.start()
        self.manifest = manifest
        self._deploy(manifest)
        # One worker shows whether your code can be imported; the others may follow.
        self._fleet.warm({f: 1 for f in self.functions if f.kind in WARM})
        self._warming = threading.Thread(target=self._warm_more, daemon=True, name="warm-up")
        self._warming.start()
        self._closing.callback(self._stop_logs)
        self._follow_logs()
        self._closing.callback(local_session.remove, self.project.state)
        self._write_state()

    def _warm_more(self) -> None:
        """Starts the workers for concurrent requests."""
        # An edit or the end of the session may stop them; then requests start workers.
        with contextlib.suppress(CommandError, BotoCoreError):
            self._fleet.warm({f: WARM.get(f.kind, 1) for f in self.functions})

    def await_workers(self) -> None:
        """Waits until the workers for concurrent requests run."""
        self._warming.join()

    def _announce(self, before: Manifest) -> None:
        for name, source in self.manifest.sources.items():
            if name not in before.sources:
                address = f"{self.front.url}/webhooks/{name}"
                given = source.secret in self.given
                secret = "as given" if given else self.secrets[source.secret]
                self._tell(f"new source: {address} ({source.provider}), secret: {secret}")

    def _listen(self) -> None:
        try:
            self.front.start()
        except OSError as error:
            raise CommandError(
                f"port {self.settings.port} is taken: choose another with --port"
            ) from error

    def _deploy(self, manifest: Manifest) -> None:
        assembly = synthesize(self.project)
        # A later deployment must not undo `webhookctl secrets set`.
        given = frozenset() if self.outputs else self.given
        self.secrets = dev_secrets.choose(manifest, self.settings.secrets, self.project.state)
        self.outputs = self._deployer.deploy(assembly)
        self.functions = deployed(self.outputs)
        self._versions = Versions(self._fleet, bundles(self.project, manifest))
        self._store_secrets(manifest, given)
        self.front.gateway = Gateway(
            self.ministack.port,
            self.ministack.credentials["AWS_SESSION_TOKEN"],
            api_id(self.outputs),
            self.outputs["IngestFunctionName"],
        )

    def _store_secrets(self, manifest: Manifest, given: frozenset[str]) -> None:
        """Stores the secrets that the documents do not have, and `given` ones.

        The others may have been replaced, in this session or in one that kept its state.
        """
        vault = self.ministack.client("secretsmanager")
        documents = SecretDocuments(vault, self.outputs["SecretPrefix"])
        wanted = set(self.secrets) - given
        found = {n: value for n, value in dev_secrets.stored(documents).items() if n in wanted}
        self.replaced = frozenset(n for n in found if found[n] != self.secrets[n])
        new = {name: value for name, value in self.secrets.items() if name not in found}
        dev_secrets.store(new, manifest, documents)
        self.secrets |= found

    @property
    def given(self) -> frozenset[str]:
        """The names of the secrets with a value of this session's settings."""
        sources, given = self.manifest.sources, self.settings.secrets
        return frozenset(sources[name].secret if name in sources else name for name in given)

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
        local_session.write(
            self.project.state,
            local_session.State(
                pid=os.getpid(),
                started=local_session.started(),
                endpoint=self.ministack.endpoint,
                credentials=self.ministack.credentials,
                front=self.front.url,
                sink=self.sink_url,
                outputs=self.outputs,
                manifest=self.manifest.to_data(),
                children=children,
            ),
        )


def links_url(settings: Settings) -> str:
    """Returns the base URL of approval links: a tunnel's, which other machines reach, if any."""
    tunnel = min(settings.hosts, default="")
    return f"https://{tunnel}" if tunnel else f"http://{LOOPBACK}:{settings.port}"


def _changed(before: Manifest, after: Manifest) -> str:
    configured = before.sources == after.sources and before.secrets == after.secrets
    return "handler settings" if configured else "inbox.toml"


def api_id(outputs: Mapping[str, str]) -> str:
    """Returns the API's id, the first label of its URL's host."""
    found = API_HOST.match(outputs["ApiUrl"])
    if found is None:
        raise CommandError(f"the stack's ApiUrl is not the URL of an HTTP API: {outputs['ApiUrl']}")
    return found[1]
