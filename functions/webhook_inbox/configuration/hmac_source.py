"""The table of a source of the provider `hmac`: the location and content of its signature."""

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, ConfigDict, Field, PlainValidator
from pydantic_core import PydanticCustomError

from webhook_inbox.configuration.document import Source
from webhook_inbox.configuration.table import (
    ConfigTable,
    ExactlyOneOf,
    Header,
    Text,
    duration_up_to,
    header,
)
from webhook_inbox.providers.schemes.handshakes.presets import NAMES

# A longer tolerance would accept captured deliveries for too long.
LONGEST_TOLERANCE: Final = "24h"
NO_TOLERANCE: Final = "none"


def _text(value: str) -> str:
    if not value:
        raise ValueError("must not be empty")
    return value


def _some(check: Callable[[str], str]) -> Callable[[Any], Any]:
    """Accepts a text or a list of texts; the error of a union would name every branch."""

    def several(value: Any) -> Any:
        if value is None:
            raise PydanticCustomError("missing", "missing")
        listed = value if isinstance(value, list) else [value]
        if not listed or not all(isinstance(each, str) for each in listed):
            raise ValueError("must be text in quotes, or a list of texts")
        return [check(each) for each in listed]

    return several


def _tolerance(value: str) -> str:
    return value if value == NO_TOLERANCE else duration_up_to(LONGEST_TOLERANCE)(value)


Headers = Annotated[Any, PlainValidator(_some(header))]
Texts = Annotated[Any, PlainValidator(_some(_text))]
Tolerance = Annotated[str, AfterValidator(_tolerance)]
Hash = Literal["sha256", "sha1", "sha512"]
Encoding = Literal["hex", "base64", "base64url"]


class Signature(ExactlyOneOf):
    """The location and the scheme of the signature."""

    places = ("header", "json", "form", "query")
    asked = "header"

    header: Headers = Field(
        default=None,
        description="the name of the header with the signature, or a list of alternatives; a"
        " trailing * stands for 1 to 100",
    )
    in_json: Text | None = Field(
        default=None, alias="json", description="or its path in the JSON body"
    )
    form: Text | None = Field(default=None, description="or its form field")
    query: Text | None = Field(default=None, description="or its query field")
    prefix: str = Field(default="", description='the text before the signature, like "sha256="')
    entry: Text | None = Field(
        default=None,
        description="in a list of named signatures, the name of the accepted ones,"
        ' like "v1" in "t=…,v1=…"',
    )
    separator: Text | None = Field(
        default=None, description='the separator between signatures; with `entry`, "," if absent'
    )
    mark: Text = Field(default="=", description="the separator between an entry's name and value")
    signs: Texts = Field(
        default="{body}",
        description='the signed content, like "{timestamp}.{body}", or a list of alternatives',
    )
    partial: bool = Field(
        default=False,
        description="true if the provider does not sign the whole body: with one signature an"
        " attacker can change events, and each signed content is accepted once",
    )
    each: bool = Field(
        default=False, description="true if every event of the batch has its own signature"
    )
    mac: Literal["hmac", "hash"] = Field(
        default="hmac", description="hash: of the secret followed by the signed content"
    )
    algorithm: Hash = Field(default="sha256", description="the hash")
    encoding: Encoding = Field(default="hex", description="the encoding of the signature")
    key: Literal["text", "hex", "base64", "whsec", "sha1", "nfkd"] = Field(
        default="text",
        description="the form of the secret; whsec: base64 after whsec_, sha1: its hash is the"
        " key, nfkd: text in that Unicode form",
    )
    requires: dict[Header, Text] = Field(
        default={}, description="headers that must have these values, like a scheme's version"
    )


class Timestamp(ExactlyOneOf):
    """The location, format and tolerance of the signed time."""

    places = ("header", "json", "form", "query", "entry")
    asked = "header"

    header: Headers = Field(
        default=None, description="the name of the header with the time, or several"
    )
    in_json: Text | None = Field(
        default=None, alias="json", description="or its path in the JSON body"
    )
    form: Text | None = Field(default=None, description="or its form field")
    query: Text | None = Field(default=None, description="or its query field")
    entry: Text | None = Field(
        default=None, description='or its name in the list of signatures, like "t"'
    )
    format: Literal["seconds", "milliseconds", "iso"] = Field(
        default="seconds",
        description="its format: 10 digits since 1970, 13 of milliseconds, or ISO 8601",
    )
    tolerance: Tolerance = Field(
        default="5m",
        description='the allowed difference in both directions, at most "24h"; "none": the time'
        " is signed but not checked",
    )
    ahead: Tolerance | None = Field(
        default=None,
        description='the allowed time ahead of our clock, if different; "none": not ahead',
    )


class EventId(ExactlyOneOf):
    """The location of the event id."""

    places: ClassVar[tuple[str, ...]] = ("header", "json", "body", "form", "query")

    header: Headers = Field(default=None, description="the name of the header with the id")
    in_json: Texts = Field(
        default=None,
        alias="json",
        description='its path, like "data.id", or several that form the id',
    )
    form: Text | None = Field(default=None, description="the form field with the id")
    query: Text | None = Field(default=None, description="the query field with the id")
    body: Literal["sha256"] | None = Field(default=None, description='"sha256": the body\'s hash')


class EventType(ExactlyOneOf):
    """The location of the event type."""

    places: ClassVar[tuple[str, ...]] = ("header", "json", "value", "form", "query")

    header: Headers = Field(default=None, description="the name of the header with the type")
    in_json: Text | None = Field(default=None, alias="json", description='its path, like "type"')
    form: Text | None = Field(default=None, description="the form field with the type")
    query: Text | None = Field(default=None, description="the query field with the type")
    value: Text | None = Field(default=None, description="one type for every event")


class BatchTable(ConfigTable):
    """Where the events of a delivery stand."""

    in_json: str = Field(
        alias="json", description='the path to the list of events, "" if the body is the list'
    )
    inside: Text | None = Field(
        default=None, description="the path to the event in an element of the list"
    )


class DigestTable(ExactlyOneOf):
    """A hash of the body that is signed in its place, where a delivery has one."""

    places = ("header", "query")

    header: Header | None = Field(default=None, description="the name of the header with the hash")
    query: Text | None = Field(default=None, description="the query field with the hash")
    algorithm: Hash = Field(default="sha256", description="the hash")
    encoding: Encoding = Field(default="hex", description="its encoding")


class DeclaredSource(Source):
    """A source of the provider `hmac`."""

    model_config = ConfigDict(extra="forbid")

    signature: Signature = Field(description="the signature's place and the signed content")
    timestamp: Timestamp | None = Field(default=None, description="the place of the signed time")
    event_id: EventId = Field(description="one of { header = … }, { json = … }, { body = … }")
    event_type: EventType | None = Field(
        default=None, description="one of header, json, form, query, value"
    )
    url: Text | None = Field(
        default=None,
        description="the URL that the provider calls, without a query, if it is signed and your"
        " domain or proxy changes it",
    )
    batch: BatchTable | None = Field(
        default=None, description="the place of the list of events, if a delivery has several"
    )
    digest: DigestTable | None = Field(
        default=None, description="the place of the body's hash, if that is signed instead"
    )
    handshake: Text | None = Field(
        default=None, description=f"the provider's test of the endpoint: {', '.join(NAMES)}"
    )
