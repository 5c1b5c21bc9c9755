"""A configuration comes from a file, and the machine's zone from its settings."""

from pathlib import Path

import pytest

from gateway_sessions.config import Config, load_config, system_zone_name
from gateway_sessions.errors import ConfigError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


class TestLoading:
    def test_the_file_is_read_and_then_the_environment(self, path: Path) -> None:
        path.write_text(
            "cache: {entries: 5}\nhooks: {concurrency: ${N}}\n".replace(
                "{concurrency: ${N}}", "\n  concurrency: ${N}"
            )
        )
        config = load_config(path, environ={"N": "2", "GATEWAY_SESSIONS__CACHE__ENTRIES": "6"})
        assert (config.cache.entries, config.hooks.concurrency) == (6, 2)

    def test_without_a_file_there_are_the_defaults_and_the_environment(self) -> None:
        assert load_config(environ={}) == Config()
        assert load_config(environ={"SESSION_RESET_HOUR": "6"}).session_reset.at_hour == 6

    def test_the_environment_is_that_of_the_process_unless_one_is_given(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path.write_text("")
        monkeypatch.setenv("GATEWAY_SESSIONS__CACHE__ENTRIES", "7")
        assert load_config(str(path)).cache.entries == 7
        assert load_config(path, environ={}).cache.entries == 4096

    def test_a_mark_of_the_byte_order_is_no_part_of_the_text(self, path: Path) -> None:
        path.write_bytes(b"\xef\xbb\xbfcache: {entries: 5}\r\n")
        assert load_config(path, environ={}).cache.entries == 5

    def test_errors_name_the_file(self, path: Path) -> None:
        path.write_text("cash: {}")
        with pytest.raises(ConfigError) as caught:
            load_config(path, environ={})
        assert caught.value.origin == str(path)

    def test_a_file_that_is_missing_is_told(self, path: Path) -> None:
        with pytest.raises(ConfigError, match="cannot be read: No such file"):
            load_config(path, environ={})

    def test_a_folder_is_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="cannot be read"):
            load_config(tmp_path, environ={})

    def test_bytes_that_are_no_text_are_told_with_their_line(self, path: Path) -> None:
        path.write_bytes(b"cache: {}\nhooks: \xff\n")
        with pytest.raises(ConfigError) as caught:
            load_config(path, environ={})
        assert [(one.path, one.line) for one in caught.value.problems] == [("file", 2)]

    def test_a_file_that_never_ends_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="larger than"):
            load_config("/dev/zero", environ={})


class TestSystemZone:
    @pytest.fixture
    def etc(self, tmp_path: Path) -> Path:
        (tmp_path / "localtime").symlink_to("/usr/share/zoneinfo/Europe/Berlin")
        (tmp_path / "timezone").write_text("Asia/Tokyo\n")
        return tmp_path

    @pytest.mark.parametrize(
        ("variable", "zone"),
        [
            ("America/Lima", "America/Lima"),
            (":America/Lima", "America/Lima"),
            (":/usr/share/zoneinfo/America/Lima", "America/Lima"),
            ("", "UTC"),
            ("<-03>3", "Europe/Berlin"),
            (":/etc/localtime", "Europe/Berlin"),
            ("../../etc/passwd", "Europe/Berlin"),
        ],
    )
    def test_the_variable_wins_if_it_names_a_zone(self, etc: Path, variable: str, zone: str) -> None:
        assert system_zone_name({"TZ": variable}, etc=etc) == zone

    def test_the_link_that_the_c_library_follows_wins_over_the_name_beside_it(self, etc: Path) -> None:
        assert system_zone_name({}, etc=etc) == "Europe/Berlin"

    def test_the_name_counts_where_there_is_no_link(self, etc: Path) -> None:
        (etc / "localtime").unlink()
        (etc / "localtime").write_bytes(b"TZif")
        assert system_zone_name({}, etc=etc) == "Asia/Tokyo"

    @pytest.mark.parametrize("content", [b"", b"Mars/Olympus\n", b"\xff\xfe"])
    def test_a_machine_that_says_nothing_useful_is_in_utc(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "localtime").symlink_to("/somewhere/else")
        (tmp_path / "timezone").write_bytes(content)
        assert system_zone_name({}, etc=tmp_path) == "UTC"

    def test_a_machine_without_settings_is_in_utc(self, tmp_path: Path) -> None:
        assert system_zone_name({}, etc=tmp_path) == "UTC"

    def test_the_policies_of_a_configuration_are_in_the_zone_of_the_machine(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TZ", "America/Lima")
        assert Config().policy_book().zone_name == "America/Lima"
        assert Config(timezone="Asia/Tokyo").policy_book().zone_name == "Asia/Tokyo"
