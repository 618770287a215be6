"""What the reference says of sources: keys of some providers, and the declared source."""

from collections.abc import Iterator
from importlib import import_module
from typing import Final

from webhook_inbox.providers import DECLARED, MODULES
from webhook_inbox.providers.schemes.signatures import signed_content

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
# Agents of yours, each with a key of its own that is in the source's secret
[sources.agents]
auth = "jwt"
issuer = "https://agents.example"
audience = "https://hooks.example/webhooks/agents"
event_id = { claim = "jti" }
event_type = { json = "type" }

# Agents that an issuer vouches for, in tokens that are good for one body
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

Whose credential it was is kept with the event: a handler and a policy see it as `event.agent`, `""`
where the secret is of nobody in particular. Where a JWT's key is not an agent's own (`jwks`, or a
bare key in the secret), the agent is the claim that `agent_claim` names, and has to be there.

A token has to have `exp`, `iss` and `aud`; `nbf` and `iat` are judged where they are there. Which
algorithms count is fixed here, and a key is only used with those of its own kind.

Credentials prove who sends, not what: keep them to https, and prefer `body_claim`, with which a
token is good for one body. Where the id stands in a header or the query, and so could be another
one every time, a body that came before is known again: answered 200, and not run. With `body_claim`
it is the token that is known again. An id in the body, or in the token, needs none of this. All
agents of a source share its ids: one that must not take another's gets a source of its own.
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
