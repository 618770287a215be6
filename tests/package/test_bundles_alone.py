"""Every entry point from its bundle alone, under AWS's runtime client, with the events of AWS.

The assets are synthesized under umask 077, zipped as the CDK CLI does and unzipped elsewhere; the
functions run on Lambda's Python with Lambda's boto3 and nothing of this clone. The local runtime
deploys the template, and is the AWS that they call; it runs no function itself.

`make package` runs it; the wheels need a package index where they are not in `.build` yet.
"""

import io
import json
import os
import platform as machine
import stat
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Stack
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from webhook_inbox_cdk.bytecode import interpreter
from webhook_inbox_cdk.contents import LOCKS
from webhook_inbox_cdk.inbox import InboxProps, WebhookInbox
from webhook_inbox_cdk.platform import Platform
from webhook_inbox_cdk.vendor import vendored

from tests.functions.invocations import http_event, sqs_event, sqs_record
from tests.package.lambda_runtime import RunningFunction, running
from webhook_inbox import providers
from webhook_inbox.client.secret_documents import SecretDocuments
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.provider import Sample
from webhookctl.local import dev_secrets
from webhookctl.local.deployment.assembly import Assembly
from webhookctl.local.deployment.deploy import Deployer
from webhookctl.local.processes.ministack import Ministack

CLONE = Path(__file__).resolve().parents[2]
EVENTS = CLONE / "events"
PYTHON = Platform().python
ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}
EPOCH = (1980, 1, 1, 0, 0, 0)
SECRET = "not-a-secret-only-a-test"

INBOX = """
[sources.shop]
provider = "hmac"
signature = {{ header = "X-Signature", prefix = "sha256=", signs = "{{body}}" }}
event_id = {{ json = "id" }}
event_type = {{ json = "type" }}

[sources.github]
provider = "github"
allow = ["unhandled"]

[sources.meta]
provider = "meta"
allow = ["unhandled"]

[sources.discord]
provider = "discord"
allow = ["unhandled"]

[destinations.warehouse]
base_url = "http://127.0.0.1:{port}"
auth = {{ bearer = "warehouse-token" }}
allow = ["loopback", "plain-http"]
"""
HANDLERS = """
from pathlib import Path

from webhook_inbox import Context, Event, Router

shop = Router("shop")


@shop.on("order.paid", destinations=["warehouse"])
def ship(event: Event, ctx: Context) -> None:
    note = Path(__file__).with_name("note.txt").read_text(encoding="utf-8").strip()
    order = {"order": event.json()["id"], "note": note}
    ctx.http("warehouse").post("/orders?key=a-key-in-a-url", json=order, effect="ship")
"""


class Warehouse(ThreadingHTTPServer):
    """The destination of the handler."""

    def __init__(self) -> None:
        self.orders: list[tuple[str | None, Any]] = []
        orders = self.orders

        class Requests(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                orders.append((self.headers["Authorization"], json.loads(body)))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Requests)


@dataclass(frozen=True)
class Deployment:
    """A deployed stack, its zipped bundles, and what its functions are started with."""

    assembly: Assembly
    outputs: Mapping[str, str]
    ministack: Ministack
    python: str
    runtime: Path
    zips: Mapping[str, bytes]

    @property
    def manifest(self) -> Manifest:
        return self.assembly.manifest()

    def configuration(self, kind: str) -> Any:
        """Returns a function's configuration, with the values of this deployment."""
        names = {
            "ingest": self.outputs["IngestFunctionName"],
            "processor": json.loads(self.outputs["ProcessorFunctionNames"])["default"],
            "replay": self.outputs["ReplayFunctionName"],
            "reconciler": self.outputs["ReconcilerFunctionName"],
        }
        functions = self.ministack.client("lambda")
        return functions.get_function_configuration(FunctionName=names[kind])

    def queue(self) -> str:
        return str(json.loads(self.outputs["QueueUrls"])["default"])

    def receive(self) -> list[dict[str, Any]]:
        received = self.ministack.client("sqs").receive_message(
            QueueUrl=self.queue(),
            MaxNumberOfMessages=10,
            VisibilityTimeout=60,
            MessageSystemAttributeNames=["All"],
        )
        return list(received.get("Messages", ()))


Start = Callable[..., RunningFunction]


@pytest.fixture(scope="module")
def python() -> str:
    """Lambda's Python; CI has it in the job for that version."""
    found = interpreter(PYTHON)
    if sys.platform != "linux" or found is None:
        pytest.skip(f"NOT RUN: the bundles need Linux and Python {PYTHON}: install python{PYTHON}")
    return found.executable


@pytest.fixture(scope="module")
def key() -> Ed25519PrivateKey:
    return Ed25519PrivateKey.generate()


@pytest.fixture(scope="module")
def warehouse() -> Iterator[Warehouse]:
    with Warehouse() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def assembly(python: str, warehouse: Warehouse, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The assembly of a project with two handlers' files, synthesized under umask 077."""
    functions = tmp_path_factory.mktemp("project") / "functions"
    before = os.umask(0o077)
    try:
        (functions / "handlers").mkdir(parents=True)
        inbox = INBOX.format(port=warehouse.server_address[1])
        (functions / "inbox.toml").write_text(inbox)
        (functions / "handlers" / "__init__.py").write_text('MODULES = ("orders",)\n')
        (functions / "handlers" / "orders.py").write_text(HANDLERS)
        (functions / "handlers" / "note.txt").write_text("naïve\n", encoding="utf-8")
        app = App(outdir=str(tmp_path_factory.mktemp("assembly")), analytics_reporting=False)
        stack = Stack(app, "Inbox")
        props = InboxProps(
            functions=functions,
            build=CLONE / ".build",
            python=PYTHON,
            architecture=ARCHITECTURES[machine.machine()],
        )
        WebhookInbox(stack, "Inbox", props)
        return Path(app.synth().directory)
    finally:
        os.umask(before)


def zipped(directory: Path) -> bytes:
    """Returns a directory as the CDK CLI zips it: sorted, each file with its own mode."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target:
        for file in sorted(path for path in directory.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(file.relative_to(directory).as_posix(), EPOCH)
            entry.external_attr = file.stat().st_mode << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            target.writestr(entry, file.read_bytes())
    return buffer.getvalue()


@pytest.fixture(scope="module")
def deployment(
    assembly: Path, python: str, key: Ed25519PrivateKey, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment]:
    read = Assembly.read(assembly)
    here = Platform(PYTHON, ARCHITECTURES[machine.machine()])
    locks, cache = [LOCKS / "runtime.txt"], CLONE / ".build" / "vendor"
    [runtime] = vendored(locks, own=None, into=cache, platform=here)
    with Ministack(tmp_path_factory.mktemp("ministack")) as ministack:
        outputs = Deployer(ministack.client).deploy(read)
        stop_invocations(ministack)
        client = ministack.client("secretsmanager")
        dev_secrets.store(
            {
                "shop": SECRET,
                "github": SECRET,
                "meta": json.dumps({"secret": SECRET, "verify_token": "a-verify-token"}),
                "discord": key.public_key().public_bytes_raw().hex(),
                "warehouse-token": "a-bearer-token",
            },
            read.manifest(),
            SecretDocuments(client, outputs["SecretPrefix"]),
        )
        zips = {kind: zipped(path) for kind, path in code(read).items()}
        yield Deployment(read, outputs, ministack, python, runtime, zips)


def stop_invocations(ministack: Ministack) -> None:
    """Keeps the local runtime from running functions on its own Python."""
    functions = ministack.client("lambda")
    for mapping in functions.list_event_source_mappings()["EventSourceMappings"]:
        functions.delete_event_source_mapping(UUID=mapping["UUID"])
    rules = ministack.client("events")
    for rule in rules.list_rules()["Rules"]:
        rules.disable_rule(Name=rule["Name"])


def code(assembly: Assembly) -> dict[str, Path]:
    """Returns the asset of each kind of function, found as CloudFormation finds it."""
    assets = {asset.key: asset.path for asset in assembly.assets}
    resources = assembly.template()["Resources"].values()
    functions = [r["Properties"] for r in resources if r["Type"] == "AWS::Lambda::Function"]
    return {f["Handler"].partition(".")[0]: assets[f["Code"]["S3Key"]] for f in functions}


@pytest.fixture
def start(deployment: Deployment, tmp_path: Path) -> Iterator[Start]:
    """Starts a function from its unzipped bundle; checks afterwards that it wrote nothing there."""
    with ExitStack() as closing:

        def started(kind: str, **changes: str | None) -> RunningFunction:
            task = tmp_path / f"{kind}-task"
            unzip(deployment.zips[kind], task)
            before = contents(task)
            closing.callback(lambda: unchanged(task, before))
            return closing.enter_context(launch(deployment, kind, task, changes))

        yield started


def launch(
    deployment: Deployment, kind: str, task: Path, changes: Mapping[str, str | None]
) -> AbstractContextManager[RunningFunction]:
    configured = deployment.configuration(kind)
    variables = {
        **configured["Environment"]["Variables"],
        **deployment.ministack.credentials,
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": deployment.ministack.endpoint,
        **changes,
    }
    return running(
        deployment.python,
        handler=configured["Handler"],
        task=task,
        runtime=deployment.runtime,
        variables={name: value for name, value in variables.items() if value is not None},
        timeout=configured["Timeout"],
        output=task.with_name(f"{kind}.log"),
    )


def unzip(content: bytes, directory: Path) -> None:
    """Unpacks as Lambda does, with the modes in the zip."""
    with zipfile.ZipFile(io.BytesIO(content)) as source:
        for entry in source.infolist():
            path = Path(source.extract(entry, directory))
            path.chmod(stat.S_IMODE(entry.external_attr >> 16))


def contents(directory: Path) -> dict[str, str]:
    return {
        path.relative_to(directory).as_posix(): sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*")
        if path.is_file()
    }


def unchanged(task: Path, before: Mapping[str, str]) -> None:
    assert contents(task) == before, "/var/task is read-only in Lambda"


def signed(deployment: Deployment, body: bytes, kind: str) -> dict[str, Any]:
    """Returns the HTTP API event of a signed delivery to `shop`."""
    provider = providers.load(deployment.manifest.sources["shop"])
    headers = provider.sign(Sample("", "", body), SECRET, datetime.now(UTC))
    headers |= {"content-type": kind}
    return http_event("/webhooks/shop", headers=headers, body=body)


def order(number: int) -> bytes:
    return json.dumps({"id": f"order-{number}", "type": "order.paid"}).encode()


def test_every_file_of_an_asset_can_be_read_by_others(deployment: Deployment) -> None:
    for kind, content in deployment.zips.items():
        with zipfile.ZipFile(io.BytesIO(content)) as source:
            modes = {entry.external_attr >> 16 for entry in source.infolist()}
            names = source.namelist()
        assert modes == {0o100644}, kind
        assert f"{kind}/lambda_function.py" in names
        assert not [name for name in names if "boto" in name]
        assert f"{kind}/__pycache__/lambda_function.cpython-313.pyc" in names


def test_deliveries_are_stored_and_a_handler_runs(
    deployment: Deployment, start: Start, warehouse: Warehouse, key: Ed25519PrivateKey
) -> None:
    ingest = start("ingest")
    text = signed(deployment, order(1), "application/json")
    binary = signed(deployment, order(2), "application/octet-stream")
    assert (text["isBase64Encoded"], binary["isBase64Encoded"]) == (False, True)

    for number, event in ((1, text), (2, binary)):
        answer = ingest.answer(event)
        assert (answer["statusCode"], answer.get("isBase64Encoded", False)) == (202, False)
        assert answer["headers"]["content-type"] == "application/json"
        assert json.loads(answer["body"]) == {"status": "accepted", "event_id": f"order-{number}"}
    assert json.loads(ingest.answer(text)["body"])["status"] == "duplicate"
    handshakes(ingest, key)
    unsigned = json.loads((EVENTS / "ingest" / "http_api__unsigned.json").read_text())
    assert ingest.answer(unsigned)["statusCode"] == 401

    # A young duplicate is sent again: its run may have been lost.
    good = [sqs_record(message) for message in deployment.receive()]
    assert len(good) == 3
    [bad] = json.loads((EVENTS / "processor" / "message__not_ours.json").read_text())["Records"]
    processor = start("processor")
    answer = processor.answer(sqs_event([*good, bad]))

    assert answer == {"batchItemFailures": [{"itemIdentifier": bad["messageId"]}]}
    expected = [{"order": f"order-{number}", "note": "naïve"} for number in (1, 2)]
    assert sorted((o for _, o in warehouse.orders), key=str) == expected
    assert {token for token, _ in warehouse.orders} == {"Bearer a-bearer-token"}
    for function in (ingest, processor):
        written = function.output.read_text()
        assert SECRET not in written
        assert "a-bearer-token" not in written
        assert "a-key-in-a-url" not in written
        assert all(isinstance(json.loads(line), dict) for line in written.splitlines() if line)


def handshakes(ingest: RunningFunction, key: Ed25519PrivateKey) -> None:
    """A GET whose challenge is sent back, and a ping under an asymmetric signature."""
    query = "hub.mode=subscribe&hub.verify_token=a-verify-token&hub.challenge=1158201444"
    event = {**http_event("/webhooks/meta", method="GET"), "rawQueryString": query}
    answer = ingest.answer(event)
    assert (answer["statusCode"], answer["body"]) == (200, "1158201444")

    ping, now = b'{"type":1}', str(int(datetime.now(UTC).timestamp()))
    headers = {
        "content-type": "application/json",
        "x-signature-ed25519": key.sign(now.encode() + ping).hex(),
        "x-signature-timestamp": now,
    }
    answer = ingest.answer(http_event("/webhooks/discord", headers=headers, body=ping))
    assert (answer["statusCode"], json.loads(answer["body"])) == (200, {"type": 1})


def test_the_reconciler_makes_a_pass_on_schedule(start: Start) -> None:
    event = json.loads((EVENTS / "reconciler" / "schedule.json").read_text())
    assert start("reconciler").answer(event)["complete"] is True


def test_replay_answers_an_operator_and_reports_an_invalid_request(start: Start) -> None:
    replay = start("replay")
    request = json.loads((EVENTS / "replay" / "event__one_by_id.json").read_text())
    assert replay.answer(request)["counts"] == {"missing": 1}

    outcome = replay.invoke({**request, "reason": "", "colour": SECRET})

    assert (outcome.kind, outcome.body["errorType"]) == ("error", "InvalidRequestError")
    assert "colour" in outcome.body["errorMessage"]
    assert SECRET not in json.dumps(outcome.body)
    assert replay.answer(request)["counts"] == {"missing": 1}


def test_an_unreadable_environment_is_an_error_of_the_start(start: Start) -> None:
    outcome = start("reconciler", TABLE_NAME=None).init_error()
    assert (outcome.kind, outcome.error_type) == ("init-error", "ConfigurationError")
    assert outcome.body["errorMessage"] == (
        "the variable TABLE_NAME is not set; deploy the stack again"
    )
