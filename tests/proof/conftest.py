"""What the proofs over HTTP share: one inbox, since a start takes a quarter of a minute."""

from collections.abc import Iterator

import pytest

from tests.proof.storm.inbox import Storm


@pytest.fixture(scope="session")
def storm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storm]:
    with Storm(tmp_path_factory.mktemp("storm")) as running:
        yield running
