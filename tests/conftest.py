"""Fixtures of every test: the developer's own AWS settings never reach one."""

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# Before anything imports botocore or jsii.
for name in [name for name in os.environ if name.startswith("AWS_") and name != "AWS_CA_BUNDLE"]:
    del os.environ[name]
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")
# The CDK's own check of a template takes half of a synthesis; tests/infra/test_app.py has it once.
os.environ["CDK_VALIDATION"] = "false"

# An example may take as long as a slow machine needs. Every run has the same examples, so that none
# fails for a change that it does not contain; `--hypothesis-profile random` searches for others.
settings.register_profile("random", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("tests", settings.get_profile("random"), derandomize=True)
settings.load_profile("tests")

# A process of tests keeps a million objects of libraries. By default, a search for cycles among
# them begins every 700 objects, a fifth of all CPU time.
gc.set_threshold(50_000, 20, 100)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keeps thousands of collected tests out of the garbage collector's way: they all stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
