"""Deploys edits to a running inbox: the code alone, or the stack where the template differs."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from webhook_inbox_cdk.bundle import Bundle, Workshop
from webhook_inbox_cdk.contents import CONTENTS

from webhook_inbox.domain.manifest import SPLIT, Manifest
from webhookctl.errors import CommandError
from webhookctl.local.deployment.assembly import archive
from webhookctl.local.deployment.functions import Deployed, Fleet
from webhookctl.local.deployment.synth import Project

KINDS: Final = tuple(CONTENTS)


def bundles(project: Project, manifest: Manifest) -> dict[str, Bundle]:
    """Returns the bundle of each kind of function, as synthesis builds it."""
    workshop = Workshop(project.functions, manifest, project.build, wheels=False)
    return {kind: workshop.make(kind) for kind in KINDS}


def template_inputs(manifest: Manifest) -> tuple[Any, ...]:
    """Returns the parts of a manifest that the template depends on, besides the code's hashes."""
    attempts = max((handler.max_attempts for handler in manifest.handlers.values()), default=0)
    secrets = {name: source.secret for name, source in manifest.sources.items()}
    splits = SPLIT in manifest.handlers
    lanes = (manifest.lanes, manifest.serial_lanes)
    return (lanes, manifest.lane_specs, manifest.secrets, secrets, attempts, splits)


class Versions:
    """The deployed bundles, by kind of function."""

    def __init__(self, fleet: Fleet, running: Mapping[str, Bundle]) -> None:
        self._fleet = fleet
        self.running = dict(running)

    def replace(
        self, made: Mapping[str, Bundle], functions: Sequence[Deployed], tell: Callable[[str], None]
    ) -> bool:
        """Updates the functions whose bundles differ; returns whether there are any.

        Restores the previous code and raises CommandError where the new code cannot be imported.
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
