"""Signature Version 4, for requests without a query.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

import hmac
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Final, NamedTuple

ALGORITHM: Final = "AWS4-HMAC-SHA256"


class Credentials(NamedTuple):
    """The keys of a role or a user; `token` is "" for a user's own."""

    access_key: str
    secret_key: str
    token: str = ""


def authorization(
    keys: Credentials,
    headers: Mapping[str, str],
    *,
    region: str,
    service: str,
    method: str,
    path: str,
    payload: str,
) -> str:
    """Returns the value of the header Authorization.

    Args:
        keys: the credentials; their token has to be among the headers.
        headers: every header to sign, by its name in lower case, without blanks around the value;
            among them `host` and `x-amz-date` (YYYYMMDDTHHMMSSZ).
        region: the region.
        service: the service's name in signatures.
        method: the HTTP method.
        path: the path, encoded once, as it is sent.
        payload: the SHA-256 of the body, in hex.
    """
    time, names = headers["x-amz-date"], sorted(headers)
    signed = ";".join(names)
    lines = "".join([f"{name}:{headers[name]}\n" for name in names])
    request = f"{method}\n{path}\n\n{lines}\n{signed}\n{payload}"
    scope = f"{time[:8]}/{region}/{service}/aws4_request"
    text = f"{ALGORITHM}\n{time}\n{scope}\n{sha256(request.encode()).hexdigest()}"
    signature = hmac.digest(_key(keys.secret_key, scope), text.encode(), "sha256").hex()
    identity = f"{keys.access_key}/{scope}"
    return f"{ALGORITHM} Credential={identity}, SignedHeaders={signed}, Signature={signature}"


@lru_cache(maxsize=8)
def _key(secret_key: str, scope: str) -> bytes:
    key = f"AWS4{secret_key}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key
