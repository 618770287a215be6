"""Quotas of the account against the number in use and the number that the stack adds."""

from typing import Final

from webhook_inbox.adapters.aws.account_facts import AccountFacts, LambdaLimits, Quota
from webhook_inbox.client.health.preflight.plan import DeploymentPlan, TemplateResources
from webhook_inbox.client.health.result import CheckResult

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


def routes(plan: DeploymentPlan, quota: Quota) -> CheckResult:
    """Returns the result for the API's routes."""
    count = plan.template.count(ROUTE)
    increase = CONSOLE.format("Amazon API Gateway", "Routes per API")
    return CheckResult.judged(
        "routes of the API",
        f"{count}",
        str(quota),
        failure="" if count <= quota.value else increase,
    )


def apis(plan: DeploymentPlan, deployed: TemplateResources, in_use: int) -> CheckResult:
    """Returns the result for the region's HTTP and WebSocket APIs."""
    added = plan.template.count(API) - deployed.count(API)
    fits = added <= 0 or in_use + added <= APIS.value
    return CheckResult.judged(
        "APIs of the region",
        f"{in_use:,} in use + {added}",
        str(APIS),
        failure="" if fits else "delete unused APIs, or use another region; the quota is fixed",
    )


def alarms(plan: DeploymentPlan) -> CheckResult:
    """Returns the result for CloudWatch alarms, which have no quota."""
    return CheckResult.judged("alarms", f"{plan.template.count(ALARM)} in the stack", NO_LIMIT)


def secrets(plan: DeploymentPlan) -> CheckResult:
    """Returns the result for secrets; those in use are not counted, the quota is far away."""
    count = plan.template.count(SECRET)
    figure = f"{count} in the stack and 2 documents, others not counted"
    return CheckResult.judged("secrets of the region", figure, str(SECRETS))


def log_policies(documents: list[str]) -> CheckResult:
    """Returns a warning where API Gateway's log delivery might lack a resource policy.

    For a new delivery AWS puts the policy on the log group; in accounts with older deliveries it
    extends the region's, of which there are ten.
    """
    delivers = any(DELIVERY in document for document in documents)
    full = len(documents) >= POLICIES.value and not delivers
    return CheckResult.judged(
        "log resource policies",
        f"{len(documents)} in use, {'one' if delivers else 'none'} for log delivery",
        str(POLICIES),
        warning="delete one (`aws logs describe-resource-policies`, `aws logs"
        " delete-resource-policy --policy-name NAME`) if the API's stage fails to deploy"
        if full
        else "",
    )


def code_storage(plan: DeploymentPlan, limits: LambdaLimits) -> CheckResult:
    """Returns the result for Lambda's code storage; each deployment of new code adds to it."""
    after = limits.code_in_use + plan.code
    return CheckResult.judged(
        "lambda code storage",
        f"{_gigabytes(limits.code_in_use)} in use + at most {_gigabytes(plan.code)}",
        _gigabytes(limits.code),
        failure=""
        if after <= limits.code
        else CONSOLE.format("AWS Lambda", "Function and layer storage"),
    )


def _gigabytes(size: int) -> str:
    return f"{size / 2**30:.2f} GB"


def routes_quota(facts: AccountFacts) -> Quota:
    """Returns the quota of routes of an API."""
    return facts.quota("apigateway", "L-65B5C802", about="routes", default=300)
