"""The VPC of the processors: read from the context, and what it must offer."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from aws_cdk import Aws, Stack
from aws_cdk import aws_ec2 as ec2

from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.similar_names import did_you_mean

LISTS: Final = ("availability_zones", "private_subnet_ids")
# Route tables, which get gateway endpoints for the services that have some, free of charge.
ENDPOINTS: Final = "gateway_endpoints"
GATEWAYS: Final = ("dynamodb", "s3")
KEYS: Final = ("id", *LISTS, ENDPOINTS)


def vpc_from(stack: Stack, given: Mapping[str, Any] | None) -> ec2.IVpc | None:
    """Returns the VPC of the context value `vpc`, and creates the endpoints that it asks for.

    Raises:
        ConfigurationError: a key is missing, unknown or of another type.
    """
    if given is None:
        return None
    _check(given)
    for service in GATEWAYS if given.get(ENDPOINTS) else ():
        ec2.CfnVPCEndpoint(
            stack,
            f"Endpoint-{service}",
            vpc_id=given["id"],
            service_name=f"com.amazonaws.{Aws.REGION}.{service}",
            route_table_ids=given[ENDPOINTS],
        )
    return ec2.Vpc.from_vpc_attributes(
        stack, "Vpc", vpc_id=given["id"], **{key: given[key] for key in LISTS}
    )


def needs(manifest: Manifest) -> str:
    """Returns what the processors reach from their subnets, and by which ways."""
    hosts = {urlsplit(spec.base_url).hostname or "" for spec in manifest.destinations.values()}
    named = f" ({', '.join(sorted(hosts - {''}))})" if hosts - {""} else ""
    return (
        "the processors run in a VPC. Their subnets need routes to DynamoDB, S3, SQS, Secrets"
        " Manager and the services of your `rights`: a NAT gateway, or gateway endpoints for"
        f" DynamoDB and S3 (free of charge; `{ENDPOINTS}` in the context value vpc creates them)"
        f" and interface endpoints for the others. Destinations{named} on the internet need a NAT"
        " gateway. Logs and metrics need no route."
    )


def _check(given: Mapping[str, Any]) -> None:
    for key in sorted(given.keys() - set(KEYS)):
        remedy = did_you_mean(key, KEYS) or f"the keys are {', '.join(KEYS)}"
        raise ConfigurationError(f"context vpc: {key}: unknown key; {remedy}")
    if not isinstance(given.get("id"), str) or not given["id"]:
        raise ConfigurationError('context vpc: id: missing, or no text; write "id": "vpc-…"')
    for key in (*LISTS, *(key for key in (ENDPOINTS,) if key in given)):
        _check_list(key, given.get(key))
    zones, subnets = (len(given[key]) for key in LISTS)
    if subnets % zones:
        raise ConfigurationError(
            f"context vpc: {subnets} private_subnet_ids for {zones} availability_zones; give as"
            " many for each zone, in the zones' order"
        )


def _check_list(key: str, value: Any) -> None:
    texts = isinstance(value, list) and all(isinstance(each, str) and each for each in value)
    if not texts or not value:
        raise ConfigurationError(
            f'context vpc: {key}: missing, or no list of texts; write "{key}": ["…", "…"]'
        )
