"""The inbox's own host name, which survives the API."""

from aws_cdk import Stack, Token
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_route53 as route53
from constructs import Construct
from webhook_inbox_cdk.api import Api

from webhook_inbox.configuration.inbox_toml import DomainSpec
from webhook_inbox.domain.errors import ConfigurationError


class Domain(Construct):
    """A custom domain of the API, TLS 1.2, with an alias record where the hosted zone is known.

    The API's own URL stays enabled: providers may have it registered.

    Attributes:
        url: the base URL, without a trailing slash.
        target: the host name that a CNAME record for the domain points to.

    Raises:
        ConfigurationError: the certificate is in another region than the stack.
    """

    def __init__(self, scope: Construct, construct_id: str, *, spec: DomainSpec, api: Api) -> None:
        super().__init__(scope, construct_id)
        _check_region(spec, Stack.of(self).region)
        certificate = acm.Certificate.from_certificate_arn(self, "Certificate", spec.certificate)
        name = apigatewayv2.DomainName(
            self,
            "Name",
            domain_name=spec.name,
            certificate=certificate,
            security_policy=apigatewayv2.SecurityPolicy.TLS_1_2,
        )
        apigatewayv2.ApiMapping(self, "Mapping", api=api.api, domain_name=name, stage=api.stage)
        self.url = f"https://{spec.name}"
        self.target = name.regional_domain_name
        if spec.hosted_zone:
            route53.CfnRecordSet(
                self,
                "Record",
                hosted_zone_id=spec.hosted_zone,
                name=spec.name,
                type="A",
                alias_target=route53.CfnRecordSet.AliasTargetProperty(
                    dns_name=name.regional_domain_name, hosted_zone_id=name.regional_hosted_zone_id
                ),
            )


def _check_region(spec: DomainSpec, region: str) -> None:
    place = spec.certificate.split(":")[3]
    if not Token.is_unresolved(region) and place != region:
        raise ConfigurationError(
            f"inbox.toml [domain] certificate: it is in {place}, and the stack in {region}; request"
            f" one for {spec.name} in {region}"
        )
