import subprocess
from pathlib import Path

import pytest

from webhookctl.errors import CommandError
from webhookctl.local.http.server import Front
from webhookctl.local.kept import Kept


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path / "of" / "session")


def test_only_its_user_may_read_it(kept: Kept) -> None:
    kept.directory.mkdir(parents=True, mode=0o755)
    with kept.held():
        assert kept.directory.stat().st_mode & 0o777 == 0o700


def test_one_session_at_a_time_has_it(kept: Kept) -> None:
    in_use = pytest.raises(CommandError, match="is in use by another session")
    with kept.held(), in_use, kept.held():
        pass
    with kept.held():
        pass


def test_a_directory_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CommandError, match="name a directory"), Kept(tmp_path / "file").held():
        pass


def test_its_port_stays_and_is_refused_where_it_is_taken(kept: Kept) -> None:
    with kept.held():
        front = Front(0, print).start()
        try:
            (kept.directory / "port").write_text(str(front.port))
            with pytest.raises(
                CommandError, match=rf"port {front.port} .* --fresh, which deletes the kept"
            ):
                kept.port()
        finally:
            front.stop()
        assert kept.port() == kept.port() == front.port


def test_a_damaged_port_is_one_line(kept: Kept) -> None:
    with kept.held():
        (kept.directory / "port").write_text("")
        with pytest.raises(
            CommandError, match="contains no port: start with --fresh, which deletes"
        ):
            kept.port()


def test_clearing_deletes_what_sessions_wrote_and_no_other_file(kept: Kept) -> None:
    with kept.held():
        (kept.directory / "aws").mkdir()
        for name in ("aws/secretsmanager.json", "sink.jsonl", "port", "mine.txt"):
            (kept.directory / name).touch()
        kept.clear()
        left = {file.name for file in kept.directory.iterdir()}
        assert left == {".gitignore", "lock", "mine.txt"}


@pytest.mark.parametrize("name", ["aws/template.yaml", "lock", "port", ".gitignore", "notes.txt"])
def test_a_directory_with_the_user_s_files_is_refused_and_unchanged(kept: Kept, name: str) -> None:
    file = kept.directory / name
    file.parent.mkdir(parents=True)
    file.write_text("mine")
    kept.directory.chmod(0o755)
    with pytest.raises(CommandError, match="name a new or empty directory"), kept.held():
        pass
    assert file.read_text() == "mine"
    assert [path.name for path in kept.directory.iterdir()] == [Path(name).parts[0]]
    assert kept.directory.stat().st_mode & 0o777 == 0o755


def test_a_link_as_its_lock_is_not_followed(kept: Kept, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    with kept.held():
        (kept.directory / "lock").unlink()
    (kept.directory / "lock").symlink_to(victim)
    with pytest.raises(CommandError, match="--keep"), kept.held():
        pass
    assert victim.read_text() == "precious"


def test_git_ignores_all_of_it(kept: Kept, tmp_path: Path) -> None:
    with kept.held():
        (kept.directory / "aws").mkdir()
        (kept.directory / "aws" / "secretsmanager.json").write_text("secret")
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    status = [*git, "status", "--porcelain", "--untracked-files=all"]
    assert subprocess.run(status, check=True, capture_output=True, text=True).stdout == ""


def test_it_is_one_of_ours_at_the_next_start(kept: Kept) -> None:
    for _ in range(2):
        with kept.held():
            (kept.directory / "port").write_text("1234")
    assert (kept.directory / "port").read_text() == "1234"
