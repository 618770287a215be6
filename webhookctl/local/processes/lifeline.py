"""Runs the module of argv such that it ends with its parent process.

The parent holds the write end of our standard input. When it ends in any way (return, Ctrl-C,
`kill -9`), the kernel closes that end, and we kill our process group, Lambda workers included.
Unlike PR_SET_PDEATHSIG this reaches grandchildren, does not depend on the thread that started us,
and works on macOS. A library in the parent could not do it: SIGKILL leaves it no time to act.
"""

import contextlib
import os
import runpy
import signal
import sys
import threading


def main() -> None:
    """Watches standard input in a thread and runs the module of argv."""
    sys.argv = sys.argv[1:]
    threading.Thread(target=_die_with_parent, daemon=True, name="lifeline").start()
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def _die_with_parent() -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 1):
            continue
    # Only our own group; a shared one would include the terminal's other jobs.
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    main()
