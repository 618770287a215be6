"""The context values of `cdk.json` and `cdk -c`; the command line passes each one as text."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from constructs import Construct

from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.similar_names import did_you_mean

T = TypeVar("T", int, None)

KEYS: Final = frozenset(
    {
        "architecture",
        "dashboard",
        "functions",
        "ingest_memory",
        "local",
        "log_retention",
        "processor_memory",
        "python",
        "reserved_concurrency",
        "snapstart",
        "stack",
        "stage",
        "tracing",
        "vpc",
    }
)
# Those whose value is true or false.
SWITCHES: Final = frozenset({"dashboard", "local", "snapstart"})
# CDK's name of a lane's `workers`; if it were ignored, lanes would have the default.
WORKERS: Final = "max_concurrency"
# An app's other context values may resemble ours a little.
SIMILARITY: Final = 0.8
FLAGS: Final = frozenset({"true", "false"})
TABLE: Final = '-c {}=\'{{"id": "vpc-…", …}}\''


class Context:
    """The context values that this package reads.

    Raises:
        ConfigurationError: a key is similar to one of ours, and probably meant as that; a method
            raises it for a value of another kind than the method's.
    """

    def __init__(self, scope: Construct) -> None:
        self._node = scope.node
        others = {k: v for k, v in self._node.get_all_context().items() if k not in KEYS}
        for key, value in sorted(others.items()):
            if key == WORKERS:
                raise ConfigurationError(
                    f"context {key}: unknown key; write `workers` under [lanes.NAME] in inbox.toml"
                )
            meant = did_you_mean(key, _takers(value), similarity=SIMILARITY)
            if meant:
                raise ConfigurationError(f"context {key}: unknown key; {meant}")

    def directory(self, key: str) -> Path | None:
        """Returns a value as the path of an existing directory."""
        value = self._value(key)
        if value is None:
            return None
        if not isinstance(value, str) or not Path(value).is_dir():
            _refuse(key, value, "is not a directory; give the one that has your inbox.toml")
        return Path(value)

    def text(self, key: str) -> str:
        """Returns a value as text, "" if absent; JSON's 3.13 is the text "3.13"."""
        value = self._value(key)
        return "" if value is None else str(value)

    def flag(self, key: str, *, default: bool = False) -> bool:
        """Returns whether a value is true, `default` if it is absent."""
        value = self._value(key)
        if value is None:
            return default
        text = str(value).lower()
        if text not in FLAGS:
            _refuse(key, value, "is not true or false")
        return text == "true"

    def number(self, key: str, *, default: T) -> int | T:
        """Returns a value as an integer, `default` if it is absent."""
        value = self._value(key)
        if value is None:
            return default
        if isinstance(value, bool) or not re.fullmatch(r"-?[0-9]+", str(value)):
            _refuse(key, value, f"is not a whole number; write -c {key}={default or 20}")
        return int(value)

    def table(self, key: str) -> Mapping[str, Any] | None:
        """Returns a value as an object, given as one or as JSON text."""
        value = self._value(key)
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError as error:
                _refuse(key, value, f"is not JSON ({error}); write {TABLE.format(key)}")
        if value is not None and not isinstance(value, Mapping):
            _refuse(key, value, f"is not an object; write {TABLE.format(key)}")
        return value

    def _value(self, key: str) -> Any:
        """Returns a value, None for an empty text."""
        assert key in KEYS, key  # noqa: S101 - a key that is missing there is no near miss
        value = self._node.try_get_context(key)
        return (value.strip() or None) if isinstance(value, str) else value


def _takers(value: Any) -> frozenset[str]:
    """Returns those of our keys that a value may have been meant for."""
    if isinstance(value, Mapping):
        return frozenset({"vpc"})
    if isinstance(value, list):
        return frozenset()
    return KEYS if str(value).lower() in FLAGS else KEYS - SWITCHES


def _refuse(key: str, value: Any, why: str) -> NoReturn:
    raise ConfigurationError(f"context {key}: {value!r} {why}")
