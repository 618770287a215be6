"""A secret is redacted in every form in which a text may have it."""

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from datetime import timedelta
from typing import NoReturn
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from requests.utils import requote_uri

from webhook_inbox.adapters.memory import ManualClock, MemorySecrets
from webhook_inbox.domain.secret_document import Rotation
from webhook_inbox.domain.secrets import REDACTED_FROM, SecretCache

SECRET = "wh/sec+of a provider?é=&~!'(*)#[]%"
FORMS = {
    "plain": SECRET,
    "base64": b64encode(SECRET.encode()).decode(),
    "base64 of user and password": b64encode(f"user:{SECRET}".encode()).decode(),
    "base64, one byte before": b64encode(f"u{SECRET}".encode()).decode(),
    "base64, two bytes before": b64encode(f"us{SECRET}and more".encode()).decode(),
    "base64url": urlsafe_b64encode(f"ab{SECRET}".encode()).decode().rstrip("="),
    "hex": SECRET.encode().hex(),
    "HEX": SECRET.encode().hex().upper(),
    "percent-encoded": quote(SECRET, safe=""),
    "percent-encoded, lower case": "wh%2fsec%2bof%20a%20provider%3f%c3%a9%3d%26~"
    "%21%27%28%2a%29%23%5b%5d%25",
    "in a path": quote(SECRET),
    "encodeURIComponent": quote(SECRET, safe="!~*'()"),
    "encodeURI": quote(SECRET, safe=";,/?:@&=+$-_.!~*'()#"),
    "requests": requote_uri(f"https://it/{SECRET}").removeprefix("https://it/"),
    "requests, a percent sign escaped": quote(SECRET, safe="!#$&'()*+,/:;=?@[]~"),
    "in a form": quote_plus(SECRET),
    "every byte": "".join(f"%{byte:02X}" for byte in SECRET.encode()),
    "JSON": json.dumps(SECRET)[1:-1],
    "JSON in UTF-8": json.dumps(SECRET, ensure_ascii=False)[1:-1],
}


def cache(*secrets: str) -> SecretCache:
    made = SecretCache(store=MemorySecrets({"it": secrets}), clock=ManualClock())
    made.get("it")
    return made


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_redacted_in_this_form(form: str) -> None:
    text = f"answered: <{FORMS[form]}> and more"

    redacted = cache(SECRET).redact(text)

    assert "[secret]" in redacted
    assert redacted.startswith("answered: <")
    assert redacted.endswith("> and more")
    # In base64, a digit on either side may hold bits of the neighbours.
    assert len(redacted.replace("[secret]", "")) <= len("answered: <> and more") + 16


def test_the_parts_of_a_secret_are_secrets() -> None:
    parts = {"client_id": "the-client-id-of-it", "keys": ["the-first-key-of-it", {"d": "9" * 16}]}
    text = "the-client-id-of-it the-first-key-of-it 9999999999999999"
    assert cache(json.dumps(parts)).redact(text) == "[secret] [secret] [secret]"


def test_words_and_addresses_in_a_secret_are_none() -> None:
    parts = {"environment": "production", "type": "serviceaccountofit", "n": 7, "none": None}
    secret = json.dumps({**parts, "token_uri": "https://oauth2.example/token"})
    text = "production serviceaccountofit https://oauth2.example/token"
    assert cache(secret).redact(text) == text


ADDRESSES = {
    "https://hooks.slack.com/services/T000/B000/Zx9Qw8Er7Ty6": "Zx9Qw8Er7Ty6",
    "https://it.example/hook?key=Zx9Qw8Er7Ty6&v=2": "Zx9Qw8Er7Ty6",
    "https://it.example/#abcdefghIJKLMNOP": "abcdefghIJKLMNOP",
    "https://0a1b2c3d4e5f@it.example/1": "0a1b2c3d4e5f",
    "postgres://app:Sup3rS3cretPw@db/x": "Sup3rS3cretPw",
    "postgres://app:secretword@db:5432/x": "secretword",
    "postgres://app:p%40ss%3Aword@db/x": "p@ss:word",
}


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("write", [str, lambda text: json.dumps({"url": [text]})])
def test_the_password_and_the_token_of_an_address_are_secrets(
    address: str, write: Callable[[str], str]
) -> None:
    made = cache(write(address))
    assert ADDRESSES[address] not in made.redact(f"cannot reach {address} ({ADDRESSES[address]})")
    assert made.redact(ADDRESSES[address]) == "[secret]"


@pytest.mark.parametrize(
    "address",
    [
        "https://accounts.example/o/oauth2/auth",
        "https://www.example/oauth2/v1/certificates",
        "postgres://app:short@db:5432/production",
        "https://it.example:8080/@name/v2?page=1234567890",
        "://",
        "https://[::1",
    ],
)
def test_the_words_of_an_address_are_none(address: str) -> None:
    assert cache(json.dumps({"url": address})).redact(address) == address


def test_a_token_that_the_library_made_is_redacted_in_every_form() -> None:
    made = cache()
    made.conceal(SECRET)
    assert made.redact(quote(SECRET, safe="")) == "[secret]"


def test_of_two_secrets_the_longer_is_redacted_whole() -> None:
    assert cache("a-secret-1", "a-secret-1-more").redact("a-secret-1-more") == "[secret]"


@pytest.mark.parametrize("short", ["", "a", "x" * (REDACTED_FROM - 1)])
def test_a_short_value_is_a_word_and_not_redacted(short: str) -> None:
    text = f"{short} {short.encode().hex()}"
    assert cache(short).redact(text) == text


@given(st.text(min_size=REDACTED_FROM, max_size=40), st.binary(max_size=5), st.binary(max_size=5))
def test_no_bytes_around_a_secret_hide_it_in_base64(
    secret: str, before: bytes, after: bytes
) -> None:
    raw = secret.encode(errors="replace")
    text = b64encode(before + raw + after).decode()
    assert "[secret]" in cache(raw.decode()).redact(text)


def test_json_that_is_nested_too_deeply_is_one_secret() -> None:
    deep = "[" * 100_000
    assert cache('{"a":' + deep).redact("text") == "text"


def test_many_secrets_are_redacted_without_making_their_forms_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = SecretCache(
        store=MemorySecrets({f"s{n}": (f"whsec-{n:08}", f"before-{n:08}") for n in range(300)}),
        clock=ManualClock(),
    )
    made.get("s0")
    made.redact("an error")

    def again(secret: str) -> NoReturn:
        raise AssertionError("its forms are made again")

    monkeypatch.setattr("webhook_inbox.domain.secrets.spellings", again)
    assert made.redact("an error") == "an error"


def test_a_cached_rotation_ends_on_time_and_its_previous_value_stays_redacted() -> None:
    clock = ManualClock()
    end = clock.now() + timedelta(seconds=30)
    values = Rotation(("the-new-value", "the-old-value"), since=clock.now(), until=end)
    made = SecretCache(store=MemorySecrets({"it": values}), clock=clock)
    assert made.get("it") == ("the-new-value", "the-old-value")
    clock.advance(seconds=30)
    assert made.get("it") == ("the-new-value",)
    assert made.refresh("it") == ("the-new-value",)
    assert made.redact("the-old-value") == "[secret]"
