"""Brings edits into a running inbox: new code at once, a new stack where the template differs."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from stacks.bundle import CONTENTS, Bundle, Workshop
from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.domain.manifest import SPLIT, Manifest
from webhookctl.errors import CommandError
from webhookctl.local.deployment.assembly import archive
from webhookctl.local.deployment.functions import Deployed, Fleet
from webhookctl.local.deployment.synth import STAGE
from webhookctl.local.project import Project

KINDS: Final = tuple(CONTENTS)


def compiled(project: Project) -> Manifest:
    """Returns the manifest of the files as they are; raises ConfigurationError."""
    return compile_manifest(project.functions, stage=STAGE)


def bundles(project: Project, manifest: Manifest) -> dict[str, Bundle]:
    """Returns each kind of function's bundle, as the synthesis makes it."""
    workshop = Workshop(project.functions, manifest, project.build, wheels=False)
    return {kind: workshop.make(kind) for kind in KINDS}


def template_inputs(manifest: Manifest) -> tuple[Any, ...]:
    """Returns what of a manifest shows in the template, beside the code's hashes."""
    attempts = max((handler.max_attempts for handler in manifest.handlers.values()), default=0)
    secrets = {name: source.secret for name, source in manifest.sources.items()}
    splits = SPLIT in manifest.handlers
    lanes = (manifest.lanes, manifest.serial_lanes)
    return (lanes, manifest.secrets, secrets, attempts, splits)


class Versions:
    """The code that runs, and how to put other code in its place."""

    def __init__(self, fleet: Fleet, running: Mapping[str, Bundle]) -> None:
        """Takes the bundles that were deployed, by kind of function."""
        self._fleet = fleet
        self.running = dict(running)

    def replace(
        self, made: Mapping[str, Bundle], functions: Sequence[Deployed], tell: Callable[[str], None]
    ) -> bool:
        """Updates the functions whose bundle differs, tells which, and returns whether any did.

        Code that cannot be imported is taken back. Raises CommandError in its words.
        """
        changed = [f for f in functions if made[f.kind].digest != self.running[f.kind].digest]
        if not changed:
            return False
        self._put(made, changed)
        try:
            self._fleet.warm(dict.fromkeys(changed, 1))
        except CommandError:
            self._put(self.running, changed)
            raise
        self.running = dict(made)
        tell(", ".join(function.shown for function in changed))
        return True

    def _put(self, made: Mapping[str, Bundle], functions: Sequence[Deployed]) -> None:
        archives: dict[Path, bytes] = {}
        for function in functions:
            bundle = made[function.kind]
            content = archives.setdefault(bundle.directory, b"") or archive(bundle.directory)
            archives[bundle.directory] = content
            self._fleet.replace_code(function, content, version=bundle.version)
