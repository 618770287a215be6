"""A tiny stack on one ministack, and fronts before it."""

from collections.abc import Callable, Iterator

import pytest

from tests.webhookctl.local.assemblies import assemble
from webhookctl.local.deployment.assembly import Assembly
from webhookctl.local.deployment.deploy import Deployer
from webhookctl.local.http.gateway import Gateway
from webhookctl.local.http.server import Front
from webhookctl.local.processes.ministack import Ministack


@pytest.fixture(scope="session")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ministack]:
    with Ministack(tmp_path_factory.mktemp("ministack")) as running:
        yield running


@pytest.fixture(scope="session")
def deployer(ministack: Ministack) -> Deployer:
    return Deployer(ministack.client)


@pytest.fixture(scope="session")
def outputs(deployer: Deployer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return deployer.deploy(Assembly.read(assemble(tmp_path_factory.mktemp("assembly"))))


@pytest.fixture(scope="session")
def gateway(ministack: Ministack, outputs: dict[str, str]) -> Gateway:
    token = ministack.credentials["AWS_SESSION_TOKEN"]
    return Gateway(ministack.port, token, outputs["ApiId"], outputs["FunctionName"])


@pytest.fixture
def lines() -> list[str]:
    """The front's log."""
    return []


@pytest.fixture
def serve(lines: list[str]) -> Iterator[Callable[[Gateway | None], Front]]:
    started: list[Front] = []

    def start(gateway: Gateway | None) -> Front:
        front = Front(0, lines.append, hosts={"h", "here", "tunnel.test"}).start()
        front.gateway = gateway
        started.append(front)
        return front

    yield start
    for front in started:
        front.stop()


@pytest.fixture
def front(serve: Callable[[Gateway | None], Front], gateway: Gateway) -> Front:
    return serve(gateway)
