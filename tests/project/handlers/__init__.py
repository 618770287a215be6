"""Handlers for tests of the library."""

from typing import Final

MODULES: Final = ("github_issues", "stripe_billing", "slack", "pagerduty", "agent")
