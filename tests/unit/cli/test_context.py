"""What a damaged database needs depends on where it is."""

from pathlib import Path

import pytest

from gateway_sessions.cli.context import CommandContext
from gateway_sessions.cli.exit_codes import Exit
from gateway_sessions.cli.settings import Settings
from gateway_sessions.core.notices.human_units import MEND_ELSEWHERE, MEND_FILE, MEND_SERVER
from gateway_sessions.errors import StorageCorruptError


@pytest.mark.parametrize(
    ("home", "damaged", "cure"),
    [
        ("{tmp}", "{tmp}/sessions.db", MEND_FILE),
        ("{tmp}", "message 7", MEND_FILE),
        ("{tmp}", "{tmp}/../elsewhere/state.db", MEND_ELSEWHERE),
        ("postgresql://me@db.example/sessions", "message 7", MEND_SERVER),
        ("mysql://me@db.example/sessions", "the database", MEND_SERVER),
    ],
)
def test_the_advice_fits_the_database(tmp_path: Path, home: str, damaged: str, cure: str):
    context = CommandContext(settings=Settings(home=home.format(tmp=tmp_path)), command="sessions show")
    error = StorageCorruptError(
        str(Path(damaged.format(tmp=tmp_path)).resolve()) if "/" in damaged else damaged, "is damaged"
    )
    failure = context.failure_of(error)
    assert (failure.what_next, failure.exit_code, failure.kind) == (cure, Exit.FAILED, "StorageCorruptError")


def test_a_file_that_the_configuration_names_is_the_one_of_the_store(tmp_path: Path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.yaml").write_text(f"sessiondb: {{url: {tmp_path}/other/sessions.db}}\n")
    context = CommandContext(settings=Settings(home=str(tmp_path / "home")), command="sessions show")
    error = StorageCorruptError(str(tmp_path / "other" / "sessions.db"), "is damaged")
    assert context.failure_of(error).what_next == MEND_FILE
