"""The checks of a deployed inbox, and its smoke test."""

from webhook_inbox.client.health.doctor.checks import findings
from webhook_inbox.client.health.doctor.examination import Examination
from webhook_inbox.client.health.result import CheckResult
from webhook_inbox.client.health.smoke.steps import SmokeTest
from webhook_inbox.client.listing import Listing
from webhook_inbox.client.scope import Scope
from webhook_inbox.configuration.inbox_toml import Configuration
from webhook_inbox.domain.audit import Actor


class HealthChecks:
    """Whether an inbox works, and what it waits for.

    The checks before there is a stack are `client.health.preflight`.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def examine(
        self, *, configuration: Configuration | None = None, start_drift: bool = False
    ) -> Listing[CheckResult]:
        """Returns the results of the checks of the stack, its queues, functions and alarms.

        A check that cannot be read is unknown, and the others go on; the order is stable.

        Args:
            configuration: that of a checkout, to compare with the deployed one.
            start_drift: whether to start a drift detection, which takes minutes.

        Raises:
            Unread: the stack's resources cannot be listed.
            Refused: the client only reads, and is to start a drift detection.
        """
        if start_drift:
            self._scope.require_write()
        exam = Examination.of(self._scope, configuration)
        return Listing(self._scope, findings(exam, start_drift=start_drift))

    def smoke_test(self, *, by: Actor) -> SmokeTest:
        """Returns a test from a delivery to a replay; it begins with the first iteration.

        It takes at most two minutes, and touches no other source and nothing outside the inbox.

        Raises:
            Refused: the client only reads.
        """
        self._scope.require_write()
        return SmokeTest(self._scope, by)
