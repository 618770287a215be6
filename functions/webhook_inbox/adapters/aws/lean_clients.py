"""Clients of four AWS services for ingest, with those of boto3's methods that ingest uses.

A client signs a request, sends it over a kept connection and reads the answer, in one attempt;
`TimeBudget` retries. It checks no parameters, which the adapters have done, and makes one call at a
time. Region, credentials and, for the local runtime, AWS_ENDPOINT_URL are in the environment.
"""

import json
import os
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from io import BytesIO
from typing import Any, Final
from urllib.parse import quote, urlsplit

from webhook_inbox.adapters.aws.connection import USER_AGENT, BadReply, Connection, Limits, Reply
from webhook_inbox.adapters.aws.credentials import CredentialSource
from webhook_inbox.adapters.aws.errors import EXPIRED, AwsError, Caller
from webhook_inbox.adapters.aws.sigv4 import authorization
from webhook_inbox.adapters.aws.time_budget import TimeBudget
from webhook_inbox.domain.digest import digest_of
from webhook_inbox.domain.errors import ConfigurationError

QUICK: Final = Limits(connect=0.25, read=0.7)
# A body of some megabytes takes longer than a row.
QUICK_BLOBS: Final = Limits(connect=0.25, read=1.0)
# The header X-Amz-Target's prefix and the version of the JSON protocol, as botocore's models say.
PROTOCOLS: Final = {
    "dynamodb": ("DynamoDB_20120810", "1.0"),
    "secretsmanager": ("secretsmanager", "1.1"),
    "sqs": ("AmazonSQS", "1.0"),
}
# The domains of the partitions but the first one, by the beginning of their regions' names.
DOMAINS: Final = {
    "cn-": "amazonaws.com.cn",
    "eu-isoe-": "cloud.adc-e.uk",
    "eusc-": "amazonaws.eu",
    "us-iso-": "c2s.ic.gov",
    "us-isob-": "sc2s.sgov.gov",
    "us-isof-": "csp.hci.ic.gov",
}
# Where the name of a service's variable is not its own.
VARIABLES: Final = {"secretsmanager": "SECRETS_MANAGER"}
_CODE: Final = re.compile(rb"<Code>([^<]*)</Code>")
_MESSAGE: Final = re.compile(rb"<Message>([^<]*)</Message>")

_credentials: Final = CredentialSource()


def quick_caller(service: str, budget: TimeBudget) -> Caller:
    """Returns a caller for a client of this service, within an invocation's budget."""
    limits = _limits(service)
    # The connect time-out applies twice, to TCP and to TLS.
    return budget.attempts_of(2 * limits.connect + limits.read)


class _Endpoint:
    """Sends signed requests to one host of a service."""

    def __init__(self, service: str, *, bucket: str = "") -> None:
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        if not region:
            raise ConfigurationError("the variable AWS_REGION is not set; Lambda sets it")
        own = os.environ.get(f"AWS_ENDPOINT_URL_{VARIABLES.get(service, service.upper())}")
        given = own or os.environ.get("AWS_ENDPOINT_URL")
        named = (domain for name, domain in DOMAINS.items() if region.startswith(name))
        host = f"{bucket}.{service}" if bucket else service
        url = urlsplit(given or f"https://{host}.{region}.{next(named, 'amazonaws.com')}")
        self._connection = Connection.to(url, _limits(service))
        self._region, self._service = region, service
        # Only AWS's own host names have the bucket in them.
        self._path = f"{url.path.rstrip('/')}/{f'{bucket}/' if given and bucket else ''}"

    def send(self, method: str, key: str, headers: dict[str, str], body: bytes) -> Reply:
        """Sends a request; for its errors see `Connection.exchange` and `CredentialSource`."""
        path = self._path + quote(key)
        keys, of_s3 = _credentials.current(), self._service == "s3"
        payload = digest_of(body) if of_s3 else sha256(body).hexdigest()
        headers["x-amz-date"] = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        if of_s3:
            headers["x-amz-content-sha256"] = payload
        if keys.token:
            headers["x-amz-security-token"] = keys.token
        headers["authorization"] = authorization(
            keys,
            {**headers, "host": self._connection.host},
            region=self._region,
            service=self._service,
            method=method,
            path=path,
            payload=payload,
        )
        headers["user-agent"] = USER_AGENT
        return self._connection.exchange(method, path, headers, body)


class JsonClient:
    """A client of a service with a JSON protocol; any operation, by its name in snake case.

    Parameters and results are those of boto3, but bytes come back as base64. An operation raises
    AwsError for an error answer, OSError without an answer.
    """

    def __init__(self, service: str) -> None:
        self._prefix, version = PROTOCOLS[service]
        self._type = f"application/x-amz-json-{version}"
        self._endpoint = _Endpoint(service)

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method.startswith("_"):
            raise AttributeError(method)
        call = partial(self._call, "".join(map(str.capitalize, method.split("_"))))
        # Found without this method from now on.
        setattr(self, method, call)
        return call

    def _call(self, operation: str, **parameters: Any) -> Mapping[str, Any]:
        headers = {"content-type": self._type, "x-amz-target": f"{self._prefix}.{operation}"}
        reply = self._endpoint.send("POST", "", headers, _encode(parameters).encode())
        try:
            answer = json.loads(reply.body or b"{}")
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            if reply.status == 200:
                # Not AWS's: nothing may count as stored.
                raise BadReply("the response is not JSON")
            answer = {}
        if reply.status != 200:
            code = answer.get("__type") or reply.headers.get("x-amzn-errortype") or reply.status
            text = answer.get("message") or answer.get("Message") or ""
            # "namespace#Code", or "Code:address".
            code = str(code).rpartition("#")[2].partition(":")[0]
            raise _error(code, str(text), reply.status, answer.get("Item"))
        return answer


class S3Client:
    """A client of S3; raises as a `JsonClient`."""

    def __init__(self) -> None:
        self._endpoints: dict[str, _Endpoint] = {}

    def put_object(self, **parameters: Any) -> Mapping[str, Any]:
        """Writes the bytes `Body` as the object `Key` of `Bucket`."""
        return self._send("PUT", **parameters)

    def get_object(self, **parameters: Any) -> Mapping[str, Any]:
        """Returns the object `Key` of `Bucket`: {"Body": stream}."""
        return self._send("GET", **parameters)

    def delete_object(self, **parameters: Any) -> Mapping[str, Any]:
        """Deletes the object `Key` of `Bucket`, if there is one."""
        return self._send("DELETE", **parameters)

    def _send(self, method: str, *, Bucket: str, Key: str, Body: bytes = b"") -> Mapping[str, Any]:  # noqa: N803
        if not Key:
            # Its path would be the bucket's own.
            raise AwsError("InvalidRequest", "the key of an object is empty")
        endpoint = self._endpoints.get(Bucket) or _Endpoint("s3", bucket=Bucket)
        self._endpoints[Bucket] = endpoint
        reply = endpoint.send(method, Key, {}, Body)
        if not 200 <= reply.status < 300:
            code, message = (
                found[1].decode(errors="replace") if (found := tag.search(reply.body)) else ""
                for tag in (_CODE, _MESSAGE)
            )
            raise _error(code or str(reply.status), message, reply.status)
        return {"Body": BytesIO(reply.body)}


def _error(code: str, message: str, status: int, item: Any = None) -> AwsError:
    if code in EXPIRED:
        _credentials.expired()
    return AwsError(code, message, status=status, item=item)


def _limits(service: str) -> Limits:
    return QUICK_BLOBS if service == "s3" else QUICK


def _base64(value: Any) -> str:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    raise TypeError(f"a parameter cannot be {type(value).__name__}")


_encode: Final = json.JSONEncoder(separators=(",", ":"), default=_base64).encode
