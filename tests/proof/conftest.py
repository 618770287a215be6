"""One inbox for all proofs over HTTP, since a start takes 15 seconds."""

from collections.abc import Iterator

import pytest

from tests.proof.storm.inbox import Storm


@pytest.fixture(scope="session")
def storm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storm]:
    with Storm(tmp_path_factory.mktemp("storm")) as running:
        yield running
