"""Serves the console on the loopback interface until it is interrupted."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from webhookctl.errors import CommandError

LOOPBACK: Final = "127.0.0.1"


def listening(port: int) -> socket.socket:
    """Returns a socket on 127.0.0.1; port 0 chooses a free one.

    Raises:
        CommandError: the port is taken.
    """
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        server.bind((LOOPBACK, port))
    except OSError as error:
        server.close()
        raise CommandError(
            f"port {port} of {LOOPBACK} is taken ({error.strerror}): choose another with --port"
        ) from error
    return server


def serve(app: ASGIApp, server: socket.socket) -> None:
    """Serves until SIGINT or SIGTERM; open requests get a second to end."""
    with suppress(KeyboardInterrupt):
        _server(app).run(sockets=[server])


@contextmanager
def served(app: ASGIApp, server: socket.socket) -> Iterator[None]:
    """Serves in a thread meanwhile."""
    running = _server(app)
    thread = Thread(target=running.run, args=([server],), name="console", daemon=True)
    thread.start()
    try:
        yield
    finally:
        running.should_exit = True
        thread.join()


def _server(app: ASGIApp) -> uvicorn.Server:
    settings = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(settings)
