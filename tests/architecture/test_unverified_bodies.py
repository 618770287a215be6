"""Only `json_path` and `bounded_json` parse a delivery, since only they bound its cost.

Every other parser in providers, in ingest and of completions reads something else, or a verified
delivery: each has its reason here. `tests/proof/test_rejection_cost.py` measures the rest.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

LIBRARY = Path(__file__).parents[2] / "functions" / "webhook_inbox"
PARSERS = frozenset(
    {"loads", "JSONDecoder", "parse", "parse_qs", "parse_qsl", "unquote", "unquote_plus"}
    | {"unquote_to_bytes", "b64decode", "decodebytes", "a2b_qp", "a2b_base64", "literal_eval"}
    | {"message_from_bytes", "message_from_string", "fromstring", "XMLParser", "decompress"}
)
SAMPLE = "reads our own sample, to sign it"
SECRET = "reads a secret"
VERIFIED = "reads a verified delivery only"
HEADER = "reads a header, of at most 10 KB"
KEY = "reads a published key"
READS = {
    "handlers/completions/results.py": "reads the body behind a verified token",
    "handlers/completions/tokens.py": "reads a token, of at most 10 KB; a result of the handler",
    "ingest/events.py": "reads a token of at most 10 KB; all tokens of a verified delivery",
    "ingest/fingerprint.py": VERIFIED,
    "providers/adyen.py": SAMPLE,
    "providers/braintree.py": VERIFIED,
    "providers/cloudevents.py": f"{SAMPLE}; {HEADER}",
    "providers/generic_hmac.py": SAMPLE,
    "providers/hubspot.py": "reads the URL, of at most 10 KB",
    "providers/linear.py": SAMPLE,
    "providers/mailgun.py": SAMPLE,
    "providers/microsoft_graph.py": SAMPLE,
    "providers/plaid.py": KEY,
    "providers/pusher.py": SAMPLE,
    "providers/schemes/generic/locations.py": SAMPLE,
    "providers/schemes/http.py": "reads the URL, of at most 10 KB",
    "providers/schemes/identity/batches.py": "reads what `document` has parsed",
    "providers/schemes/identity/event_identity.py": VERIFIED,
    "providers/schemes/jwt/jwt.py": HEADER,
    "providers/schemes/jwt/keys.py": KEY,
    "providers/schemes/signatures/asymmetric.py": SECRET,
    "providers/schemes/signatures/encodings.py": "reads a signature, of at most 10 KB",
    "providers/schemes/signatures/keys.py": SECRET,
    "providers/schemes/tokens.py": SECRET,
}


def parsers(source: str) -> Iterator[str]:
    """Yields the parsers that a module names, methods of other objects left out."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names if alias.name in PARSERS)
        elif isinstance(node, ast.Attribute) and node.attr in PARSERS:
            owner = getattr(node.value, "id", "")
            # `Template.parse` reads inbox.toml.
            if owner.islower():
                yield f"{owner}.{node.attr}"


def using() -> dict[str, list[str]]:
    roots = ("providers", "ingest", "handlers/completions")
    files = [file for root in roots for file in (LIBRARY / root).rglob("*.py")]
    found = {f.relative_to(LIBRARY).as_posix(): list(parsers(f.read_text())) for f in files}
    return {name: names for name, names in found.items() if names}


def test_each_other_parser_has_a_reason() -> None:
    assert {name: names for name, names in using().items() if name not in READS} == {}


def test_each_reason_has_a_parser() -> None:
    assert READS.keys() - using() == set()


@pytest.mark.parametrize(
    "source",
    [
        "import json\nx = json.loads(delivery.body)",
        "from json import loads",
        "from webhook_inbox.domain.json_path import parse",
        "from urllib.parse import parse_qsl as fields",
        "import urllib.parse as p\nx = p.parse_qs(body)",
        "from xml.etree import ElementTree\nfrom xml.etree.ElementTree import fromstring",
        "import email\nx = email.message_from_bytes(body)",
    ],
)
def test_each_parser_is_found(source: str) -> None:
    assert list(parsers(source))


def test_a_reader_of_documents_is_not_a_parser() -> None:
    assert not list(parsers("from webhook_inbox.domain.json_path import document, form, text_at"))
