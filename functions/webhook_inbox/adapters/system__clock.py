"""The system's time."""

import time
from datetime import UTC, datetime


class SystemClock:
    """The port `Clock`."""

    def now(self) -> datetime:
        """See the port."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """See the port."""
        time.sleep(seconds)
