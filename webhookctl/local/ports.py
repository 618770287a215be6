"""Ports of the loopback interface."""

import errno
import socket
from typing import Final

from webhookctl.errors import CommandError

LOOPBACK: Final = "127.0.0.1"


def free_port() -> int:
    """Returns a port that is free at this moment."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def require_free(port: int, *, purpose: str, option: str) -> None:
    """Raises CommandError where `port` is taken; `option` is the one that changes it."""
    with socket.socket() as probe:
        # As asyncio and http.server do, so that a port in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            if error.errno not in {errno.EADDRINUSE, errno.EACCES}:
                raise
            why = "in use" if error.errno == errno.EADDRINUSE else "not allowed for this user"
            raise CommandError(
                f"port {port} for {purpose} is {why}: stop the process that uses it,"
                f" or choose another with {option}"
            ) from error


def accepts(port: int) -> bool:
    """Returns whether a process listens on `port`."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((LOOPBACK, port)) == 0
