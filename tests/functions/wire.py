"""Ingest's connections to AWS, answered by moto in this process."""

from collections.abc import Mapping

from botocore.awsrequest import AWSPreparedRequest
from botocore.compat import HTTPHeaders
from moto.core.models import botocore_stubber

from webhook_inbox.adapters.aws.connection import BODY, Connection, Reply

_REST = {"PUT": "PutObject", "GET": "GetObject", "DELETE": "DeleteObject"}
_exchange = Connection.exchange


def operation_of(method: str, headers: Mapping[str, str]) -> str:
    """Returns the operation of a request."""
    return headers.get("x-amz-target", "").rpartition(".")[2] or _REST[method]


def exchange(
    connection: Connection,
    method: str,
    path: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    limit: int = BODY,
) -> Reply:
    """Stands in for `Connection.exchange`: moto answers for AWS, others for themselves."""
    host = connection.host
    if not host.endswith(".amazonaws.com"):
        return _exchange(connection, method, path, headers, body, limit=limit)
    sent = HTTPHeaders()
    for name, value in {**headers, "host": host, "content-length": str(len(body))}.items():
        sent[name] = value
    request = AWSPreparedRequest(method, f"https://{host}{path}", sent, body, False)
    answer = botocore_stubber.process_request(request)
    assert answer is not None, request.url
    status, given, content = answer
    text = content.encode() if isinstance(content, str) else bytes(content)
    return Reply(status, {name.lower(): str(value) for name, value in given.items()}, text)
