"""`scripts/real_input.py` on some of its payloads, through the inbox of these tests."""

import os
import subprocess
import sys

import pytest

from tests.e2e.project import REPOSITORY
from tests.e2e.whole_inbox import WholeInbox
from tests.waiting import DEADLINE

EVENTS = 40


def test_real_payloads_are_stored_once_and_handled_once(inbox: WholeInbox) -> None:
    script = REPOSITORY / "scripts" / "real_input.py"
    state = inbox.functions.parent
    command = [sys.executable, script, "--state", state, "--events", str(EVENTS)]

    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=False)

    if "npm" in done.stderr and os.environ.get("CI") != "true":
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED" not in done.stdout
    counts = [line.split() for line in done.stdout.splitlines()]
    assert ["events", str(EVENTS)] in counts
    assert ["GitHub", "examples", "329"] in counts
