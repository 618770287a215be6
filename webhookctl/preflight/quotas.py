"""Quotas of the account against the number in use and the number that the stack adds."""

from collections.abc import Mapping
from typing import Any, Final

from webhookctl.preflight.plan import Plan, Template
from webhookctl.preflight.reader import Quota, Reader
from webhookctl.preflight.result import Result

ROUTE: Final = "AWS::ApiGatewayV2::Route"
API: Final = "AWS::ApiGatewayV2::Api"
ALARM: Final = "AWS::CloudWatch::Alarm"
SECRET: Final = "AWS::SecretsManager::Secret"  # noqa: S105 - a type of resource
# https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html; fixed
APIS: Final = Quota(600, documented=True)
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_limits.html
NO_LIMIT: Final = "none (documented)"
# https://docs.aws.amazon.com/secretsmanager/latest/userguide/reference_limits.html
SECRETS: Final = Quota(500_000, documented=True)
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/cloudwatch_limits_cwl.html; fixed
POLICIES: Final = Quota(10, documented=True)
# API Gateway's access log is delivered by this service, which adds its own policy where none
# allows it.
DELIVERY: Final = "delivery.logs.amazonaws.com"
CONSOLE: Final = "Service Quotas console > AWS services > {} > {} > Request increase"


def routes(plan: Plan, quota: Quota) -> Result:
    """Returns the result for the API's routes."""
    count = plan.template.count(ROUTE)
    increase = CONSOLE.format("Amazon API Gateway", "Routes per API")
    return Result.judged(
        "routes of the API",
        f"{count}",
        str(quota),
        failure="" if count <= quota.value else increase,
    )


def apis(plan: Plan, deployed: Template, in_use: int) -> Result:
    """Returns the result for the region's HTTP and WebSocket APIs."""
    added = plan.template.count(API) - deployed.count(API)
    fits = added <= 0 or in_use + added <= APIS.value
    return Result.judged(
        "APIs of the region",
        f"{in_use:,} in use + {added}",
        str(APIS),
        failure="" if fits else "delete unused APIs, or use another region; the quota is fixed",
    )


def alarms(plan: Plan) -> Result:
    """Returns the result for CloudWatch alarms, which have no quota."""
    return Result.judged("alarms", f"{plan.template.count(ALARM)} in the stack", NO_LIMIT)


def secrets(plan: Plan) -> Result:
    """Returns the result for secrets; those in use are not counted, the quota is far away."""
    count = plan.template.count(SECRET)
    figure = f"{count} in the stack and 2 documents, others not counted"
    return Result.judged("secrets of the region", figure, str(SECRETS))


def log_policies(documents: list[str]) -> Result:
    """Returns a warning where API Gateway's log delivery might lack a resource policy.

    For a new delivery AWS puts the policy on the log group; in accounts with older deliveries it
    extends the region's, of which there are ten.
    """
    delivers = any(DELIVERY in document for document in documents)
    full = len(documents) >= POLICIES.value and not delivers
    return Result.judged(
        "log resource policies",
        f"{len(documents)} in use, {'one' if delivers else 'none'} for log delivery",
        str(POLICIES),
        warning="delete one (`aws logs describe-resource-policies`, `aws logs"
        " delete-resource-policy --policy-name NAME`) if the API's stage fails to deploy"
        if full
        else "",
    )


def code_storage(plan: Plan, settings: Mapping[str, Any]) -> Result:
    """Returns the result for Lambda's code storage; each deployment of new code adds to it."""
    limit, used = settings["AccountLimit"]["TotalCodeSize"], settings["AccountUsage"]
    after = used["TotalCodeSize"] + plan.code
    return Result.judged(
        "lambda code storage",
        f"{_gigabytes(used['TotalCodeSize'])} in use + at most {_gigabytes(plan.code)}",
        _gigabytes(limit),
        failure=""
        if after <= limit
        else CONSOLE.format("AWS Lambda", "Function and layer storage"),
    )


def _gigabytes(size: int) -> str:
    return f"{size / 2**30:.2f} GB"


def count_apis(reader: Reader) -> int:
    """Returns the number of HTTP and WebSocket APIs of the region."""
    pages = reader.pages("apigatewayv2", "get_apis", "NextToken", MaxResults="100")
    return sum(len(page["Items"]) for page in pages)


def read_policies(reader: Reader) -> list[str]:
    """Returns the documents of the region's log resource policies."""
    pages = reader.pages("logs", "describe_resource_policies", "nextToken")
    return [each["policyDocument"] for page in pages for each in page["resourcePolicies"]]


def routes_quota(reader: Reader) -> Quota:
    """Returns the quota of routes of an API."""
    return reader.quota("apigateway", "L-65B5C802", about="routes", default=300)
