"""`InboxClient.connect`: a profile or region that is missing is an error of the client's kinds."""

from pathlib import Path

import pytest

from webhook_inbox.client import InboxClient, Refused


@pytest.fixture(autouse=True)
def _no_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))


def test_a_missing_region_is_refused_with_the_remedy() -> None:
    with pytest.raises(Refused, match=r"region.*: name one with --region or AWS_REGION"):
        InboxClient.connect("WebhookInbox-prod")


def test_an_unknown_profile_is_refused_with_the_remedy() -> None:
    with pytest.raises(Refused, match=r"profile .ops.*: choose one of `aws configure"):
        InboxClient.connect("WebhookInbox-prod", profile="ops", region="eu-central-1")
