"""The shape of inbox.toml. A field's description completes "give …" in an error's remedy."""

import re
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic import model_validator as validator

from webhook_inbox.durations import duration
from webhook_inbox.errors import ConfigurationError

NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}", re.ASCII)
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
# A signed time keeps captured deliveries out for no longer than this.
LONGEST_TOLERANCE: Final = "24h"


def name(value: str) -> str:
    """Accepts the name of a source, secret, destination or stage."""
    if NAME.fullmatch(value) is None:
        raise ValueError(
            f'"{value}" is not a name; use lower-case letters, digits and dashes, at most 63,'
            " a letter or digit first"
        )
    return value


def _header(value: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}", value, re.ASCII) is None:
        raise ValueError(f'"{value}" is not a header\'s name; write it as the provider does')
    return value


def _tolerance(value: str) -> str:
    try:
        given = duration(value)
    except ConfigurationError as error:
        raise ValueError(str(error)) from error
    if given > duration(LONGEST_TOLERANCE):
        raise ValueError(f'"{value}" is too long; give at most "{LONGEST_TOLERANCE}"')
    return value


def _base_url(value: str) -> str:
    parts = urlsplit(value)
    host = parts.hostname or ""
    if not host or parts.port == 0:
        raise ValueError(f'"{value}" is not a URL; write it like "https://api.example"')
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("no credentials, query or fragment may stand in it; remove them")
    if parts.scheme != "https" and not (parts.scheme == "http" and host in LOOPBACK):
        raise ValueError(f'"{value}" is not encrypted; use https (http on this machine only)')
    return value.rstrip("/")


def _address(value: str) -> str:
    mail = re.fullmatch(r"mailto:[^@\s]+@[^@\s]+", value)
    web = value.startswith("https://") and urlsplit(value).hostname
    if not mail and not web:
        raise ValueError(f'"{value}" is no address; write "mailto:…@…" or "https://…"')
    return value


Name = Annotated[str, AfterValidator(name)]
Header = Annotated[str, AfterValidator(_header)]
Text = Annotated[str, StringConstraints(min_length=1)]
Address = Annotated[str, AfterValidator(_address)]


class Table(BaseModel):
    """A table in which every key is known and every value has its type exactly."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class OneOf(Table):
    """A table with exactly one of its keys."""

    @validator(mode="before")
    @classmethod
    def _one(cls, data: Any) -> Any:
        choices = [field.alias or key for key, field in cls.model_fields.items()]
        if isinstance(data, dict) and set(data) <= set(choices) and len(data) != 1:
            raise ValueError(f"give exactly one of {', '.join(choices)}")
        return data


class Signature(Table):
    """Where the signature stands and how it is made."""

    header: Header = Field(description="the name of the header that carries the signature")
    prefix: str = Field(default="", description='what stands before the signature, like "sha256="')
    signs: Text = Field(default="{body}", description='what is signed, like "{timestamp}.{body}"')
    algorithm: Literal["sha256", "sha1", "sha512"] = Field(default="sha256", description="the hash")
    encoding: Literal["hex", "base64"] = Field(
        default="hex", description="how the signature is written"
    )
    key: Literal["text", "hex", "base64"] = Field(
        default="text", description="how the secret is read"
    )


class Timestamp(Table):
    """Where the signed time stands, in epoch seconds, and how far it may be off."""

    header: Header = Field(description="the name of the header that carries the time")
    tolerance: Annotated[str, AfterValidator(_tolerance)] = Field(
        default="5m", description="how far the time may be off, both ways"
    )


class EventId(OneOf):
    """What an event is deduplicated by."""

    header: Header | None = Field(default=None, description="the name of the header with the id")
    in_json: Text | None = Field(
        default=None, alias="json", description='the path to it, like "data.id"'
    )
    body: Literal["sha256"] | None = Field(default=None, description='"sha256": the body\'s hash')


class EventType(OneOf):
    """What kind of event it is."""

    header: Header | None = Field(default=None, description="the name of the header with the type")
    in_json: Text | None = Field(
        default=None, alias="json", description='the path to it, like "type"'
    )
    value: Text | None = Field(default=None, description="one type for every event")


class Source(Table):
    """One endpoint; the provider's module judges the keys that are not named here."""

    model_config = ConfigDict(extra="allow")

    provider: str = Field(description='who sends, like "stripe"')
    secret: Name | None = Field(
        default=None, description="the secret's name; the source's own if absent"
    )
    types: list[Text] = Field(
        default=["*"], min_length=1, description="patterns of the types to store"
    )
    volatile: list[Text] = Field(default=[], description="JSON fields that change between retries")


class DeclaredSource(Source):
    """A source of the provider `hmac`."""

    model_config = ConfigDict(extra="forbid")

    signature: Signature = Field(description="where the signature stands and what it signs")
    timestamp: Timestamp | None = Field(default=None, description="where the signed time stands")
    event_id: EventId = Field(description="one of { header = … }, { json = … }, { body = … }")
    event_type: EventType | None = Field(default=None, description="one of header, json, value")


class Destination(Table):
    """A downstream system that handlers call."""

    base_url: Annotated[str, AfterValidator(_base_url)] = Field(description="where it is")


class Alarms(Table):
    """Whom to tell."""

    notify: list[Address] = Field(default=[], description="who is told of every alarm")
    page: list[Address] = Field(default=[], description="who is woken; told of every alarm as yet")


class Overrides(Table):
    """What one stage changes: parts of the file's tables, judged once they are merged."""

    sources: dict[str, Any] = Field(default={}, description="tables [stages.STAGE.sources.NAME]")
    destinations: dict[str, Any] = Field(
        default={}, description="tables [stages.STAGE.destinations.NAME]"
    )
    alarms: dict[str, Any] = Field(default={}, description="the table [stages.STAGE.alarms]")
    handler_secrets: list[str] = Field(
        default=[], description="names of secrets that handlers read"
    )


class Inbox(Table):
    """The whole file."""

    sources: dict[Name, dict[str, Any]] = Field(default={}, description="tables [sources.NAME]")
    destinations: dict[Name, Destination] = Field(
        default={}, description="tables [destinations.NAME]"
    )
    alarms: Alarms = Field(default=Alarms(), description="the table [alarms]")
    handler_secrets: list[Name] = Field(
        default=[], description="names of secrets that handlers read"
    )
    stages: dict[Name, Overrides] = Field(default={}, description="tables [stages.NAME.…]")
