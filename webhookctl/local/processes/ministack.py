"""ministack as a child process: emulates AWS on a loopback port."""

import os
import secrets
import shutil
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

from webhook_inbox.adapters.aws.account import LOOPBACK_REGION, loopback_client
from webhookctl.errors import CommandError
from webhookctl.local.ports import LOOPBACK, free_port, require_free
from webhookctl.local.processes.guarded_ministack import SESSION
from webhookctl.local.processes.process_group import GRACE, Child, inherited

START_LIMIT: Final = 60.0  # seconds; it takes half a one
SAVE_LIMIT: Final = 60.0  # seconds; the state of ten thousand events takes a few
POLL: Final = 0.05


def new_credentials() -> dict[str, str]:
    """Returns the variables with the credentials of a new session.

    The guard compares the token, which botocore sends with every request.
    """
    return {
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": secrets.token_urlsafe(32),
        "AWS_SESSION_TOKEN": secrets.token_urlsafe(32),
    }


def scrubbed(temporary: Path, *, port: int, credentials: Mapping[str, str]) -> dict[str, str]:
    """Returns ministack's whole environment, which its functions inherit.

    It has its own home, temporary files and configuration, so that it cannot reach the developer's
    profile or Docker daemon: at start ministack removes containers that it considers its own.
    """
    return {
        **inherited(),
        **credentials,
        "AWS_DEFAULT_REGION": LOOPBACK_REGION,
        "AWS_REGION": LOOPBACK_REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "BIND_HOST": LOOPBACK,
        "DOCKER_HOST": f"unix://{temporary}/no-docker",
        "GATEWAY_PORT": str(port),
        "HOME": str(temporary),
        "IOT_MTLS_ENABLED": "0",
        "LOG_LEVEL": "WARNING",
        # The functions inherit ministack's environment; the log shows the outcomes of runs.
        "POWERTOOLS_LOG_LEVEL": "INFO",
        "NO_PROXY": "*",
        "SFTP_ENABLED": "0",
        "TMPDIR": str(temporary),
    }


class Ministack:
    """A ministack process; its state is in memory, unless `variables` say otherwise."""

    def __init__(
        self,
        directory: Path,
        *,
        port: int | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Prepares the process.

        Args:
            directory: receives its log.
            port: its port; a free one by default.
            variables: more variables of its functions.
        """
        self.port = port or free_port()
        self.endpoint = f"http://{LOOPBACK}:{self.port}"
        self.log = directory / "ministack.log"
        self.credentials: Mapping[str, str] = new_credentials()
        self._variables = dict(variables or {})
        self._directory = directory
        self._clients: dict[str, Any] = {}
        self._child: Child | None = None
        self._temporary = Path()

    def start(self) -> Self:
        """Starts it and waits until it answers; raises CommandError where it does not."""
        # Another process on this port would answer in its place.
        require_free(self.port, purpose="ministack", option="port=")
        self._directory.mkdir(parents=True, exist_ok=True)
        self._temporary = Path(tempfile.mkdtemp(prefix="ministack-", dir=self._directory))
        with self.log.open("wb") as output:
            self._child = Child(
                ["webhookctl.local.processes.guarded_ministack"],
                env=self._environment(),
                cwd=self._temporary,
                output=output.fileno(),
            )
        try:
            self._wait(self._child)
        except BaseException:
            self.stop()
            raise
        return self

    @property
    def pid(self) -> int:
        """The process id, also the id of the process group of its Lambda workers."""
        if self._child is None:
            raise CommandError("ministack was not started")
        return self._child.pid

    @property
    def running(self) -> bool:
        """True while it runs."""
        return self._child is not None and self._child.running

    def stop(self) -> None:
        """Ends it and every Lambda worker; may be called twice."""
        if self._child is not None:
            # It saves what it keeps before it ends.
            self._child.stop(grace=SAVE_LIMIT if "PERSIST_STATE" in self._variables else GRACE)
        if self._temporary.name:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def client(self, service: str) -> Any:
        """Returns a client of this endpoint that knows no other account, made once a service."""
        # Reading a service's model takes a tenth of a second, and a start needs thirty clients.
        if service not in self._clients:
            self._clients[service] = loopback_client(
                service, endpoint=self.endpoint, credentials=self.credentials
            )
        return self._clients[service]

    def _environment(self) -> dict[str, str]:
        temporary = self._temporary.resolve()
        own = scrubbed(temporary, port=self.port, credentials=self.credentials)
        return {**self._variables, **own}

    def _wait(self, child: Child) -> None:
        deadline = time.monotonic() + START_LIMIT
        while time.monotonic() < deadline:
            if not child.running:
                raise CommandError(f"ministack exited while starting: see {self.log}")
            if self._healthy():
                return
            time.sleep(POLL)
        raise CommandError(f"ministack did not answer within {START_LIMIT:.0f} s: see {self.log}")

    def _healthy(self) -> bool:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        token = {SESSION: self.credentials["AWS_SESSION_TOKEN"]}
        asked = urllib.request.Request(f"{self.endpoint}/_ministack/health", headers=token)  # noqa: S310
        try:
            with opener.open(asked, timeout=2.0) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
