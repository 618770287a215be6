"""The system's randomness."""

import secrets


class SystemChance:
    """The port `Chance`, unpredictable to others."""

    def __init__(self) -> None:
        self._random = secrets.SystemRandom()

    def token(self) -> str:
        """See the port."""
        return secrets.token_hex(16)

    def uniform(self, low: float, high: float) -> float:
        """See the port."""
        return self._random.uniform(low, high)
