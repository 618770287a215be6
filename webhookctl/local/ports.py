"""Ports of the loopback interface."""

import errno
import socket
from typing import Final

from webhookctl.local.errors import LocalError

LOOPBACK: Final = "127.0.0.1"


def free_port() -> int:
    """Returns a port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def require_free(port: int, *, purpose: str, option: str) -> None:
    """Raises LocalError where `port` is taken, naming the option that moves it."""
    with socket.socket() as probe:
        # As asyncio and http.server set it: a port in TIME_WAIT is free enough.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            if error.errno not in {errno.EADDRINUSE, errno.EACCES}:
                raise
            why = "in use" if error.errno == errno.EADDRINUSE else "not allowed for this user"
            message = (
                f"port {port} for {purpose} is {why}: stop what listens there,"
                f" or choose another with {option}"
            )
            raise LocalError(message) from error


def accepts(port: int) -> bool:
    """Tells whether somebody listens on `port`."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((LOOPBACK, port)) == 0
