"""The reconciler may erase bodies where a source has a `retention`, and not otherwise."""

from pathlib import Path

import pytest

from tests.infra.conftest import INBOX, Synthesize, write_functions
from tests.infra.template import Template
from tests.infra.test_functions import rights

BRIEF = '\n[sources.brief]\nprovider = "github"\nretention = "7d"\n'
LIST = "s3:ListBucket"


@pytest.fixture(scope="module")
def erasing(synthesize: Synthesize, tmp_path_factory: pytest.TempPathFactory) -> Template:
    own: Path = tmp_path_factory.mktemp("erasing")
    return synthesize(functions=write_functions(own, inbox=INBOX + BRIEF))


def test_the_reconciler_lists_and_deletes_bodies_where_a_source_has_a_retention(
    erasing: Template, dev: Template
) -> None:
    assert rights(erasing, "reconciler") == {
        **rights(dev, "reconciler"),
        "bucket": {LIST},
        "bucket/bodies/*": {"s3:DeleteObject"},
    }


def test_it_lists_no_other_objects_of_the_bucket(erasing: Template) -> None:
    [statement] = (each for each in erasing.statements("reconciler") if LIST in each["Action"])
    assert statement["Condition"] == {"StringLike": {"s3:prefix": "bodies/*"}}


def test_it_lists_nothing_without_a_retention_and_ingest_never_does(
    erasing: Template, dev: Template
) -> None:
    for template, name in ((dev, "reconciler"), (dev, "ingest"), (erasing, "ingest")):
        assert not any(LIST in actions for actions in rights(template, name).values())
