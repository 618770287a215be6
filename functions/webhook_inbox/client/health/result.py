"""The result of a check."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

# The pinned CDK CLI; the npm tag `latest` is older and rejects the assembly.
CDK: Final = "npx --yes aws-cdk@2.1148.1"


class Level(StrEnum):
    """The outcome of a check; only a failure makes the command fail."""

    OK = "ok"
    WARNING = "warning"  # the deployment succeeds; the inbox works
    FAILURE = "failure"  # the deployment, or the inbox, fails
    UNKNOWN = "unknown"  # not checked; the remedy has the reason
    SKIPPED = "skipped"  # does not apply; the figure has the reason


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check.

    Attributes:
        check: its name.
        figure: the account's number, or what was found.
        limit: the bound of the figure; empty for a check without one.
        remedy: the command or the console path; empty where the level is OK.
    """

    check: str
    level: Level
    figure: str
    limit: str = ""
    remedy: str = ""

    @classmethod
    def judged(
        cls, check: str, figure: str, limit: str = "", *, failure: str = "", warning: str = ""
    ) -> "CheckResult":
        """Returns the result whose level follows from the remedy that is not empty."""
        level = Level.FAILURE if failure else Level.WARNING if warning else Level.OK
        return cls(check, level, figure, limit, failure or warning)
