"""Reads inbox.toml: at synth, in tests and in the CLI; never in a Lambda.

Any mistake in the file is a ConfigurationError of one line: file, table, key, remedy.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from webhook_inbox import providers
from webhook_inbox.configuration.approvers import check_groups
from webhook_inbox.configuration.caller_source import ApiKeySource, BasicSource, JwtSource
from webhook_inbox.configuration.document import Alarms, Domain, InboxDocument, Source, Throttle
from webhook_inbox.configuration.error_messages import line
from webhook_inbox.configuration.hmac_source import DeclaredSource
from webhook_inbox.configuration.table import ConfigTable
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import (
    LOCAL,
    SMOKE,
    ApproversSpec,
    DestinationSpec,
    LaneSpec,
    SourceSpec,
)

Model = TypeVar("Model", bound=ConfigTable)
_STAGE: Final = re.compile(r"[a-z][a-z0-9-]{0,19}", re.ASCII)
# The tables of sources that declare their own scheme, by provider.
DECLARED: Final[Mapping[str, type[Source]]] = {
    "api-key": ApiKeySource,
    "basic": BasicSource,
    "hmac": DeclaredSource,
    "jwt": JwtSource,
}

# Those that only callers of your own use; for an `hmac` source `auth` says so.
CALLERS: Final = frozenset({"api-key", "basic", "jwt"})


@dataclass(frozen=True, slots=True)
class AlarmSpec:
    """The recipients of alarms, as URLs; `page` is the on-call engineer.

    `stated` is whether the file has either list, even an empty one.
    """

    notify: tuple[str, ...] = ()
    page: tuple[str, ...] = ()
    stated: bool = False


@dataclass(frozen=True, slots=True)
class DomainSpec:
    """The custom domain: its host name, its certificate's ARN, its Route 53 zone's id or ""."""

    name: str
    certificate: str
    hosted_zone: str = ""


@dataclass(frozen=True, slots=True)
class ThrottleSpec:
    """The limit of one route: requests per second, and how many at once before it applies."""

    rate: float
    burst: int


@dataclass(frozen=True, slots=True)
class Configuration:
    """The configuration of one stage.

    Attributes:
        sources: the sources by name.
        destinations: the destinations by name.
        secrets: the names of all secrets.
        alarms: the recipients of alarms.
        domain: the custom domain, if any.
        throttle: the limit of completions, and of each source without its own.
        throttles: the limit of each source.
        allowed: the `allow` list of each source and destination, by table (`sources.NAME`).
        allow_imports: modules that handlers may import although no requirement is known to
            contain them.
        stages: the names of the stages with tables of their own.
        approvers: the groups of people who approve effects, by name.
        lanes: the tables of lanes, by name.
    """

    sources: Mapping[str, SourceSpec]
    destinations: Mapping[str, DestinationSpec]
    secrets: tuple[str, ...]
    alarms: AlarmSpec
    throttle: ThrottleSpec = ThrottleSpec(rate=500.0, burst=1000)
    throttles: Mapping[str, ThrottleSpec] = field(default_factory=dict)
    allowed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    allow_imports: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    domain: DomainSpec | None = None
    approvers: Mapping[str, ApproversSpec] = field(default_factory=dict)
    lanes: Mapping[str, LaneSpec] = field(default_factory=dict)


def load(path: Path, *, stage: str) -> Configuration:
    """Returns the configuration of a stage: the file, and over it the stage's own tables.

    Raises:
        ConfigurationError: the file is missing or invalid, in this stage or in another one; or
            the stage cannot be part of the names of queues and secrets.
    """
    if _STAGE.fullmatch(stage) is None:
        raise ConfigurationError(f"stage {stage!r}: use 1-20 of a-z 0-9 -, a letter first")
    document = _read(path)
    try:
        # The stages first, since a stage may complete the tables of the file.
        stages = document.get("stages", {})
        _validated(InboxDocument, {"stages": stages})
        shared = {key: value for key, value in document.items() if key != "stages"}
        configuration = _stage(shared, stage, stages.get(stage, {}))
        for other, overrides in stages.items():
            _stage(shared, other, overrides)
    except ConfigurationError as error:
        raise ConfigurationError(f"{shown(path)} {error}") from error
    return replace(configuration, stages=tuple(stages))


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(
            f"{shown(path)}: {error.strerror}; put the configuration there"
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{shown(path)}: not TOML: {error}; correct it") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{shown(path)}: not UTF-8 at byte {error.start}; save it as UTF-8"
        ) from error


def shown(path: Path) -> str:
    """Returns a path as the errors print it, relative to the working directory or one above."""
    whole = path.absolute()
    return str(whole.relative_to(Path.cwd()) if whole.is_relative_to(Path.cwd()) else path)


def _stage(shared: dict[str, Any], stage: str, overrides: dict[str, Any]) -> Configuration:
    try:
        configuration = _configuration(_merged(shared, overrides), local=stage == LOCAL)
    except ConfigurationError as error:
        if str(error) == _fault(shared):
            raise
        raise ConfigurationError(f"(with [stages.{stage}]) {error}") from error
    _require_systems(stage, configuration)
    return configuration


def _require_systems(stage: str, configuration: Configuration) -> None:
    """Rejects the sink in place of a system; only the local stage has one."""
    for name, spec in configuration.destinations.items():
        if spec.in_sink and stage != LOCAL:
            raise ConfigurationError(
                f'destinations.{name}.base_url: "{spec.base_url}" is the sink of `webhookctl dev`,'
                f" which the stage {stage} does not have; write the system's URL, and the sink"
                f" under [stages.{LOCAL}.destinations.{name}]"
            )


def _fault(document: dict[str, Any]) -> str:
    try:
        _configuration(document)
    except ConfigurationError as error:
        return str(error)
    return ""


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merges tables key by key; any other value, including a list, is replaced."""
    both = {
        key: _merged(base[key], value)
        for key, value in over.items()
        if isinstance(value, dict) and isinstance(base.get(key), dict)
    }
    return {**base, **over, **both}


def _configuration(document: dict[str, Any], *, local: bool = False) -> Configuration:
    inbox = _validated(InboxDocument, document)
    domain = None if local or inbox.domain is None else _domain(inbox.domain)
    tables = {name: _source_table(name, table, domain) for name, table in inbox.sources.items()}
    sources = {name: _source(name, *table) for name, table in tables.items()}
    throttles = {name: source.throttle or inbox.throttle for name, (source, _) in tables.items()}
    verifying = {spec.secret: spec.name for spec in sources.values()}
    calling = {each for table in inbox.destinations.values() for each in table.secrets}
    for name, table in inbox.destinations.items():
        _check_apart(f"[destinations.{name}]", name, table.secrets, verifying)
    _check_apart("handler_secrets:", "handlers", inbox.handler_secrets, verifying)
    destinations = {name: table.spec(name) for name, table in inbox.destinations.items()}
    approvers = {name: table.spec(name) for name, table in inbox.approvers.items()}
    check_groups(approvers, destinations)
    return Configuration(
        sources=sources,
        destinations=destinations,
        approvers=approvers,
        lanes={name: LaneSpec(**table.model_dump()) for name, table in inbox.lanes.items()},
        secrets=tuple(sorted({*verifying, *calling, *inbox.handler_secrets})),
        alarms=_alarms(inbox.alarms),
        domain=domain,
        throttle=_throttle(inbox.throttle),
        throttles={name: _throttle(table) for name, table in throttles.items()},
        allow_imports=tuple(inbox.allow_imports),
        allowed={
            **{f"sources.{name}": source.allow for name, (source, _) in tables.items()},
            **{f"destinations.{name}": table.allow for name, table in inbox.destinations.items()},
        },
    )


def _alarms(table: Alarms) -> AlarmSpec:
    stated = bool(table.model_fields_set)
    return AlarmSpec(tuple(table.notify), tuple(table.page), stated=stated)


def _domain(table: Domain) -> DomainSpec:
    return DomainSpec(table.name, table.certificate, table.hosted_zone or "")


def _throttle(table: Throttle) -> ThrottleSpec:
    return ThrottleSpec(table.rate, table.burst)


def _source_table(
    name: str, table: dict[str, Any], domain: DomainSpec | None
) -> tuple[Source, dict[str, Any]]:
    """Returns a source's validated table, and the table with its other keys.

    With a domain, a provider that may sign the URL gets the domain's, unless the table has one, or
    tenants in the path: such a URL is that of the request.
    """
    if name == SMOKE:
        raise ConfigurationError(
            f"[sources.{name}]: this name is the inbox's own, for `webhookctl smoke`; rename the"
            " source"
        )
    table = _identified(name, table)
    provider = str(table.get("provider"))
    in_path = table.get("tenant") == {"path": True}
    if in_path and "url" in table:
        raise ConfigurationError(
            f"[sources.{name}] tenant: url fixes the path that the provider signs; leave it out, or"
            " read the tenant from another location"
        )
    if domain is not None and not in_path and "url" in providers.settings_of(provider):
        table = {"url": f"https://{domain.name}/webhooks/{name}", **table}
    model = DECLARED.get(provider, Source)
    return _validated(model, table, "sources", name), table


def _source(name: str, source: Source, table: dict[str, Any]) -> SourceSpec:
    spec = SourceSpec(
        name=name,
        provider=source.provider,
        secret=source.secret or name,
        types=tuple(source.types),
        volatile=tuple(source.volatile),
        identical_body=source.identical_body,
        callers=source.auth is not None or source.provider in CALLERS,
        tenant=source.tenant.location if source.tenant else (),
        retention=86400.0 * int(source.retention[:-1]) if source.retention else 0.0,
        personal=tuple(source.personal),
        settings={key: value for key, value in table.items() if key not in Source.model_fields},
    )
    provider = providers.load(spec)  # validates the settings, as the Lambda will
    if "identical_body" in table and provider.guard is None:
        raise ConfigurationError(
            f"[sources.{name}] identical_body: the provider signs an id or a time, so no delivery"
            " has the content of another; remove the key"
        )
    return spec


def _identified(name: str, table: dict[str, Any]) -> dict[str, Any]:
    """Returns a source's table with `auth` as its provider."""
    auth = table.get("auth")
    if auth is None:
        return table
    if table.get("provider", auth) != auth:
        raise ConfigurationError(
            f'[sources.{name}] auth: "{auth}" replaces provider, but provider is'
            f' "{table["provider"]}"; remove either'
        )
    return {**table, "provider": str(auth)}


def _check_apart(
    place: str, user: str, secrets: Iterable[str], verifying: Mapping[str, str]
) -> None:
    """Rejects a secret that verifies deliveries: the processor cannot read it."""
    for secret in secrets:
        if secret in verifying:
            raise ConfigurationError(
                f'{place} secret "{secret}" is what [sources.{verifying[secret]}]'
                f' verifies with; give it a name of its own, like "{user}-api"'
            )


def _validated(model: type[Model], data: dict[str, Any], *table: str) -> Model:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise ConfigurationError(line(model, error, table)) from error
