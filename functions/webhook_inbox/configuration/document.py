"""The tables of inbox.toml. A field's description completes "give …" in an error's remedy."""

import re
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from webhook_inbox.configuration.approvers import Approvers
from webhook_inbox.configuration.destination import Destination
from webhook_inbox.configuration.table import ConfigTable, ExactlyOneOf, Header, Name, Text
from webhook_inbox.domain.manifest import TENANT_PATH, LaneSpec
from webhook_inbox.ledger.schema import EVENT_LIFE

_LANE: Final = LaneSpec()


def _address(value: str) -> str:
    mail = re.fullmatch(r"mailto:[^@\s]+@[^@\s]+\.[^@\s]+", value)
    web = value.startswith("https://") and urlsplit(value).hostname
    if not mail and not web:
        raise ValueError(f'"{value}" is not an address; write "mailto:NAME@DOMAIN" or "https://…"')
    return value


def _matching(pattern: str, remedy: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if re.fullmatch(pattern, value, re.ASCII) is None:
            raise ValueError(f'"{value}" {remedy}')
        return value

    return check


_HOST: Final = r"(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]*[a-z][a-z0-9-]*"
_CERTIFICATE: Final = r"arn:aws[a-z-]*:acm:[a-z0-9-]+:[0-9]{12}:certificate/[A-Za-z0-9-]+"
Address = Annotated[str, AfterValidator(_address)]
Host = Annotated[
    str,
    AfterValidator(
        _matching(_HOST, 'is not a host name in lower case; write name = "hooks.your-company.com"')
    ),
]
Certificate = Annotated[
    str,
    AfterValidator(
        _matching(
            _CERTIFICATE,
            'is not the ARN of a certificate; write "arn:aws:acm:REGION:ACCOUNT:certificate/ID"',
        )
    ),
]


def _retention(value: str) -> str:
    if re.fullmatch(r"[1-9][0-9]{0,5}d", value, re.ASCII) is None:
        raise ValueError(f'"{value}" is not a number of days; write it like "7d"')
    if int(value[:-1]) > EVENT_LIFE.days:
        raise ValueError(
            f'"{value}" is longer than an event is stored; give at most "{EVENT_LIFE.days}d",'
            " and keep older payloads with `webhookctl inbox export --to`"
        )
    return value


def _field_path(value: str) -> str:
    if re.fullmatch(r"[^\s.]+(\.[^\s.]+)*", value) is None:
        raise ValueError(f'"{value}" is not a path; write it like "customer.email"')
    return value


HostedZone = Annotated[
    str,
    AfterValidator(
        _matching(r"Z[A-Z0-9]{1,31}", 'is not the id of a hosted zone; write "Z…", without a path')
    ),
]


Retention = Annotated[str, AfterValidator(_retention)]
FieldPath = Annotated[str, AfterValidator(_field_path)]


class Throttle(ConfigTable):
    """The requests that one route of the API accepts; API Gateway answers 429 to others."""

    rate: float = Field(
        gt=0,
        le=10_000,
        allow_inf_nan=False,
        description="requests per second, up to the account's 10,000",
    )
    burst: int = Field(
        ge=1, le=5_000, description="requests at once before the rate applies, up to 5,000"
    )


class Tenant(ExactlyOneOf):
    """The location of the tenant's name in a verified delivery."""

    places = ("header", "json", "form", "query", "path")

    header: Header | None = Field(default=None, description="the name of the header")
    in_json: Text | None = Field(
        default=None, alias="json", description='the path in the JSON body, like "account.id"'
    )
    form: Text | None = Field(default=None, description="the form field")
    query: Text | None = Field(default=None, description="the query field")
    path: Literal[True] | None = Field(
        default=None, description="`true`: the path's last segment, /webhooks/SOURCE/TENANT"
    )

    @property
    def location(self) -> tuple[str, str]:
        """The kind and the name of the location."""
        if self.header is not None:
            return "header", self.header.lower()
        if self.path:
            return TENANT_PATH
        found = {"json": self.in_json, "form": self.form, "query": self.query}
        return next((kind, name) for kind, name in found.items() if name is not None)


class Source(ConfigTable):
    """One endpoint; the provider's module validates all other keys."""

    model_config = ConfigDict(extra="allow")

    provider: str = Field(description='the provider, like "stripe", or `auth` for your own callers')
    auth: Literal["api-key", "basic", "hmac", "jwt"] | None = Field(
        default=None,
        description="instead of `provider`, the authentication of your own callers: `jwt`,"
        " `api-key`, `basic`, or `hmac`",
    )
    secret: Name | None = Field(
        default=None, description="the secret's name; the source's name if absent"
    )
    types: list[Text] = Field(
        default=["*"], min_length=1, description="glob patterns of the event types to store"
    )
    volatile: list[Text] = Field(default=[], description="JSON fields that change between retries")
    identical_body: Literal["hold", "run", "drop"] = Field(
        default="hold",
        description="what happens to an event whose signed content arrived before under another id:"
        " `hold` (stored; its runs wait for an operator), `run`, or `drop`",
    )
    tenant: Tenant | None = Field(
        default=None,
        description="the location of the tenant's name, one of { header = … }, { json = … },"
        " { form = … }, { query = … }, { path = true }",
    )
    retention: Retention | None = Field(
        default=None,
        description="the days after which an event's payload is erased once its runs have ended,"
        ' "1d" to "35d"; the ledger keeps the event itself for 35 days',
    )
    personal: list[FieldPath] = Field(
        default=[],
        description='paths of JSON fields with personal data, like "customer.email", which'
        " operators see as `[personal]`",
    )
    throttle: Throttle | None = Field(
        default=None,
        description="its own limit, like { rate = 50, burst = 100 }; the top-level `throttle` if"
        " absent",
    )
    allow: list[Literal["overlap", "unhandled"]] = Field(
        default=[],
        description='the warnings that `check` omits: "unhandled" (a type that no handler takes),'
        ' "overlap" (patterns of two handlers that match the same type)',
    )


class Alarms(ConfigTable):
    """The recipients of alarms."""

    notify: list[Address] = Field(
        default=[],
        description="the addresses of alarms that can wait until working hours, `mailto:…` or"
        " `https://…`, and of all alarms if `page` is empty; `[]` states that none is to receive"
        " them, and omits the warning of `check`",
    )
    page: list[Address] = Field(
        default=[],
        description="the addresses of alarms that cannot wait, such as the on-call engineer's, and"
        " of all alarms if `notify` is empty",
    )

    @model_validator(mode="after")
    def _once(self) -> Self:
        """Rejects an address that is listed twice: a topic has one subscription of each."""
        for name, addresses in (("notify", self.notify), ("page", self.page)):
            for address in addresses:
                if addresses.count(address) > 1:
                    raise ValueError(f'"{address}" is listed twice in {name}; remove one')
        return self


class Domain(ConfigTable):
    """The inbox's own host name; the stage local has none."""

    name: Host = Field(description="the host name of the webhook URLs")
    certificate: Certificate = Field(
        description="the ARN of its certificate in AWS Certificate Manager, in the stack's region"
    )
    hosted_zone: HostedZone | None = Field(
        default=None,
        description="the id of the Route 53 zone that gets its record; without one, point a CNAME"
        " to the output `DomainTarget`",
    )


class LaneTable(ConfigTable):
    """`[lanes.NAME]`: how the processor of a lane works."""

    # https://docs.aws.amazon.com/lambda/latest/api/API_ScalingConfig.html
    workers: int = Field(
        default=_LANE.workers,
        ge=2,
        le=1000,
        description="how many invocations the lane has at the same time at the most, 2 to 1000,"
        " which is what SQS takes",
    )
    runs_per_invocation: int = Field(
        default=_LANE.runs_per_invocation,
        ge=1,
        le=10,
        description="how many runs one invocation makes at the same time, 1 to 10; more than 1 for"
        " a lane of one handler only",
    )


class Overrides(ConfigTable):
    """The changes of one stage to the file's tables, validated after they are merged."""

    sources: dict[str, Any] = Field(default={}, description="tables [stages.STAGE.sources.NAME]")
    destinations: dict[str, Any] = Field(
        default={}, description="tables [stages.STAGE.destinations.NAME]"
    )
    approvers: dict[str, Any] = Field(
        default={}, description="tables [stages.STAGE.approvers.NAME]"
    )
    lanes: dict[str, Any] = Field(default={}, description="tables [stages.STAGE.lanes.NAME]")
    alarms: dict[str, Any] = Field(default={}, description="the table [stages.STAGE.alarms]")
    domain: dict[str, Any] = Field(default={}, description="the table [stages.STAGE.domain]")
    throttle: dict[str, Any] = Field(default={}, description="the table [stages.STAGE.throttle]")
    handler_secrets: list[str] = Field(
        default=[], description="names of secrets that handlers read"
    )


class InboxDocument(ConfigTable):
    """The whole file."""

    sources: dict[Name, dict[str, Any]] = Field(default={}, description="tables [sources.NAME]")
    destinations: dict[Name, Destination] = Field(
        default={}, description="tables [destinations.NAME]"
    )
    approvers: dict[Name, Approvers] = Field(default={}, description="tables [approvers.NAME]")
    # A name that no handler declares as its lane is refused when the manifest is compiled.
    lanes: dict[str, LaneTable] = Field(default={}, description="tables [lanes.NAME]")
    alarms: Alarms = Field(default=Alarms(), description="the table [alarms]")
    domain: Domain | None = Field(
        default=None, description="{ name = …, certificate = …, hosted_zone = … }"
    )
    throttle: Throttle = Field(
        default=Throttle(rate=500, burst=1000), description="{ rate = …, burst = … }"
    )
    handler_secrets: list[Name] = Field(
        default=[], description="names of secrets that handlers read"
    )
    allow_imports: list[Text] = Field(
        default=[], description="modules that the processor's bundle contains all the same"
    )
    stages: dict[Name, Overrides] = Field(default={}, description="tables [stages.NAME.…]")
