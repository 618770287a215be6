"""Randomness that repeats itself."""

from random import Random


class SeededChance:
    """The same seed gives the same tokens and numbers."""

    def __init__(self, seed: int = 0) -> None:
        self._random = Random(seed)  # noqa: S311 - a double, and repeatable on purpose

    def token(self) -> str:
        """See the port."""
        return f"{self._random.getrandbits(128):032x}"

    def uniform(self, low: float, high: float) -> float:
        """See the port."""
        return self._random.uniform(low, high)
