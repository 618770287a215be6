"""Every provider there is, by the name that inbox.toml gives it.

A provider's module has a `PROVIDER`; or, where its sources take keys of their own, names them in
`SETTINGS` and has `provider(settings) -> Recipe`, with an `EXAMPLE` of the keys that are required.
Only the modules of configured providers are imported.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Final

from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.provider import Provider


def registry(entries: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """Returns provider names to module names; raises ConfigurationError for a name used twice."""
    modules: dict[str, str] = {}
    for name, module in entries:
        if name in modules:
            raise ConfigurationError(f'provider "{name}" is registered twice; remove one')
        modules[name] = module
    return modules


MODULES: Final = registry(
    (
        ("adyen", "adyen"),
        ("adyen-platform", "adyen_platform"),
        ("airtable", "airtable"),
        ("asana", "asana"),
        ("api-key", "generic_api_key"),
        ("aws-sns", "aws_sns"),
        ("azure-event-grid", "azure_event_grid"),
        ("basic", "generic_basic"),
        ("bitbucket", "bitbucket"),
        ("box", "box"),
        ("braintree", "braintree"),
        ("calendly", "calendly"),
        ("circleci", "circleci"),
        ("clerk", "clerk"),
        ("cloudevents", "cloudevents"),
        ("coinbase-commerce", "coinbase_commerce"),
        ("contentful", "contentful"),
        ("cycles", "cycles"),
        ("discord", "discord"),
        ("docker-hub", "docker_hub"),
        ("docusign", "docusign"),
        ("dropbox", "dropbox"),
        ("easypost", "easypost"),
        ("finch", "finch"),
        ("github", "github"),
        ("gitlab", "gitlab"),
        ("gocardless", "gocardless"),
        ("google-pubsub", "google_pubsub"),
        ("hmac", "generic_hmac"),
        ("hubspot", "hubspot"),
        ("intercom", "intercom"),
        ("jira", "jira"),
        ("jwt", "generic_jwt"),
        ("lemonsqueezy", "lemonsqueezy"),
        ("line", "line"),
        ("linear", "linear"),
        ("mailgun", "mailgun"),
        ("messagebird", "messagebird"),
        ("meta", "meta"),
        ("microsoft-graph", "microsoft_graph"),
        ("modern-treasury", "modern_treasury"),
        ("monday", "monday"),
        ("mux", "mux"),
        ("netlify", "netlify"),
        ("notion", "notion"),
        ("onfido", "onfido"),
        ("openai", "openai"),
        ("paddle", "paddle"),
        ("pagerduty", "pagerduty"),
        ("paypal", "paypal"),
        ("plaid", "plaid"),
        ("plivo", "plivo"),
        ("polar", "polar"),
        ("pusher", "pusher"),
        ("razorpay", "razorpay"),
        ("resend", "resend"),
        ("sanity", "sanity"),
        ("sendgrid", "sendgrid"),
        ("sentry", "sentry"),
        ("shopify", "shopify"),
        ("slack", "slack"),
        ("square", "square"),
        ("standard-webhooks", "standard_webhooks"),
        ("stripe", "stripe"),
        ("svix", "svix"),
        ("telegram", "telegram"),
        ("terraform-cloud", "terraform_cloud"),
        ("trello", "trello"),
        ("twilio", "twilio"),
        ("twitch", "twitch"),
        ("twitter", "twitter"),
        ("typeform", "typeform"),
        ("vercel", "vercel"),
        ("vonage", "vonage"),
        ("wise", "wise"),
        ("woocommerce", "woocommerce"),
        ("workos", "workos"),
        ("xero", "xero"),
        ("zendesk", "zendesk"),
        ("zoom", "zoom"),
    )
)
# Schemes that a source's own tables declare: nobody in particular sends by them.
DECLARED: Final = frozenset({"api-key", "basic", "hmac", "jwt"})


def load(spec: SourceSpec) -> Provider:
    """Returns the provider of a source's provider, with the source's own volatile fields.

    Raises:
        ConfigurationError: there is no such provider, or it cannot use these settings.
    """
    try:
        provider = _provider(spec)
    except ConfigurationError as error:
        raise ConfigurationError(f"[sources.{spec.name}] {error}") from error
    return replace(provider, volatile=tuple(dict.fromkeys((*provider.volatile, *spec.volatile))))


def _provider(spec: SourceSpec) -> Provider:
    if spec.provider not in MODULES:
        choices = ", ".join(sorted(MODULES))
        raise ConfigurationError(
            f'provider: "{spec.provider}" is not known; choose one of {choices}'
        )
    module = import_module(f"{__name__}.{MODULES[spec.provider]}")
    known: frozenset[str] = getattr(module, "SETTINGS", frozenset())
    for key in sorted(spec.settings.keys() - known):
        choices = ", ".join(sorted(known | {"provider", "secret", "types", "volatile"}))
        raise ConfigurationError(f"{key}: unknown key; the keys of this source are {choices}")
    provider: Provider = module.provider(spec.settings) if known else module.PROVIDER
    return provider
