"""Reads a cloud assembly, the output of `python app.py` in CDK_OUTDIR."""

import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from webhook_inbox.domain.manifest import METADATA, Manifest
from webhookctl.errors import CommandError

STACK: Final = "aws:cloudformation:stack"
# The earliest time of the zip format: the same files give the same bytes on every machine.
EPOCH: Final = (1980, 1, 1, 0, 0, 0)
EXECUTABLE: Final = 0o755
READABLE: Final = 0o644


@dataclass(frozen=True, slots=True)
class Asset:
    """A file or directory of the template, and its S3 object.

    `bucket` may contain CloudFormation pseudo parameters.
    """

    path: Path
    bucket: str
    key: str
    archived: bool

    def content(self) -> bytes:
        """Returns the object's bytes; a directory as a zip."""
        return archive(self.path) if self.archived else self.path.read_bytes()


@dataclass(frozen=True, slots=True)
class Assembly:
    """One stack of a cloud assembly, with its assets."""

    stack_name: str
    template_path: Path
    template_key: str
    assets: tuple[Asset, ...]

    @classmethod
    def read(cls, directory: Path) -> Self:
        """Reads an assembly; raises CommandError unless it has exactly one stack."""
        listed = artifacts(directory)
        stacks = {n: a for n, a in listed.items() if a["type"] == STACK}
        if len(stacks) != 1:
            raise CommandError(f"{directory} has {len(stacks)} stacks, expected one: check app.py")
        ((name, stack),) = stacks.items()
        properties = stack["properties"]
        template = directory / properties["templateFile"]
        files = tuple(assets(directory, stack, listed))
        return cls(
            stack_name=properties.get("stackName", name),
            template_path=template,
            template_key=_template_key(template, files),
            assets=files,
        )

    def template(self) -> dict[str, Any]:
        """Returns the template."""
        parsed: dict[str, Any] = json.loads(self.template_path.read_text())
        return parsed

    def manifest(self) -> Manifest:
        """Returns the manifest that was compiled for the template."""
        return Manifest.from_data(json.loads(self.template()["Metadata"][METADATA]))


def archive(directory: Path) -> bytes:
    """Returns a directory as a zip; the same names, contents and modes give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target:
        for file in sorted(directory.rglob("*")):
            if file.is_dir():
                continue
            entry = zipfile.ZipInfo(file.relative_to(directory).as_posix(), EPOCH)
            mode = EXECUTABLE if file.stat().st_mode & 0o100 else READABLE
            entry.external_attr = mode << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            target.writestr(entry, file.read_bytes())
    return buffer.getvalue()


def artifacts(directory: Path) -> dict[str, dict[str, Any]]:
    """Returns the artifacts of an assembly by name; raises CommandError without one."""
    try:
        manifest = json.loads((directory / "manifest.json").read_text())
    except (OSError, ValueError) as error:
        raise CommandError(
            f"{directory} is not a cloud assembly: run `python app.py` with CDK_OUTDIR set"
        ) from error
    listed: dict[str, dict[str, Any]] = manifest["artifacts"]
    return listed


def assets(
    directory: Path, stack: Mapping[str, Any], listed: Mapping[str, Mapping[str, Any]]
) -> Iterator[Asset]:
    """Yields the assets of a stack's artifact."""
    for name in stack.get("dependencies", ()):
        artifact = listed.get(name, {})
        if artifact.get("type") != "cdk:asset-manifest":
            continue
        listing = json.loads((directory / artifact["properties"]["file"]).read_text())
        for file in listing["files"].values():
            for destination in file["destinations"].values():
                yield Asset(
                    path=directory / file["source"]["path"],
                    bucket=destination["bucketName"],
                    key=destination["objectKey"],
                    archived=file["source"]["packaging"] == "zip",
                )


def _template_key(template: Path, assets: tuple[Asset, ...]) -> str:
    for asset in assets:
        if asset.path == template:
            return asset.key
    raise CommandError(
        f"{template.name} is not among the assembly's assets: use the default synthesizer"
    )
