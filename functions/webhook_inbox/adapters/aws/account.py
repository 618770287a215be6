"""The AWS account and region of a command, resolved as the pinned CDK CLI resolves them.

aws-cdk 2.1148.1, `AwsCliCompatible`: the profile is `--profile`, AWS_PROFILE, AWS_DEFAULT_PROFILE
or "default"; keys in the environment precede a profile that no option names; the region is
`--region`, AWS_REGION, AWS_DEFAULT_REGION, or the one of the profile or of the profile "default".
botocore alone prefers AWS_DEFAULT_PROFILE, ignores AWS_REGION, and takes no region of another
profile.

There is one difference on purpose: without a region the CDK CLI takes that of the EC2 instance, or
us-east-1; a command fails, so that nothing happens in a region that no setting names.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, NamedTuple

import botocore.session
from botocore.config import Config

from webhook_inbox.adapters.aws.errors import once
from webhook_inbox.domain.errors import Unavailable

# Service name to a low-level client.
Clients = Callable[[str], Any]

# Replay runs for up to five minutes, and a retried invocation would be a second replay.
_INVOKE: Final = Config(read_timeout=310, retries={"total_max_attempts": 1, "mode": "standard"})
_CALL: Final = Config(
    connect_timeout=5, read_timeout=20, retries={"total_max_attempts": 3, "mode": "standard"}
)
_PROFILE_VARIABLES: Final = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE")
_REGION_VARIABLES: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
_KEY_VARIABLES: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
DEFAULT: Final = "default"
# The region of every session on this machine.
LOOPBACK_REGION: Final = "us-east-1"
# Origins of credentials without a profile.
KEYS: Final = "keys of AWS_ACCESS_KEY_ID"
NO_PROFILE: Final = "no profile set"


class SharedClients:
    """Makes each client once: a session of botocore cannot make clients in several threads."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._made: dict[str, Any] = {}
        self._lock = Lock()

    def __call__(self, service: str) -> Any:
        """Returns the client of a service."""
        with self._lock:
            if service not in self._made:
                self._made[service] = self._clients(service)
            return self._made[service]

    def close(self) -> None:
        """Closes the connections of all clients."""
        with self._lock:
            for client in self._made.values():
                client.close()
            self._made.clear()


class Setting(NamedTuple):
    """A value, and the option, variable or file that has it."""

    value: str | None
    origin: str


@dataclass(frozen=True, slots=True)
class Account:
    """The profile and the region that a command uses, and where each comes from."""

    profile: Setting
    region: Setting
    session: Any

    @property
    def clients(self) -> Clients:
        """Makes the clients of the services."""
        return self._client

    def _client(self, service: str) -> Any:
        config = _INVOKE if service == "lambda" else _CALL
        return self.session.create_client(service, region_name=self.region.value, config=config)


def resolve(
    profile: str | None, region: str | None, environment: Mapping[str, str] = os.environ
) -> Account:
    """Returns the account of the options `--profile` and `--region`; opens no connection."""
    chosen = _profile(profile, environment)
    # For a profile that it is given, botocore ignores keys in the environment.
    session = botocore.session.Session(profile=chosen.value)
    return Account(chosen, _region(region, environment, chosen, session), session)


def _profile(option: str | None, environment: Mapping[str, str]) -> Setting:
    if option:
        return Setting(option, "--profile")
    if all(environment.get(name) for name in _KEY_VARIABLES):
        return Setting(None, KEYS)
    name = next((name for name in _PROFILE_VARIABLES if environment.get(name)), None)
    return Setting(environment[name], name) if name else Setting(None, NO_PROFILE)


def _region(
    option: str | None, environment: Mapping[str, str], profile: Setting, session: Any
) -> Setting:
    if option:
        return Setting(option, "--region")
    for name in _REGION_VARIABLES:
        if environment.get(name):
            return Setting(environment[name], name)
    profiles = session.full_config.get("profiles", {})
    # With keys in the environment the profile still names the region.
    named = next((environment[n] for n in _PROFILE_VARIABLES if environment.get(n)), DEFAULT)
    for name in dict.fromkeys((profile.value or named, DEFAULT)):
        if profiles.get(name, {}).get("region"):
            return Setting(profiles[name]["region"], f"profile {name} of the config file")
    return Setting(None, "no region set")


def caller_arn(clients: Clients) -> str:
    """Returns the caller's ARN as STS knows it; raises Unavailable."""
    client = clients("sts")
    return str(once("sts", "GetCallerIdentity", client.get_caller_identity)["Arn"])


def caller_account(clients: Clients) -> tuple[str, str]:
    """Returns the caller's account, "" where STS does not answer, and the region."""
    client = clients("sts")
    region = str(client.meta.region_name)
    try:
        return str(once("sts", "GetCallerIdentity", client.get_caller_identity)["Account"]), region
    except Unavailable:
        # It only adds to the output: the operation may not need STS.
        return "", region


def loopback_client(service: str, *, endpoint: str, credentials: Mapping[str, str]) -> Any:
    """Returns a low-level client of a session's ministack."""
    # Ignores the developer's profile, configuration files and AWS_* variables.
    bare = botocore.session.Session(
        session_vars={
            "profile": (None, None, None, None),
            "config_file": (None, None, os.devnull, None),
            "credentials_file": (None, None, os.devnull, None),
        }
    )
    # Path-style buckets need no name resolution, and loopback no proxy. A second invocation of
    # replay would be a second replay.
    config = Config(
        s3={"addressing_style": "path"},
        proxies={},
        retries={"total_max_attempts": 1 if service == "lambda" else 2, "mode": "standard"},
        max_pool_connections=32,
        read_timeout=310,
    )
    return bare.create_client(
        service,
        region_name=LOOPBACK_REGION,
        endpoint_url=endpoint,
        aws_access_key_id=credentials["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=credentials["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=credentials["AWS_SESSION_TOKEN"],
        config=config,
    )
