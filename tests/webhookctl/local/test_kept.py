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
    with kept.held():
        with pytest.raises(CommandError, match="is in use by another session"), kept.held():
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
            with pytest.raises(CommandError, match=rf"port {front.port} .* --fresh"):
                kept.port()
        finally:
            front.stop()
        assert kept.port() == kept.port() == front.port


def test_clearing_deletes_what_sessions_wrote_and_no_other_file(kept: Kept) -> None:
    with kept.held():
        (kept.directory / "aws").mkdir()
        for name in ("aws/secretsmanager.json", "sink.jsonl", "port", "mine.txt"):
            (kept.directory / name).touch()
        kept.remember(["github"])
        assert kept.stored() == {"github"}
        kept.clear()
        assert {file.name for file in kept.directory.iterdir()} == {"lock", "mine.txt"}
        assert kept.stored() == frozenset()


def test_secrets_count_as_stored_only_where_the_vault_was_saved(kept: Kept) -> None:
    with kept.held():
        kept.remember(["github"])
        assert kept.stored() == frozenset()
