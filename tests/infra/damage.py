"""Damage to a file of a cached directory."""

from pathlib import Path

DAMAGE = ("changed", "removed", "added", "unreadable", "executable", "linked")


def damage_file(file: Path, how: str) -> None:
    """Does to a file what `how` says."""
    if how == "changed":
        file.write_bytes(file.read_bytes() + b"# more")
    elif how == "removed":
        file.unlink()
    elif how == "added":
        file.with_name("other.py").touch()
    elif how == "linked":
        file.rename(file.parents[3] / "elsewhere.py")
        file.symlink_to(file.parents[3] / "elsewhere.py")
    else:
        file.chmod({"unreadable": 0o600, "executable": 0o755}[how])
