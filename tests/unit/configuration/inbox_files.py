"""Reads an inbox.toml that a test writes; for tests that are `in_the_project`."""

from pathlib import Path

import pytest

from webhook_inbox.configuration import inbox_toml
from webhook_inbox.configuration.inbox_toml import Configuration
from webhook_inbox.domain.errors import ConfigurationError


def load(text: str, *, stage: str = "dev") -> Configuration:
    path = Path("functions/inbox.toml")
    path.write_text(text, encoding="utf-8")
    return inbox_toml.load(path, stage=stage)


def fault(text: str, *, stage: str = "dev") -> str:
    with pytest.raises(ConfigurationError) as raised:
        load(text, stage=stage)
    message = str(raised.value)
    assert "\n" not in message
    prefix = "functions/inbox.toml"
    assert message.startswith(prefix)
    return message.removeprefix(prefix).lstrip(" :")
