"""Finds the Chromium that the tests drive."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

VARIABLE: Final = "CHROMIUM"
NAMES: Final = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)


def found(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Returns the browser that $CHROMIUM names, or one on PATH; None without any."""
    if named := environment.get(VARIABLE):
        return Path(named)
    paths = (shutil.which(name, path=environment.get("PATH")) for name in NAMES)
    return next((Path(path) for path in paths if path), None)
