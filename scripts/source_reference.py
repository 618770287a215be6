"""The reference's sections on sources: provider-specific keys, and declared sources."""

from collections.abc import Iterator
from importlib import import_module
from typing import Final

from webhook_inbox.providers import DECLARED, MODULES
from webhook_inbox.providers.schemes.signatures import signed_content

# Keys that some providers take, by name.
KEYS: Final = {
    "allowed_origins": "the origins that an OPTIONS request may ask for; none: any",
    "allowed_rate": "deliveries a minute that an OPTIONS request is granted",
    "audience": "the required audience of tokens",
    "base_url": "the `baseUrl` of the app's descriptor",
    "environment": "the provider's environment that sends",
    "proof": "which of the provider's two proofs is required",
    "public_id": "the public key of the private key",
    "service_account": "the required e-mail address in tokens",
    "tenants": "the accepted tenant ids of tokens",
    "topic_arn": "the only accepted topic",
    "url": "the address that the provider calls, without a query: it is signed, and a custom domain"
    " or proxy changes it",
    "version": "the accepted signature version",
    "webhook_id": "the webhook's id, which is signed",
}
# The fields of `signs`.
FIELDS: Final = {
    "body": "the body, as it was sent",
    "timestamp": "the time, as written at the location in `timestamp`",
    "id": "the header that `event_id` names",
    "method": "`POST`",
    "url": "the address that was called, query included; see `url`",
    "path": "its path",
    "query": "its query, without the question mark",
    "form": "all fields of a form: names and values, sorted, repeated ones once",
    "address": "the address without its query",
    "sorted_query": "the query's fields, decoded and sorted, with `=` and `&`",
    "url_with_port": "`url` with its port, even the default one",
    "url_without_port": "`url` without its port",
    "decoded_url": "`url` with all percent-encoding decoded except the question mark's",
    "escaped_path": "`path`, and the query escaped as one value, then the whole escaped as a URL",
    "header:NAME": "a header",
    "headers:NAME": "the headers that this header lists, as `name:value`, sorted, with `;`",
    "json:PATH": "a value in the body's JSON",
    "json?:PATH": "the same; empty if it is missing",
    "form:NAME": "one form field, which must occur once",
}
EXAMPLES: Final = """\
# Your agents, each with its own key in the source's secret
[sources.agents]
auth = "jwt"
issuer = "https://agents.example"
audience = "https://hooks.example/webhooks/agents"
event_id = { claim = "jti" }
event_type = { json = "type" }

# Agents of an issuer, with tokens that are valid for one body
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
CALLERS: Final = """\
### Callers of your own

The secret of such a source is one credential, or a JSON object with one of each agent:

| `auth` | one agent | several |
|---|---|---|
| `"jwt"` | a public key as PEM or JWK; a shared one in base64, of 32 bytes or more | \
`{"planner": "PEM", "buyer": {"kty": …}}`, or a JWK set whose `kid` is the agent |
| `"api-key"` | the key | `{"planner": "KEY", "buyer": "KEY"}` |
| `"basic"` | `user:password` | `{"planner": "user:password"}` |

The credential's agent is stored with the event: handlers and policies read it as `event.agent`. It
is `""` if the secret has no agent names. If a JWT's key belongs to no agent (`jwks`, or a bare key
in the secret), the agent is the claim that `agent_claim` names, which is then required.

A token must have `exp`, `iss` and `aud`; `nbf` and `iat` are checked if present. `algorithms` lists
the accepted algorithms, and a key is only used with algorithms of its own kind.

Credentials prove the sender, not the content: send them over https only, and prefer `body_claim`,
which binds a token to one body. If the id is in a header or the query, a replay could have a new id
every time; a known body is therefore answered 200 and not run. With `body_claim`, the token is
checked instead of the body. An id in the body or in the token needs no such check. All agents of a
source share its ids: an agent that must not use another's ids needs its own source.
"""


def keys() -> str:
    """Returns the section on the keys that only some providers take."""
    rows = "".join(
        f"| `{key}` | {meaning} | {', '.join(f'`{name}`' for name in _takers(key))} |\n"
        for key, meaning in KEYS.items()
    )
    intro = "`docs/providers.md` describes each provider.\n\n"
    return (
        f"### `[sources.NAME]`, some providers\n\n{intro}"
        f"| key | meaning | providers |\n|---|---|---|\n{rows}"
    )


def known_keys() -> frozenset[str]:
    """Returns every key that any provider takes for itself, but for the declared sources'."""
    return frozenset(key for name in MODULES if name not in DECLARED for key in _settings(name))


def known_fields() -> frozenset[str]:
    """Returns every field that may stand in `signs`."""
    named = (f"{kind}:{what}" for kind, what in signed_content.NAMED.items())
    return frozenset((*signed_content.FIELDS, *named))


def signed() -> str:
    """Returns the sections on what is signed, with examples."""
    rows = "".join(f"| `{{{field}}}` | {meaning} |\n" for field, meaning in FIELDS.items())
    fields = f"### `{{…}}` in `signs`\n\n| field | stands for |\n|---|---|\n{rows}"
    return f"{fields}\n{CALLERS}\n### Declared sources\n\n```toml\n{EXAMPLES}```\n"


def _takers(key: str) -> Iterator[str]:
    return (name for name in MODULES if name not in DECLARED and key in _settings(name))


def _settings(provider: str) -> frozenset[str]:
    module = import_module(f"webhook_inbox.providers.{MODULES[provider]}")
    found: frozenset[str] = getattr(module, "SETTINGS", frozenset())
    return found
