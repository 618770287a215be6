"""Fetches the Lambda functions' third-party wheels: `python -m webhook_inbox_cdk.vendor`.

Synthesis then needs no network. The wheels are built for Lambda (Linux, arm64, Python 3.13). pip
checks the hashes of our locks, and those of your `functions/requirements.txt` where it has any.
Requirements without fixed versions, such as `stripe>=16`, are resolved once for each text of that
file; delete `.build/vendor` to resolve them again.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from webhook_inbox_cdk.contents import CONTENTS

from webhook_inbox.configuration.distributions import read_requirements
from webhook_inbox.domain.errors import ConfigurationError

LOCKED: Final = ("--require-hashes", "--no-deps")
PYTHON: Final = "3.13"
# Amazon Linux 2023 has glibc 2.34 and runs wheels built for it or for older versions.
PLATFORMS: Final = ("manylinux2014", "manylinux_2_17", "manylinux_2_28", "manylinux_2_34")
# A comment begins a line or follows a space; elsewhere, `#` begins the fragment of a URL.
_COMMENT: Final = re.compile(r"(?:^|(?<=\s))#.*", re.MULTILINE)
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


def vendored(locks: Sequence[Path], *, own: Path | None, into: Path) -> list[Path]:
    """Returns the directories with the unpacked wheels of each file; fetches the missing ones.

    Args:
        locks: our requirement files, with hashes.
        own: the requirement file of your handlers, if any; resolved so that it agrees with `locks`.
        into: the cache, with a directory per content.

    Raises:
        ConfigurationError: pip could not fetch them, or `own` needs other versions than `locks`.
    """
    trees = [_unpacked(lock, into=into) for lock in locks]
    if own is None:
        return trees
    tree = _unpacked(own, into=into, beside=locks)
    _require_agreement(own, tree, trees)
    return [*trees, tree]


def _unpacked(lock: Path, *, into: Path, beside: Sequence[Path] = ()) -> Path:
    wanted = "".join(for_lambda(lock))
    versions = "".join(_pins(beside))
    digest = sha256("\n".join((wanted, versions, PYTHON, *PLATFORMS)).encode()).hexdigest()[:16]
    target = into / f"{lock.stem}-{digest}"
    if target.is_dir():
        return target
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into) as scratch:
        chosen, constraints = Path(scratch, "requirements.txt"), Path(scratch, "constraints.txt")
        chosen.write_text(wanted, encoding="utf-8")
        constraints.write_text(versions, encoding="utf-8")
        unpacked = Path(scratch, "unpacked")
        resolved = beside and "--hash=" not in wanted
        options = ["--constraint", str(constraints)] if resolved else LOCKED
        _install(chosen, unpacked, name=shown(lock), options=options)
        shutil.rmtree(unpacked / "bin", ignore_errors=True)  # scripts for this machine's Python
        _publish(unpacked, target)
    return target


def for_lambda(lock: Path) -> Iterator[str]:
    """Yields the requirements that apply to Lambda, with their hashes and without markers.

    Raises:
        ConfigurationError: a line is no requirement, such as `-r other.txt` or a path.
    """
    text = _COMMENT.sub("", read_requirements(lock))
    for entry in text.replace("\\\n", " ").splitlines():
        specification, *hashes = entry.split(" --hash=")
        if not specification.strip():
            continue
        try:
            requirement = Requirement(specification)
        except InvalidRequirement as error:
            raise ConfigurationError(
                f"{shown(lock)}: {specification.strip()!r} is not a requirement: write it as in"
                " stripe==16.1.0"
            ) from error
        if requirement.marker is None or requirement.marker.evaluate(LAMBDA):
            requirement.marker = None
            yield f"{requirement} {' '.join(f'--hash={h.strip()}' for h in hashes)}".strip() + "\n"


def _pins(locks: Sequence[Path]) -> Iterator[str]:
    """Yields the requirements of locks as constraints, without hashes."""
    for lock in locks:
        for line in for_lambda(lock):
            yield f"{line.partition(' --hash=')[0].strip()}\n"


def _require_agreement(own: Path, tree: Path, trees: Sequence[Path]) -> None:
    """Raises ConfigurationError where two versions of a distribution would be mixed in a bundle."""
    shipped = {name: version for other in trees for name, version in distributions(other)}
    for name, version in distributions(tree):
        if shipped.get(name, version) != version:
            raise ConfigurationError(
                f"{shown(own)} installs {name} {version}, and the processor ships {name}"
                f" {shipped[name]}: require {name}=={shipped[name]}"
            )


def distributions(tree: Path) -> Iterator[tuple[str, str]]:
    """Yields name and version of each distribution in a directory of unpacked wheels."""
    for info in tree.glob("*.dist-info"):
        name, _, version = info.stem.partition("-")
        yield canonicalize_name(name), version


def shown(lock: Path) -> str:
    """Returns the name of a requirement file for messages, e.g. functions/requirements.txt."""
    return f"{lock.parent.name}/{lock.name}"


def _install(requirements: Path, target: Path, *, name: str, options: Sequence[str]) -> None:
    target.mkdir()
    if not requirements.stat().st_size:
        return
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input"]
    command += ["--disable-pip-version-check", "--requirement", str(requirements), *options]
    command += ["--only-binary", ":all:", "--no-compile", "--target", str(target)]
    command += ["--python-version", PYTHON, "--implementation", "cp"]
    for platform in PLATFORMS:
        command += ["--platform", f"{platform}_aarch64"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        cause = (done.stderr.strip() or "pip failed").splitlines()[-1]
        raise ConfigurationError(
            f"{name}: cannot fetch its wheels for Lambda ({cause}); run"
            " `python -m webhook_inbox_cdk.vendor` with access to a package index"
        )


def _publish(unpacked: Path, target: Path) -> None:
    """Moves a directory into place; of concurrent builds, the first one wins."""
    try:
        unpacked.rename(target)
    except OSError:
        if not target.is_dir():
            raise


def main() -> int:
    """Fetches what the project in the working directory ships; returns the exit status."""
    functions, into = Path("functions"), Path(".build", "vendor")
    try:
        for contents in CONTENTS.values():
            vendored(contents.locks, own=contents.requirements(functions), into=into)
    except ConfigurationError as error:
        print(error, file=sys.stderr)  # noqa: T201 - a command's answer
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
