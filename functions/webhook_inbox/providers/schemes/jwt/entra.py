"""Tokens that Microsoft Entra issues to Microsoft's own services.

Source: microsoftgraph/microsoft-graph-docs-contrib `change-notifications-with-resource-data.md`;
MicrosoftDocs/azure-docs `event-grid/secure-webhook-delivery.md`.
"""

from typing import Final

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import Fetch
from webhook_inbox.providers.schemes.jwt.jwt import Claims, Jwt
from webhook_inbox.providers.schemes.jwt.keys import published

# The keys of all tenants.
KEYS: Final = Fetch("https://login.microsoftonline.com/common/discovery/v2.0/keys")


def entra(
    header: str, *, audience: str, tenants: tuple[str, ...], publisher: str, prefix: str = ""
) -> Jwt:
    """Returns the scheme of an Entra token.

    Args:
        header: the lower-case name of its header.
        audience: the registered application that it is for.
        tenants: the accepted tenants; () accepts all.
        publisher: the application it was issued to.
        prefix: the text before it.
    """

    def check(claims: Claims, _: Delivery) -> None:
        tenant = claims["tid"]
        known = isinstance(tenant, str) and (not tenants or tenant in tenants)
        if not known or claims["iss"] not in _issuers(tenant):
            raise Rejected(Reason.INVALID_SIGNATURE, "the token is another tenant's")
        # Tokens of the first version name the application in `appid`, of the second in `azp`.
        if claims.get("appid", claims.get("azp")) != publisher:
            raise Rejected(Reason.INVALID_SIGNATURE, "the token was issued to another application")

    return Jwt(
        header=header,
        prefix=prefix,
        algorithms=("RS256",),
        keys=published,
        claims={"aud": audience},
        requires=("iss", "tid", "exp"),
        check=check,
    )


def _issuers(tenant: object) -> tuple[str, str]:
    return f"https://sts.windows.net/{tenant}/", f"https://login.microsoftonline.com/{tenant}/v2.0"
