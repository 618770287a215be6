"""Runs a module that must not outlive its parent: `python -m webhookctl.local.processes.lifeline MODULE …`.

The parent holds the other end of our standard input. However it ends — return, Ctrl-C,
`kill -9` — the kernel closes that end, and we kill our process group, workers included.
Unlike PR_SET_PDEATHSIG this reaches grandchildren, is not tied to the thread that started us,
and works on macOS too.
"""

import contextlib
import os
import runpy
import signal
import sys
import threading


def main() -> None:
    """Watches standard input in the background and becomes the module in argv."""
    sys.argv = sys.argv[1:]
    threading.Thread(target=_die_with_parent, daemon=True, name="lifeline").start()
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def _die_with_parent() -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 1):
            continue
    # A group of our own, or else we would take a terminal's other jobs with us.
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    main()
