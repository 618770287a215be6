"""The shape of a source of the provider `hmac`: where its signature stands and what it signs."""

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, ConfigDict, Field, PlainValidator
from pydantic_core import PydanticCustomError

from webhook_inbox.configuration.document import Source
from webhook_inbox.configuration.table import ConfigTable, ExactlyOneOf, Header, Text, header
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.timestamps import duration
from webhook_inbox.providers.schemes.handshakes.presets import NAMES

# A signed time keeps captured deliveries out for no longer than this.
LONGEST_TOLERANCE: Final = "24h"
NO_TOLERANCE: Final = "none"


def _text(value: str) -> str:
    if not value:
        raise ValueError("must not be empty")
    return value


def _some(check: Callable[[str], str]) -> Callable[[Any], Any]:
    """Accepts one text or a list of them; a plain union would report every branch."""

    def several(value: Any) -> Any:
        if value is None:
            raise PydanticCustomError("missing", "missing")
        listed = value if isinstance(value, list) else [value]
        if not listed or not all(isinstance(each, str) for each in listed):
            raise ValueError("must be text in quotes, or a list of texts")
        return [check(each) for each in listed]

    return several


def _tolerance(value: str) -> str:
    if value == NO_TOLERANCE:
        return value
    try:
        given = duration(value)
    except ConfigurationError as error:
        raise ValueError(str(error)) from error
    if given > duration(LONGEST_TOLERANCE):
        raise ValueError(f'"{value}" is too long; give at most "{LONGEST_TOLERANCE}"')
    return value


Headers = Annotated[Any, PlainValidator(_some(header))]
Texts = Annotated[Any, PlainValidator(_some(_text))]
Tolerance = Annotated[str, AfterValidator(_tolerance)]
Hash = Literal["sha256", "sha1", "sha512"]
Encoding = Literal["hex", "base64", "base64url"]


class Signature(ExactlyOneOf):
    """Where the signature stands and how it is made."""

    places = ("header", "json", "form", "query")
    asked = "header"

    header: Headers = Field(
        default=None,
        description="the name of the header that carries the signature, or several of which any"
        " may; a last * stands for 1 to 100",
    )
    in_json: Text | None = Field(
        default=None, alias="json", description="instead, the path to it in the body's JSON"
    )
    form: Text | None = Field(default=None, description="instead, the form's field that holds it")
    query: Text | None = Field(default=None, description="instead, the query's field")
    prefix: str = Field(default="", description='what stands before the signature, like "sha256="')
    entry: Text | None = Field(
        default=None,
        description="where the value is a list of named signatures, the name of those that count,"
        ' like "v1" in "t=…,v1=…"',
    )
    separator: Text | None = Field(
        default=None, description='what stands between signatures; with `entry` "," if absent'
    )
    mark: Text = Field(default="=", description="what stands between an entry's name and value")
    signs: Texts = Field(
        default="{body}",
        description='what is signed, like "{timestamp}.{body}", or a list of which any may be',
    )
    partial: bool = Field(
        default=False,
        description="true where the provider does not sign the whole body: whoever has one"
        " signature can change events, and each signed content is let in once",
    )
    each: bool = Field(
        default=False, description="true where every event of the batch has its own signature"
    )
    mac: Literal["hmac", "hash"] = Field(
        default="hmac", description="hash: of the secret and what is signed, one after the other"
    )
    algorithm: Hash = Field(default="sha256", description="the hash")
    encoding: Encoding = Field(default="hex", description="how the signature is written")
    key: Literal["text", "hex", "base64", "whsec", "sha1", "nfkd"] = Field(
        default="text",
        description="how the secret is read; whsec: base64 after whsec_, sha1: its hash is the"
        " key, nfkd: text in that form of Unicode",
    )
    requires: dict[Header, Text] = Field(
        default={}, description="headers that must have these values, like a scheme's version"
    )


class Timestamp(ExactlyOneOf):
    """Where the signed time stands, how it is written, and how far it may be off."""

    places = ("header", "json", "form", "query", "entry")
    asked = "header"

    header: Headers = Field(
        default=None, description="the name of the header that carries the time, or several"
    )
    in_json: Text | None = Field(
        default=None, alias="json", description="instead, the path to it in the body's JSON"
    )
    form: Text | None = Field(default=None, description="instead, the form's field that holds it")
    query: Text | None = Field(default=None, description="instead, the query's field")
    entry: Text | None = Field(
        default=None, description='instead, its name beside the signatures, like "t"'
    )
    format: Literal["seconds", "milliseconds", "iso"] = Field(
        default="seconds", description="how it is written: since 1970, or ISO 8601"
    )
    tolerance: Tolerance = Field(
        default="5m",
        description='how far the time may be off, both ways, at most "24h"; "none": it is signed'
        " and not judged",
    )
    ahead: Tolerance | None = Field(
        default=None,
        description='how far it may be ahead of our clock, where that differs; "none": not at all',
    )


class EventId(ExactlyOneOf):
    """What an event is deduplicated by."""

    places: ClassVar[tuple[str, ...]] = ("header", "json", "body", "form", "query")

    header: Headers = Field(default=None, description="the name of the header with the id")
    in_json: Texts = Field(
        default=None,
        alias="json",
        description='the path to it, like "data.id"; or several that are the id together',
    )
    form: Text | None = Field(default=None, description="the form's field with the id")
    query: Text | None = Field(default=None, description="the query's field with the id")
    body: Literal["sha256"] | None = Field(default=None, description='"sha256": the body\'s hash')


class EventType(ExactlyOneOf):
    """What kind of event it is."""

    places: ClassVar[tuple[str, ...]] = ("header", "json", "value", "form", "query")

    header: Headers = Field(default=None, description="the name of the header with the type")
    in_json: Text | None = Field(
        default=None, alias="json", description='the path to it, like "type"'
    )
    form: Text | None = Field(default=None, description="the form's field with the type")
    query: Text | None = Field(default=None, description="the query's field with the type")
    value: Text | None = Field(default=None, description="one type for every event")


class BatchTable(ConfigTable):
    """Where the events of a delivery stand."""

    in_json: str = Field(
        alias="json", description='the path to their list, "" where the body is the list'
    )
    inside: Text | None = Field(
        default=None, description="the path to the event in an element of the list"
    )


class DigestTable(ExactlyOneOf):
    """A hash of the body that is signed in its place, where a delivery has one."""

    places = ("header", "query")

    header: Header | None = Field(default=None, description="the name of the header with the hash")
    query: Text | None = Field(default=None, description="the query's field with the hash")
    algorithm: Hash = Field(default="sha256", description="the hash")
    encoding: Encoding = Field(default="hex", description="how it is written")


class DeclaredSource(Source):
    """A source of the provider `hmac`."""

    model_config = ConfigDict(extra="forbid")

    signature: Signature = Field(description="where the signature stands and what it signs")
    timestamp: Timestamp | None = Field(default=None, description="where the signed time stands")
    event_id: EventId = Field(description="one of { header = … }, { json = … }, { body = … }")
    event_type: EventType | None = Field(
        default=None, description="one of header, json, form, query, value"
    )
    url: Text | None = Field(
        default=None,
        description="the address that the provider calls, without a query, where it is signed and"
        " a domain or proxy of yours changes it",
    )
    batch: BatchTable | None = Field(
        default=None, description="where the list of events stands, if a delivery has several"
    )
    digest: DigestTable | None = Field(
        default=None, description="where the body's hash stands, if that is signed in its place"
    )
    handshake: Text | None = Field(
        default=None, description=f"how the provider tries the endpoint: as {', '.join(NAMES)}"
    )
