"""The sections on sources in docs/reference.md: keys of some providers, and declared sources."""

from collections.abc import Iterator
from importlib import import_module
from typing import Final

from webhook_inbox.providers import DECLARED, MODULES
from webhook_inbox.providers.schemes.signatures import signed_content

# Keys that some providers take.
KEYS: Final = {
    "allowed_origins": "the origins that an OPTIONS request may request; default: any",
    "allowed_rate": "deliveries per minute granted to an OPTIONS request",
    "audience": "the audience that tokens must have",
    "base_url": "the `baseUrl` of the app's descriptor",
    "environment": "the environment of the provider that sends",
    "proof": "the kind of proof that the provider sends, of its two",
    "public_id": "the public key that belongs to the private one",
    "service_account": "the e-mail address that tokens must contain",
    "tenants": "the ids of the allowed tenants",
    "topic_arn": "the only accepted topic",
    "url": "the URL that the provider calls, without a query: it is signed, and your domain or"
    " proxy may change it",
    "version": "the accepted version of the signature",
    "webhook_id": "the webhook's id, which is signed",
}
# The fields allowed in `signs`.
FIELDS: Final = {
    "body": "the body as sent",
    "timestamp": "the time as sent, from the place that `timestamp` names",
    "id": "the header that `event_id` names",
    "method": "`POST`",
    "url": "the called URL, including its query; see the key `url`",
    "path": "the path of the URL",
    "query": "the query without the question mark",
    "form": "all fields of a form: names and values, sorted, duplicates once",
    "address": "the URL without its query",
    "sorted_query": "the query's fields, decoded and sorted, joined with `=` and `&`",
    "url_with_port": "`url` with its port, even the default port",
    "url_without_port": "`url` without its port",
    "decoded_url": "`url` with its escapes decoded, except the question mark",
    "escaped_path": "`path` and the query escaped as one value, then the whole escaped as a URL",
    "header:NAME": "a header",
    "headers:NAME": "the headers that this header lists, as `name:value`, sorted, joined with `;`",
    "json:PATH": "a value in the body's JSON",
    "json?:PATH": "the same, empty if absent",
    "form:NAME": "one field of a form, which must occur exactly once",
}
EXAMPLES: Final = """\
# Your own agents, each with its own key in the source's secret
[sources.agents]
auth = "jwt"
issuer = "https://agents.example"
audience = "https://hooks.example/webhooks/agents"
event_id = { claim = "jti" }
event_type = { json = "type" }

# Agents authenticated by an issuer, with tokens that are valid for one body
[sources.partners]
auth = "jwt"
issuer = "https://login.partner.example"
audience = ["https://hooks.example/webhooks/partners", "hooks"]
jwks = "https://login.partner.example/.well-known/jwks.json"
algorithms = ["ES256"]
agent_claim = "client_id"
body_claim = "body_sha256"
event_id = { header = "X-Event-Id" }

[sources.meters]
auth = "api-key"
header = "X-Meter-Key"
event_id = { json = "reading.id" }

[sources.backups]
auth = "basic"
event_id = { body = "sha256" }
event_type = { value = "backup" }

# A list of signatures with the time: `t=1700000000,v1=…,v1=…`
[sources.payments]
provider = "hmac"
signature = { header = "X-Signature", entry = "v1", signs = "{timestamp}.{body}" }
timestamp = { entry = "t" }
event_id = { json = "id" }

# Method, URL, body and a time in milliseconds, in base64
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
CALLERS: Final = """\
### Callers of your own

The secret of such a source is one credential, or a JSON object with one credential per agent:

| `auth` | one agent | several agents |
|---|---|---|
| `"jwt"` | a public key as PEM or JWK; a shared key in base64, at least 32 bytes | \
`{"planner": "PEM", "buyer": {"kty": …}}`, or a JWK set whose `kid` is the agent |
| `"api-key"` | the key | `{"planner": "KEY", "buyer": "KEY"}` |
| `"basic"` | `user:password` | `{"planner": "user:password"}` |

The inbox stores the authenticated agent with the event. Handlers and policies read it as
`event.agent`; it is `""` if the secret is a single credential. If a JWT's key is not an agent's own
(`jwks`, or a bare key in the secret), the claim that `agent_claim` names is the agent, and it is
required.

A token must have `exp`, `iss` and `aud`; `nbf` and `iat` are checked if present. Only the
configured algorithms are accepted, and a key is used only with algorithms of its own kind.

Credentials authenticate the sender, not the content. Send them over https only, and prefer
`body_claim`, which makes a token valid for one body. If the id is in a header or the query, a
sender could change it, so the inbox detects a repeated body (or, with `body_claim`, a repeated
token): it answers 200 and does not run it. An id in the body or in the token needs no such check.
All agents of a source share its ids; give an agent its own source if others must not take its ids.
"""


def keys() -> str:
    """Returns the section on keys of some providers."""
    rows = "".join(
        f"| `{key}` | {meaning} | {', '.join(f'`{name}`' for name in _takers(key))} |\n"
        for key, meaning in KEYS.items()
    )
    intro = "[Providers](providers.md) describes each provider.\n\n"
    return (
        f"### `[sources.NAME]`, some providers\n\n{intro}"
        f"| key | meaning | providers |\n|---|---|---|\n{rows}"
    )


def known_keys() -> frozenset[str]:
    """Returns every key that a provider takes, except those of declared sources."""
    return frozenset(key for name in MODULES if name not in DECLARED for key in _settings(name))


def known_fields() -> frozenset[str]:
    """Returns every field allowed in `signs`."""
    named = (f"{kind}:{what}" for kind, what in signed_content.NAMED.items())
    return frozenset((*signed_content.FIELDS, *named))


def signed() -> str:
    """Returns the sections on signed content, callers and examples."""
    rows = "".join(f"| `{{{field}}}` | {meaning} |\n" for field, meaning in FIELDS.items())
    fields = f"### `{{…}}` in `signs`\n\n| field | value |\n|---|---|\n{rows}"
    return f"{fields}\n{CALLERS}\n### Declared sources\n\n```toml\n{EXAMPLES}```\n"


def _takers(key: str) -> Iterator[str]:
    return (name for name in MODULES if name not in DECLARED and key in _settings(name))


def _settings(provider: str) -> frozenset[str]:
    module = import_module(f"webhook_inbox.providers.{MODULES[provider]}")
    found: frozenset[str] = getattr(module, "SETTINGS", frozenset())
    return found
