"""The same template where every function has the rights of its own role and no others.

ministack checks policies when it is told to; queue and bucket policies then want TLS. Neither
the front nor the session knows of that, so this is ministack, the stack and a sink alone.
"""

import contextlib
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import botocore.session
from botocore.config import Config

from tests.e2e.http_call import call
from tests.e2e.inquiry import Inquiry
from tests.e2e.project import REPOSITORY, shift_reconciler, write_functions
from tests.waiting import DEADLINE, eventually
from webhook_inbox.adapters.aws.account import LOOPBACK_REGION
from webhook_inbox.domain.manifest import Manifest
from webhookctl.local import dev_secrets
from webhookctl.local.deployment.deploy import Deployer
from webhookctl.local.deployment.synth import Project, synthesize
from webhookctl.local.ports import LOOPBACK, free_port
from webhookctl.local.processes.ministack import scrubbed
from webhookctl.local.processes.process_group import Child
from webhookctl.local.processes.sink import Sink
from webhookctl.local.runtime import api_id

SEND = "sqs:SendMessage"
# The account's root; ministack itself verifies signatures where it enforces policies.
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


class GuardedInbox(Inquiry):
    """A deployed inbox under enforced policies; entering the context starts it."""

    def __init__(self, directory: Path) -> None:
        self.functions = write_functions(directory / "functions")
        shift_reconciler(self.functions)
        self._directory = directory
        self._port = free_port()
        self._closing = contextlib.ExitStack()
        self._clients: dict[str, Any] = {}

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._closing.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def client(self, service: str) -> Any:
        """Returns a client with the rights of the account's root, made once for each service."""
        # Reading a service's model takes a tenth of a second.
        if service not in self._clients:
            self._clients[service] = self._made(service)
        return self._clients[service]

    def _made(self, service: str) -> Any:
        return botocore.session.get_session().create_client(
            service,
            region_name=LOOPBACK_REGION,
            endpoint_url=f"https://{LOOPBACK}:{self._port}",
            aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
            verify=str(self._certificate),
            config=Config(s3={"addressing_style": "path"}, proxies={}, read_timeout=DEADLINE),
        )

    @property
    def _certificate(self) -> Path:
        return self._directory / "temporary" / "ministack-tls" / "server.crt"

    def _start(self) -> None:
        self._start_sink()
        self._start_ministack()
        self._deploy(self.manifest)

    def _start_ministack(self) -> None:
        temporary = self._directory / "temporary"
        temporary.mkdir()
        environment = scrubbed(temporary, port=self._port, credentials=CREDENTIALS)
        log = self._closing.enter_context((self._directory / "ministack.log").open("wb"))
        child = Child(
            ["ministack"],
            env={**environment, "AUTH": "true", "USE_SSL": "1", "SINK_URL": self.sink_url},
            cwd=temporary,
            output=log.fileno(),
        )
        self._closing.callback(child.stop)
        eventually(self._healthy, what="ministack behind TLS")
        self.trust = ssl.create_default_context(cafile=str(self._certificate))

    def _healthy(self) -> bool:
        if not self._certificate.exists():
            return False
        trust = ssl.create_default_context(cafile=str(self._certificate))
        with contextlib.suppress(OSError):
            url = f"https://{LOOPBACK}:{self._port}/_ministack/health"
            return call(url, trust=trust).status == 200
        return False

    def _start_sink(self) -> None:
        sink = Sink(0, self._directory / "sink.jsonl")
        self.sink_url = f"http://{LOOPBACK}:{sink.server_address[1]}"
        thread = threading.Thread(target=sink.serve_forever, daemon=True)
        thread.start()
        self._closing.callback(sink.server_close)
        self._closing.callback(sink.shutdown)

    def _deploy(self, manifest: Manifest) -> None:
        project = Project(REPOSITORY, self.functions, self._directory / "state")
        self.outputs = Deployer(self.client).deploy(synthesize(project))
        self._spell_out_batches()
        self.stop_schedule()
        self.secrets = dev_secrets.choose(manifest, {}, project.state)
        dev_secrets.store(self.secrets, manifest, self.documents)
        api = f"/_aws/execute-api/{api_id(self.outputs)}/$default"
        self.front_url = f"https://{LOOPBACK}:{self._port}{api}"

    # -- policies

    def _spell_out_batches(self) -> None:
        """Allows roles that may send messages to send batches too.

        In AWS `sqs:SendMessage` is the right to both, and there is no `sqs:SendMessageBatch`;
        ministack asks for that.
        """
        for role in self._roles():
            for policy, document in self._policies(role):
                for statement in document["Statement"]:
                    if SEND in statement["Action"]:
                        actions = statement["Action"]
                        listed = [actions] if isinstance(actions, str) else actions
                        statement["Action"] = [*listed, f"{SEND}Batch"]
                self._put(role, policy, document)

    def _roles(self) -> list[str]:
        return [role["RoleName"] for role in self.client("iam").list_roles()["Roles"]]

    def _policies(self, role: str) -> list[tuple[str, dict[str, Any]]]:
        iam = self.client("iam")
        names = iam.list_role_policies(RoleName=role)["PolicyNames"]
        found = [iam.get_role_policy(RoleName=role, PolicyName=name) for name in names]
        return [(policy["PolicyName"], policy["PolicyDocument"]) for policy in found]

    def _put(self, role: str, policy: str, document: dict[str, Any]) -> None:
        text = json.dumps(document)
        self.client("iam").put_role_policy(RoleName=role, PolicyName=policy, PolicyDocument=text)

    @contextlib.contextmanager
    def without(self, output: str, action: str) -> Iterator[None]:
        """Takes one right from a function's role for a while."""
        functions = self.client("lambda")
        found = functions.get_function_configuration(FunctionName=self.outputs[output])
        role = found["Role"].rpartition("/")[2]
        policy, document = self._policies(role)[0]
        deny = {"Effect": "Deny", "Action": action, "Resource": "*"}
        self._put(role, policy, {**document, "Statement": [*document["Statement"], deny]})
        try:
            yield
        finally:
            self._put(role, policy, document)
