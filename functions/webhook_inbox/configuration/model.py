"""The shape of inbox.toml. A field's description completes "give …" in an error's remedy."""

import re
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}", re.ASCII)
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def name(value: str) -> str:
    """Accepts the name of a source, secret, destination or stage."""
    if NAME.fullmatch(value) is None:
        raise ValueError(
            f'"{value}" is not a name; use lower-case letters, digits and dashes, at most 63,'
            " a letter or digit first"
        )
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
Text = Annotated[str, StringConstraints(min_length=1)]
Address = Annotated[str, AfterValidator(_address)]


class Table(BaseModel):
    """A table in which every key is known and every value has its type exactly."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


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
