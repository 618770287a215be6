"""Fetches the Lambda functions' third-party wheels: `python -m stacks.vendor`.

Synthesis then needs no network. The wheels are built for Lambda (Linux, arm64, Python 3.13), and
pip checks their hashes against the locks under `requirements/`.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement

from webhook_inbox.domain.errors import ConfigurationError

GROUPS: Final = ("ingest", "replay", "processor", "verification", "handlers")
PYTHON: Final = "3.13"
# Amazon Linux 2023 has glibc 2.34 and runs wheels built for it or for older versions.
PLATFORMS: Final = ("manylinux2014", "manylinux_2_17", "manylinux_2_28", "manylinux_2_34")
# pip evaluates markers for the machine it runs on, so the lock is filtered for Lambda here.
LAMBDA: Final = {
    "implementation_name": "cpython",
    "implementation_version": "3.13.0",
    "os_name": "posix",
    "platform_machine": "aarch64",
    "platform_python_implementation": "CPython",
    "platform_release": "",
    "platform_system": "Linux",
    "platform_version": "",
    "python_full_version": "3.13.0",
    "python_version": PYTHON,
    "sys_platform": "linux",
}


def vendored(lock: Path, *, into: Path) -> Path:
    """Returns the directory with a lock's unpacked wheels; fetches them where it is missing.

    Args:
        lock: a requirements file with hashes.
        into: the cache, with a directory per lock content.

    Raises:
        ConfigurationError: pip could not fetch them.
    """
    wanted = "".join(for_lambda(lock))
    digest = sha256("\n".join((wanted, PYTHON, *PLATFORMS)).encode()).hexdigest()[:16]
    target = into / f"{lock.stem}-{digest}"
    if target.is_dir():
        return target
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into) as scratch:
        chosen = Path(scratch, "requirements.txt")
        chosen.write_text(wanted, encoding="utf-8")
        unpacked = Path(scratch, "unpacked")
        _install(chosen, unpacked, group=lock.stem)
        shutil.rmtree(unpacked / "bin", ignore_errors=True)  # scripts for this machine's Python
        _publish(unpacked, target)
    return target


def for_lambda(lock: Path) -> Iterator[str]:
    """Yields the requirements that apply to Lambda, with their hashes and without markers."""
    for entry in lock.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        specification, *hashes = entry.partition("#")[0].split(" --hash=")
        if not specification.strip():
            continue
        requirement = Requirement(specification)
        if requirement.marker is None or requirement.marker.evaluate(LAMBDA):
            requirement.marker = None
            yield f"{requirement} {' '.join(f'--hash={h.strip()}' for h in hashes)}\n"


def _install(requirements: Path, target: Path, *, group: str) -> None:
    target.mkdir()
    if not requirements.stat().st_size:
        return
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input"]
    command += ["--disable-pip-version-check", "--requirement", str(requirements)]
    command += ["--require-hashes", "--no-deps", "--only-binary", ":all:", "--no-compile"]
    command += ["--python-version", PYTHON, "--implementation", "cp", "--target", str(target)]
    for platform in PLATFORMS:
        command += ["--platform", f"{platform}_aarch64"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        cause = (done.stderr.strip() or "pip failed").splitlines()[-1]
        raise ConfigurationError(
            f"requirements/{group}.txt: cannot fetch its wheels for Lambda ({cause}); run"
            " `python -m stacks.vendor` with access to a package index"
        )


def _publish(unpacked: Path, target: Path) -> None:
    """Moves a directory into place; of concurrent builds, the first one wins."""
    try:
        unpacked.rename(target)
    except OSError:
        if not target.is_dir():
            raise


def main() -> int:
    """Fetches the wheels of every group; returns the exit status."""
    top = Path(__file__).resolve().parent.parent
    try:
        for group in GROUPS:
            vendored(top / "requirements" / f"{group}.txt", into=top / ".build" / "vendor")
    except ConfigurationError as error:
        print(error, file=sys.stderr)  # noqa: T201 - a command's answer
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
