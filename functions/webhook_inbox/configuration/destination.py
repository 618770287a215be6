"""The table of a destination: a downstream system that handlers call."""

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from webhook_inbox.configuration.addresses import LOOPBACK, Kind, host_of
from webhook_inbox.configuration.table import (
    ConfigTable,
    ExactlyOneOf,
    Header,
    Name,
    Text,
    duration_up_to,
)
from webhook_inbox.domain.manifest import SINK, BreakerSpec, DestinationSpec
from webhook_inbox.domain.timestamps import duration

LONGEST_TIMEOUT: Final = "50s"  # an attempt has no more
LONGEST_LIFETIME: Final = "8760h"
LONGEST_RECOVERY: Final = "24h"
FASTEST: Final = 10_000.0
_RATE: Final = re.compile(r"([1-9][0-9]{0,5})/([smh])", re.ASCII)
_PERIODS: Final = {"s": 1, "m": 60, "h": 3600}
_STATUS: Final = re.compile(r"[2-5]([0-9]{2}|xx)", re.ASCII)
# Headers that httpx writes, and those that change the target or the length of a call.
_TAKEN: Final = frozenset(
    {"connection", "content-length", "content-type", "host", "traceparent", "transfer-encoding"}
)


def _base_url(value: str) -> str:
    if value.partition("/")[0] == SINK:
        return value.rstrip("/")
    parts = urlsplit(value)
    if not all(host_of(value).split(".")) or parts.port == 0:
        raise ValueError(f'"{value}" is not a URL; write it like "https://api.example"')
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("credentials, a query and a fragment are not allowed; remove them")
    if parts.scheme not in {"http", "https"}:
        raise ValueError(f'"{value}" is not encrypted; use https')
    return value.rstrip("/")


def _seconds(longest: str) -> Callable[[Any], float]:
    """Returns a reader of durations of up to `longest`."""
    check = duration_up_to(longest)
    return lambda value: duration(check(str(value))).total_seconds()


def _rate(value: Any) -> float:
    """Returns calls per second."""
    match = _RATE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f'"{value}" is not a rate; write it like "10/s", "600/m" or "1000/h"')
    rate = int(match[1]) / _PERIODS[match[2]]
    if rate > FASTEST:
        raise ValueError(f'"{value}" is too much; give at most "{FASTEST:.0f}/s", or leave it out')
    return rate


def _status(value: str) -> str:
    if _STATUS.fullmatch(value) is None:
        raise ValueError(f'"{value}" is not a status; write it like "409" or "5xx"')
    return value


def _ours(value: str) -> str:
    if value.lower() in _TAKEN:
        raise ValueError(f'"{value}" is reserved; name another header')
    return value


def _none(value: Any) -> Any:
    """Accepts `false` and "none" for None."""
    return None if value is False or value == "none" else value


Free = Annotated[Header, AfterValidator(_ours)]
Rate = Annotated[float, BeforeValidator(_rate)]


class Auth(ExactlyOneOf):
    """How calls are authenticated, and with which secret."""

    places = ("bearer", "basic", "header", "query")

    bearer: Name | None = Field(
        default=None, description="the name of the secret with the bearer token"
    )
    basic: Name | None = Field(
        default=None,
        description='the name of the secret with "user:password", for basic authentication',
    )
    header: Free | None = Field(default=None, description="the name of the header for the secret")
    query: Text | None = Field(
        default=None, description="the query field for it, if no header is possible"
    )
    secret: Name | None = Field(
        default=None, description="with `header` or `query`, the secret's name"
    )
    prefix: str = Field(
        default="", description='with `header`, the text before the secret, like "Token "'
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        placed = self.header or self.query
        if placed and not self.secret:
            raise ValueError("`header` and `query` need the secret's name; add secret = …")
        if self.secret and not placed:
            raise ValueError("`secret` goes with `header` or `query`; leave it out")
        if self.prefix and not self.header:
            raise ValueError("`prefix` goes with `header`; leave it out")
        return self

    @property
    def secret_name(self) -> str:
        """The name of the secret."""
        return self.bearer or self.basic or self.secret or ""

    def parts(self) -> Mapping[str, str]:
        """Returns the setting of the manifest."""
        return {key: value for key, value in self.model_dump().items() if value}


class Idempotency(ExactlyOneOf):
    """The location of an effect's idempotency key."""

    places = ("header", "field")

    header: Free | None = Field(default=None, description="the header for the key")
    field: Text | None = Field(
        default=None, description='or a field of a JSON body, like "dedup_key"'
    )
    format: Literal["text", "uuid"] = Field(
        default="text", description="the format of the key; text is readable"
    )


class BreakerTable(ConfigTable):
    """The circuit breaker of a destination."""

    failures: int = Field(default=5, ge=1, le=1000, description="failed calls in a row, 1 to 1000")
    recovery: Annotated[float, BeforeValidator(_seconds(LONGEST_RECOVERY))] = Field(
        default="60s",
        validate_default=True,
        description='the time that the circuit stays open, like "60s"',
    )
    drain: Rate = Field(
        default="5/s",
        validate_default=True,
        description='the rate of the waiting runs afterwards, like "5/s"',
    )


class Destination(ConfigTable):
    """A downstream system that handlers call."""

    base_url: Annotated[str, AfterValidator(_base_url)] = Field(
        description='its URL; "sink" for the sink of `webhookctl dev` in the stage local'
    )
    auth: Annotated[Auth | None, BeforeValidator(_none)] = Field(
        default=None,
        description='one of { bearer = "…" }, { basic = "…" }, { header = "…", secret = "…" },'
        ' { query = "…", secret = "…" }',
    )
    idempotency: Annotated[Idempotency | None, BeforeValidator(_none)] = Field(
        default=Idempotency(header="Idempotency-Key"),
        description='{ header = "…" }, { field = "…" }, or false without key support: an'
        " effect in doubt is then held",
    )
    key_lifetime: Annotated[float, BeforeValidator(_seconds(LONGEST_LIFETIME))] = Field(
        default="24h",
        validate_default=True,
        description=f'the time that it remembers a key, at most "{LONGEST_LIFETIME}"',
    )
    timeout: Annotated[float, BeforeValidator(_seconds(LONGEST_TIMEOUT))] = Field(
        default="10s",
        validate_default=True,
        description=f'the timeout of a call, at most "{LONGEST_TIMEOUT}"',
    )
    rate: Rate | None = Field(
        default=None,
        description='calls per second, minute or hour, like "10/s"; unlimited if absent',
    )
    on_limit: Literal["queue", "drop", "error"] = Field(
        default="queue", description="the treatment of a run that would exceed the rate"
    )
    breaker: Annotated[BreakerTable | None, BeforeValidator(_none)] = Field(
        default=BreakerTable(),
        description="{ failures = …, recovery = …, drain = … }, or false: failures never open it",
    )
    sign: Name | None = Field(
        default=None, description="the name of the secret that signs calls, as Standard Webhooks"
    )
    responses: dict[
        Annotated[str, AfterValidator(_status)], Literal["ok", "transient", "permanent"]
    ] = Field(
        default={},
        description='the meaning of a status, if different, like { "404" = "ok",'
        ' "5xx" = "permanent" }: ok, transient or permanent',
    )
    retry_after: Literal["seconds", "milliseconds"] = Field(
        default="seconds", description="the unit of a number in its `Retry-After`"
    )
    allow: list[Literal[Kind, "plain-http"]] = Field(
        default=[],
        description="the kinds of a `base_url` that deployed stages may have nevertheless:"
        ' "loopback", "private", "placeholder" or "plain-http"',
    )

    @model_validator(mode="after")
    def _encrypted(self) -> Self:
        scheme = urlsplit(self.base_url).scheme  # "": the sink
        encrypted = scheme in {"https", ""} or host_of(self.base_url) in LOOPBACK
        if not encrypted and "plain-http" not in self.allow:
            raise ValueError(
                f'base_url: "{self.base_url}" is not encrypted; use https, or'
                ' allow = ["plain-http"] (http is permitted on this machine)'
            )
        return self

    @model_validator(mode="after")
    def _one_thing_a_header(self) -> Self:
        given, key = self.auth, self.idempotency
        carried = "Authorization" if given and (given.bearer or given.basic) else None
        carried = carried or (given.header if given else None)
        if carried and key and key.header and key.header.lower() == carried.lower():
            raise ValueError(f"the secret and the key cannot both be in {carried}; name another")
        return self

    @property
    def secrets(self) -> tuple[str, ...]:
        """The names of the secrets of its calls."""
        named = (self.auth.secret_name if self.auth else "", self.sign or "")
        return tuple(name for name in named if name)

    def spec(self, name: str) -> DestinationSpec:
        """Returns the destination of the manifest."""
        key, breaker = self.idempotency, self.breaker
        return DestinationSpec(
            name=name,
            base_url=self.base_url,
            auth=self.auth.parts() if self.auth else {},
            key_header=(key and key.header) or "",
            key_field=(key and key.field) or "",
            key_format=key.format if key else "text",
            key_lifetime=self.key_lifetime if key else 0.0,
            timeout=self.timeout,
            rate=self.rate,
            on_limit=self.on_limit,
            breaker=BreakerSpec(**breaker.model_dump()) if breaker else None,
            sign=self.sign or "",
            responses=self.responses,
            retry_after=self.retry_after,
        )
