"""Secrets Manager in memory."""

from collections.abc import Mapping

from webhook_inbox.adapters.memory.faults import Faults, FaultyCall, no_faults


class MemorySecrets:
    """Secrets with a current and a previous value."""

    def __init__(
        self, values: Mapping[str, tuple[str, ...]] | None = None, *, faults: Faults = no_faults
    ) -> None:
        self.faults = faults
        self._values = dict(values or {})

    def fetch(self, name: str) -> tuple[str, ...]:
        """See the port."""
        with FaultyCall(self.faults, "secretsmanager", "GetSecretValue"):
            # A value that was set twice counts once; an empty one is ignored.
            return tuple(dict.fromkeys(value for value in self._values.get(name, ()) if value))

    def rotate(self, name: str, value: str) -> None:
        """Sets the current value; the old one becomes the previous."""
        self._values[name] = (value, *self._values.get(name, ())[:1])

    def remove(self, name: str) -> None:
        """Removes the secret."""
        self._values.pop(name, None)
