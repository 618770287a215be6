"""What the reference says of sources: keys of some providers, and the declared source."""

from collections.abc import Iterator
from importlib import import_module
from typing import Final

from webhook_inbox.providers import MODULES
from webhook_inbox.schemes import templates

DECLARED: Final = "hmac"
# Keys that some providers take, by name.
KEYS: Final = {
    "allowed_origins": "the origins that an OPTIONS request may ask for; none: any",
    "allowed_rate": "deliveries a minute that an OPTIONS request is granted",
    "audience": "whom tokens have to be for",
    "base_url": "the `baseUrl` of the app's descriptor",
    "environment": "which of the provider's environments sends",
    "proof": "which of its two proofs the provider sends",
    "public_id": "the public key that the private one belongs to",
    "service_account": "the e-mail address that tokens have to be of",
    "tenants": "the ids of the tenants that tokens may be of",
    "topic_arn": "the only topic that is listened to",
    "url": "the address that the provider calls, without a query: it is signed, and a domain or"
    " proxy of yours changes it",
    "version": "which version of the signature counts",
    "webhook_id": "the webhook's id, which is signed",
}
# What may stand in `signs`, by the field's name.
FIELDS: Final = {
    "body": "the body, as it was sent",
    "timestamp": "the time, as it is written where `timestamp` says",
    "id": "the header that `event_id` names",
    "method": "`POST`",
    "url": "the address that was called, query included; see `url`",
    "path": "its path",
    "query": "its query, without the question mark",
    "form": "all fields of a form: names and values, sorted, repeated ones once",
    "address": "the address without its query",
    "sorted_query": "the query's fields, decoded and sorted, with `=` and `&`",
    "url_with_port": "`url` with its port, be it the default one",
    "url_without_port": "`url` without its port",
    "decoded_url": "`url` with what is escaped in it written plainly, but for the question mark",
    "escaped_path": "`path`, and the query escaped as one value, then the whole escaped as a URL",
    "header:NAME": "a header",
    "headers:NAME": "the headers that this header lists, as `name:value`, sorted, with `;`",
    "json:PATH": "a value in the body's JSON",
    "json?:PATH": "the same, empty where it is not there",
    "form:NAME": "one field of a form, which has to stand there once",
}
EXAMPLES: Final = """\
# A list of signatures, the time among them: `t=1700000000,v1=…,v1=…`
[sources.payments]
provider = "hmac"
signature = { header = "X-Signature", entry = "v1", signs = "{timestamp}.{body}" }
timestamp = { entry = "t" }
event_id = { json = "id" }

# Method, address, body and a time in milliseconds, in base64
[sources.contacts]
provider = "hmac"
url = "https://hooks.example/webhooks/contacts"
signature = { header = "X-Sig", signs = "{method}{url}{body}{timestamp}", encoding = "base64" }
timestamp = { header = "X-Time", format = "milliseconds" }
event_id = { json = ["object.id", "object.version"] }

# A signature in each event of the body, over some of its fields
[sources.orders]
provider = "hmac"
batch = { json = "events" }
event_id = { json = "id" }

[sources.orders.signature]
json = "signature"
each = true
partial = true
signs = "{json:id}:{json:status}:{json?:amount}"
key = "hex"
"""


def keys() -> str:
    """Returns the section on the keys that only some providers take."""
    rows = "".join(
        f"| `{key}` | {meaning} | {', '.join(f'`{name}`' for name in _takers(key))} |\n"
        for key, meaning in KEYS.items()
    )
    intro = "`docs/providers.md` says more of each provider.\n\n"
    return (
        f"### `[sources.NAME]`, some providers\n\n{intro}"
        f"| key | meaning | providers |\n|---|---|---|\n{rows}"
    )


def known_keys() -> frozenset[str]:
    """Returns every key that any provider takes for itself, but for the declared source's."""
    return frozenset(key for name in MODULES if name != DECLARED for key in _settings(name))


def known_fields() -> frozenset[str]:
    """Returns every field that may stand in `signs`."""
    named = (f"{kind}:{what}" for kind, what in templates.NAMED.items())
    return frozenset((*templates.FIELDS, *named))


def signed() -> str:
    """Returns the sections on what is signed, with examples."""
    rows = "".join(f"| `{{{field}}}` | {meaning} |\n" for field, meaning in FIELDS.items())
    fields = f"### `{{…}}` in `signs`\n\n| field | stands for |\n|---|---|\n{rows}"
    return f"{fields}\n### Declared sources\n\n```toml\n{EXAMPLES}```\n"


def _takers(key: str) -> Iterator[str]:
    return (name for name in MODULES if name != DECLARED and key in _settings(name))


def _settings(provider: str) -> frozenset[str]:
    module = import_module(f"webhook_inbox.providers.{MODULES[provider]}")
    found: frozenset[str] = getattr(module, "SETTINGS", frozenset())
    return found
