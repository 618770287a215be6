import pytest

from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.providers.schemes.generic import settings


@pytest.mark.parametrize("url", ["https://inbox.example/webhooks/shop", "http://[::1]:3000", ""])
def test_an_address_is_taken_as_it_is_written(url: str) -> None:
    assert settings.public_url({"url": url} if url else {}) == url


@pytest.mark.parametrize(
    "url",
    [
        "inbox.example/it",
        "/it",
        "https:///it",
        "ftp://inbox.example",
        "https://[::1",
        "https://inbox.example/it?a",
        "https://inbox.example/it#b",
        7,
    ],
)
@pytest.mark.parametrize("key", ["url", "base_url"])
def test_what_is_no_address_without_a_query_is_refused_by_its_key(key: str, url: object) -> None:
    with pytest.raises(ConfigurationError, match=f"^{key}: "):
        settings.public_url({key: url}, key)
