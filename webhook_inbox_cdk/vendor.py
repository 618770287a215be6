"""Fetches the Lambda functions' third-party wheels: `python -m webhook_inbox_cdk.vendor`.

Synthesis then needs no network. The wheels are built for Lambda: Linux, and the Python version and
architecture in the context of `cdk.json`, by default 3.13 and arm64. pip checks the hashes of our
locks, and those of your `functions/requirements.txt` where it has any.
Requirements without fixed versions, such as `stripe>=16`, are resolved once for each text of that
file; delete `.build/vendor` to resolve them again.
"""

import json
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
from webhook_inbox_cdk import tree
from webhook_inbox_cdk.contents import CONTENTS
from webhook_inbox_cdk.platform import Platform

from webhook_inbox.configuration.distributions import read_requirements
from webhook_inbox.domain.errors import ConfigurationError

LOCKED: Final = ("--require-hashes", "--no-deps")
# A comment begins a line or follows a space; elsewhere, `#` begins the fragment of a URL.
_COMMENT: Final = re.compile(r"(?:^|(?<=\s))#.*", re.MULTILINE)
# pip writes these after it unpacked a wheel; they differ between versions of pip and directories.
_INSTALLERS_OWN: Final = ("INSTALLER", "RECORD", "REQUESTED", "direct_url.json")


def vendored(
    locks: Sequence[Path], *, own: Path | None, into: Path, platform: Platform
) -> list[Path]:
    """Returns the directories with the unpacked wheels of each file.

    Fetches those that are missing or damaged.

    Args:
        locks: our requirement files, with hashes.
        own: the requirement file of your handlers, if any; resolved so that it agrees with `locks`.
        into: the cache, with a directory per content.
        platform: chooses the wheels.

    Raises:
        ConfigurationError: pip could not fetch them, or `own` needs other versions than `locks`.
    """
    trees = [_unpacked(lock, into=into, platform=platform) for lock in locks]
    if own is None:
        return trees
    theirs = _unpacked(own, into=into, platform=platform, beside=locks)
    _require_agreement(own, theirs, trees)
    return [*trees, theirs]


def _unpacked(lock: Path, *, into: Path, platform: Platform, beside: Sequence[Path] = ()) -> Path:
    wanted = "".join(for_lambda(lock, platform))
    versions = "".join(_pins(beside, platform))
    key = "\n".join((wanted, versions, platform.python, *platform.platforms))
    target = into / f"{lock.stem}-{sha256(key.encode()).hexdigest()[:16]}"
    if not tree.sound(target):
        into.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=into) as scratch:
            chosen, constraints = Path(scratch, "requirements.txt"), Path(scratch, "constraints")
            chosen.write_text(wanted, encoding="utf-8")
            constraints.write_text(versions, encoding="utf-8")
            resolved = beside and "--hash=" not in wanted
            options = ["--constraint", str(constraints)] if resolved else LOCKED
            unpacked = Path(scratch, "unpacked")
            _install(chosen, unpacked, name=shown(lock), options=(*options, *_choice(platform)))
            _keep(unpacked, target)
    return tree.kept(target)


def _keep(unpacked: Path, target: Path) -> None:
    """Moves unpacked wheels to their place in the cache, without this machine's traces."""
    shutil.rmtree(unpacked / "bin", ignore_errors=True)  # scripts for this machine's Python
    content = {
        name: path
        for name, path in tree.files(unpacked, shown=target.name)
        if not (path.parent.suffix == ".dist-info" and path.name in _INSTALLERS_OWN)
    }
    made = unpacked.with_name("made")
    tree.lay_out(content, tree.kept(made))
    tree.keep(made, target)


def _choice(platform: Platform) -> Iterator[str]:
    """Yields the options that make pip choose wheels of a platform."""
    yield from ("--python-version", platform.python, "--implementation", "cp")
    for tag in platform.platforms:
        yield from ("--platform", tag)


def for_lambda(lock: Path, platform: Platform) -> Iterator[str]:
    """Yields the requirements that apply to Lambda, with their hashes and without markers.

    Raises:
        ConfigurationError: a line is no requirement, such as `-r other.txt` or a path.
    """
    # pip would evaluate the markers for the machine that it runs on.
    markers = platform.markers
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
        if requirement.marker is None or requirement.marker.evaluate(markers):
            requirement.marker = None
            yield f"{requirement} {' '.join(f'--hash={h.strip()}' for h in hashes)}".strip() + "\n"


def _pins(locks: Sequence[Path], platform: Platform) -> Iterator[str]:
    """Yields the requirements of locks as constraints, without hashes."""
    for lock in locks:
        for line in for_lambda(lock, platform):
            yield f"{line.partition(' --hash=')[0].strip()}\n"


def _require_agreement(own: Path, theirs: Path, trees: Sequence[Path]) -> None:
    """Raises ConfigurationError where two versions of a distribution would be mixed in a bundle."""
    shipped = {name: version for other in trees for name, version in distributions(other)}
    for name, version in distributions(theirs):
        if shipped.get(name, version) != version:
            raise ConfigurationError(
                f"{shown(own)} installs {name} {version}, and the processor ships {name}"
                f" {shipped[name]}: require {name}=={shipped[name]}"
            )


def distributions(directory: Path) -> Iterator[tuple[str, str]]:
    """Yields name and version of each distribution in a directory of unpacked wheels."""
    for info in directory.glob("*.dist-info"):
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
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        cause = (done.stderr.strip() or "pip failed").splitlines()[-1]
        raise ConfigurationError(
            f"{name}: cannot fetch its wheels for Lambda ({cause}); run"
            " `python -m webhook_inbox_cdk.vendor` with access to a package index"
        )


def main() -> int:
    """Fetches what the project in the working directory ships; returns the exit status."""
    functions, into = Path("functions"), Path(".build", "vendor")
    try:
        platform = _platform(Path("cdk.json"))
        for contents in CONTENTS.values():
            own = contents.requirements(functions)
            vendored(contents.locks, own=own, into=into, platform=platform)
    except ConfigurationError as error:
        print(error, file=sys.stderr)  # noqa: T201 - a command's answer
        return 1
    return 0


def _platform(settings: Path) -> Platform:
    """Returns the platform that the context in cdk.json names."""
    if not settings.is_file():
        return Platform()
    context = json.loads(settings.read_text(encoding="utf-8")).get("context")
    return Platform.from_context(context or {})


if __name__ == "__main__":
    sys.exit(main())
