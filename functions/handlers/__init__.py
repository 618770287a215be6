"""YOURS: one module a topic. A module takes part when it is named here."""

from typing import Final

MODULES: Final = ("github_issues", "stripe_billing", "slack", "pagerduty", "agent")
