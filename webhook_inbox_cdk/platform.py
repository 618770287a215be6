"""The Python version and the processor architecture that bundles are built for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from webhook_inbox.domain.errors import ConfigurationError

# Lambda's names of the architectures, and the names in wheels and in requirement markers.
MACHINES: Final = {"arm64": "aarch64", "x86_64": "x86_64"}
# The older one is for regions that do not offer the newer one yet.
PYTHONS: Final = ("3.13", "3.12")
# Amazon Linux 2023 has glibc 2.34 and runs wheels built for it or for older versions.
GLIBCS: Final = ("manylinux2014", "manylinux_2_17", "manylinux_2_28", "manylinux_2_34")


@dataclass(frozen=True, slots=True)
class Platform:
    """The Lambda runtime of all functions.

    Attributes:
        python: the version of Python, e.g. "3.13".
        architecture: "arm64" or "x86_64".

    Raises:
        ConfigurationError: the library does not support one of them.
    """

    python: str = PYTHONS[0]
    architecture: str = "arm64"

    def __post_init__(self) -> None:
        _require("python", self.python, PYTHONS)
        _require("architecture", self.architecture, tuple(MACHINES))

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> Self:
        """Returns the platform of a CDK context; a missing value is the default."""
        given = {name: context.get(name) for name in ("python", "architecture")}
        return cls(**{name: str(value) for name, value in given.items() if value is not None})

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platform tags of the wheels that run there."""
        return tuple(f"{glibc}_{MACHINES[self.architecture]}" for glibc in GLIBCS)

    @property
    def markers(self) -> dict[str, str]:
        """The environment of requirement markers.

        pip evaluates markers for the machine that it runs on.
        """
        return {
            "implementation_name": "cpython",
            "implementation_version": f"{self.python}.0",
            "os_name": "posix",
            "platform_machine": MACHINES[self.architecture],
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_system": "Linux",
            "platform_version": "",
            "python_full_version": f"{self.python}.0",
            "python_version": self.python,
            "sys_platform": "linux",
        }

    def __str__(self) -> str:
        return f"Python {self.python} on {self.architecture}"


def _require(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ConfigurationError(
            f"{name} is {value!r}; the functions support {' and '.join(known)}: correct"
            f" `-c {name}=…`, the context in cdk.json, or InboxProps.{name}"
        )
