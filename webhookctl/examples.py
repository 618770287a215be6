"""An example of every command, for its help."""

from collections.abc import Mapping
from typing import Final

# By the command's words; each line is a whole command.
EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "alarms list": ("webhookctl --stack WebhookInbox-prod alarms list",),
    "alarms test": ("webhookctl --stack WebhookInbox-prod alarms test --yes",),
    "audit": ("webhookctl --stack WebhookInbox-prod audit --since 7d",),
    "check": ("webhookctl check --stage prod",),
    "complete": (
        "webhookctl --local complete evt_1 --result 7",
        'webhookctl --local complete evt_1 --error "the disk was full" --retry',
    ),
    "completion": (
        "webhookctl completion bash > ~/.local/share/bash-completion/completions/webhookctl",
        "webhookctl completion fish > ~/.config/fish/completions/webhookctl.fish",
    ),
    "conformance": ("webhookctl conformance vectors/acme.json",),
    "console": (
        "webhookctl --local console",
        "webhookctl --stack WebhookInbox-prod console --write",
    ),
    "cost": (
        "webhookctl cost --events-per-month 1000000 --body 3KB --handlers 2 --effects 1",
        "webhookctl cost --events-per-month 260000000 --batch 10 --json",
    ),
    "destinations list": ("webhookctl --stack WebhookInbox-prod destinations list",),
    "destinations open": ('webhookctl --local destinations open crm --reason "CRM maintenance"',),
    "destinations close": ("webhookctl --local destinations close crm",),
    "dev": ("webhookctl dev --port 8787",),
    "dlq list": ("webhookctl --stack WebhookInbox-prod dlq list",),
    "doctor": (
        "webhookctl --stack WebhookInbox-prod doctor",
        "webhookctl --stack WebhookInbox-prod doctor --drift",
    ),
    "erase": (
        'webhookctl --local erase evt_1 --reason "request 17" --yes',
        'webhookctl --local erase --tenant acct_7 --reason "request 18"',
    ),
    "handlers list": ("webhookctl --local handlers list",),
    "handlers pause": ('webhookctl --local handlers pause stripe.fulfil --reason "CRM is down"',),
    "handlers resume": ("webhookctl --local handlers resume stripe.fulfil",),
    "hold approve": (
        'webhookctl --local hold approve evt_1 --reason "the customer agreed"',
        "webhookctl --local hold approve --subject identical-body --reason genuine --yes",
    ),
    "hold deny": ('webhookctl --local hold deny evt_1 --reason "a duplicate"',),
    "hold list": ("webhookctl --local hold list --subject identical-body",),
    "inbox errors": ("webhookctl --stack WebhookInbox-prod inbox errors --since 2h",),
    "inbox export": (
        "webhookctl --local inbox export evt_1",
        "webhookctl --local inbox export --to events --since 7d",
    ),
    "inbox ignored": ("webhookctl --local inbox ignored --since 7d",),
    "inbox inspect": ("webhookctl --local inbox inspect evt_1 --body",),
    "inbox list": (
        "webhookctl --stack WebhookInbox-prod inbox list --status dead_letter",
        "webhookctl --local inbox list --source stripe --since 2h --json",
    ),
    "inbox search": (
        "webhookctl --local inbox search \"customer.id == 'c-9'\" --source stripe --since 7d",
    ),
    "inbox tail": ("webhookctl --stack WebhookInbox-prod inbox tail --status dead_letter",),
    "init": ("webhookctl init inbox --alarms mailto:oncall@example.com",),
    "listen": (
        "webhookctl --stack WebhookInbox-prod listen --forward http://localhost:3000/webhooks",
    ),
    "mcp": ("webhookctl --stack WebhookInbox-prod mcp",),
    "preflight": ("webhookctl --stack WebhookInbox-prod preflight",),
    "rejected list": ("webhookctl --local rejected list --source stripe --since 2d",),
    "rejected release": ("webhookctl --local rejected release --source stripe --yes",),
    "rejected show": ("webhookctl --local rejected show 1767225600000-1a2b3c",),
    "replay": (
        "webhookctl --local replay --source stripe --since 2h",
        "webhookctl --local replay evt_1 --yes",
    ),
    "runbook": (
        "webhookctl runbook",
        "webhookctl --stack WebhookInbox-prod runbook dead-letter-burst",
    ),
    "secrets enrol": ("webhookctl --local secrets enrol shopify --for 15m",),
    "secrets list": ("webhookctl --stack WebhookInbox-prod secrets list",),
    "secrets revoke": ("webhookctl --local secrets revoke stripe --previous --yes",),
    "secrets rotate": ("webhookctl --local secrets rotate stripe --overlap 24h < new-secret",),
    "secrets set": ("webhookctl --local secrets set stripe < secret",),
    "secrets status": ("webhookctl --stack WebhookInbox-prod secrets status",),
    "send": ("webhookctl --local send events/stripe/invoice.paid.json --source stripe",),
    "skip": ('webhookctl --local skip evt_1 --handler stripe.fulfil --reason "refunded by hand"',),
    "smoke": ("webhookctl --stack WebhookInbox-prod smoke",),
    "sources reconcile": (
        "webhookctl --local sources reconcile github --hook octo/app/7 --since 1d",
    ),
    "tenants list": ("webhookctl --stack WebhookInbox-prod tenants list",),
    "tenants pause": ('webhookctl --local tenants pause acct_7 --reason "a flood"',),
    "tenants resume": ("webhookctl --local tenants resume acct_7",),
    "verify": (
        "webhookctl verify --source stripe --headers headers.txt --body body.json"
        " --secret-env SECRET",
    ),
}
