"""`provider = "hmac"`: any HMAC in a header, declared in inbox.toml.

The tables' shape is validated when the configuration is read; here they are given their meaning.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from webhook_inbox.durations import duration
from webhook_inbox.errors import ConfigurationError
from webhook_inbox.model import Delivery
from webhook_inbox.recipe import Identity, Recipe, Sample
from webhook_inbox.schemes.encodings import ENCODINGS
from webhook_inbox.schemes.keys import READERS
from webhook_inbox.schemes.layouts import Whole
from webhook_inbox.schemes.mac import Hmac
from webhook_inbox.schemes.naming import Finder, Naming, content_hash, fixed, header, in_json
from webhook_inbox.schemes.templates import Template
from webhook_inbox.schemes.window import Window

SETTINGS: Final = frozenset({"signature", "timestamp", "event_id", "event_type"})


def recipe(settings: Mapping[str, Any]) -> Recipe:
    """Returns the recipe that the tables declare.

    Raises:
        ConfigurationError: what is signed does not go with the other tables.
    """
    scheme = _scheme(settings)
    id_, type_ = settings["event_id"], settings.get("event_type", {})
    naming = Naming(id=(_finder(id_),), type=(_finder(type_),))

    def sign(sample: Sample, secret: str, now: datetime) -> dict[str, str]:
        headers = scheme.sign(sample, secret, now)
        named = {id_.get("header"): sample.event_id, type_.get("header"): sample.type}
        return headers | {name.lower(): value for name, value in named.items() if name}

    def guard(delivery: Delivery, _: Identity) -> bytes:
        return scheme.content(delivery)

    return Recipe(
        name="hmac",
        verify=scheme.verify,
        signature_headers=scheme.reads,
        identify=naming.identify,
        sign=sign,
        guard=None if _signed_name(_signs(settings), id_) else guard,
        kept_headers=frozenset(h.lower() for t in (id_, type_) if (h := t.get("header"))),
    )


def _scheme(settings: Mapping[str, Any]) -> Hmac:
    signature, timestamp = settings["signature"], settings.get("timestamp")
    signs = _signs(settings)
    window = None
    if timestamp is not None:
        tolerance = duration(timestamp.get("tolerance", "5m"))
        window = Window(headers=(timestamp["header"].lower(),), tolerance=tolerance)
    return Hmac(
        headers=(signature["header"].lower(),),
        layout=Whole(signature.get("prefix", "")),
        signs=signs,
        algorithm=signature.get("algorithm", "sha256"),
        encoding=ENCODINGS[signature.get("encoding", "hex")],
        key=READERS[signature.get("key", "text")],
        window=window,
        ids=(settings["event_id"]["header"].lower(),) if "id" in signs else (),
    )


def _signs(settings: Mapping[str, Any]) -> Template:
    try:
        signs = Template.parse(settings["signature"].get("signs", "{body}"))
    except ConfigurationError as error:
        raise ConfigurationError(f"signature.signs: {error}") from error
    if "timestamp" in signs and "timestamp" not in settings:
        raise ConfigurationError("timestamp: missing; name the header that {timestamp} stands for")
    if "timestamp" in settings and "timestamp" not in signs:
        raise ConfigurationError(
            "timestamp: not signed, so it proves nothing; add {timestamp} to signature.signs,"
            " or remove it"
        )
    if "id" in signs and "header" not in settings["event_id"]:
        raise ConfigurationError("event_id.header: missing; name the header that {id} stands for")
    return signs


def _signed_name(signs: Template, event_id: Mapping[str, Any]) -> bool:
    """Tells whether a captured delivery cannot come again under another id, or not for long."""
    return "timestamp" in signs or signs.pins("id") or "header" not in event_id


def _finder(table: Mapping[str, Any]) -> Finder:
    if "header" in table:
        return header(table["header"].lower())
    if "json" in table:
        return in_json(table["json"])
    if "body" in table:
        return content_hash
    return fixed(table.get("value", ""))
