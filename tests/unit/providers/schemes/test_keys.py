import pytest

from webhook_inbox.providers.schemes.signatures import keys
from webhook_inbox.providers.schemes.signatures.keys import KeyReader


@pytest.mark.parametrize(
    ("reader", "secret", "key"),
    [
        (keys.text, "whsec_c2VjcmV0", b"whsec_c2VjcmV0"),
        (keys.text, "caf\u00e9", b"caf\xc3\xa9"),
        (keys.hexadecimal, "00Ff", b"\x00\xff"),
        (keys.base64, "c2VjcmV0cw==", b"secrets"),
        (keys.base64, "c2VjcmV0cw", b"secrets"),
        (keys.base64, "c2VjcmV0", b"secret"),
        (keys.whsec, "whsec_c2VjcmV0cw", b"secrets"),
        (keys.whsec, "c2VjcmV0cw==", b"secrets"),
        (keys.whsec, "", b""),
    ],
)
def test_a_secret_is_read_in_its_form(reader: KeyReader, secret: str, key: bytes) -> None:
    assert reader(secret) == key


@pytest.mark.parametrize(
    ("reader", "secret"),
    [
        (keys.text, "\ud800"),
        (keys.hexadecimal, "0"),
        (keys.hexadecimal, "zz"),
        (keys.hexadecimal, "00 ff"),
        (keys.hexadecimal, "\u0660\u0660"),
        (keys.base64, "a"),
        (keys.base64, "!!!!"),
        (keys.base64, "c2Vj cmV0"),
        (keys.base64, "caf\u00e9"),
        (keys.base64, "\ud800"),
        (keys.whsec, "whsec_whsec_c2VjcmV0"),
    ],
)
def test_a_secret_of_another_form_raises_only_value_error(reader: KeyReader, secret: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        reader(secret)
