"""Each command does what people type it for, on a store that nobody has open."""

import asyncio
import json
from pathlib import Path

import pytest

from gateway_sessions import Accepted, InboundMessage, SessionSource, SessionStore
from gateway_sessions.cli.exit_codes import Exit
from tests.integration.command_line.conftest import SAID, Gsess, key_of_person, source_of_person
from tests.raw_sql import execute_sql


def session_of(home: Path, number: int) -> str:
    row = execute_sql(
        home / "sessions.db", "SELECT session_id FROM entries WHERE session_key = ?", key_of_person(number)
    )[0]
    return str(row[0])


def count(home: Path, table: str) -> int:
    return int(execute_sql(home / "sessions.db", f"SELECT count(*) FROM {table}")[0][0])  # noqa: S608 -- ours


# sessions


def test_sessions_are_listed_with_titles_the_latest_first(gsess: Gsess, home: Path):
    ended = gsess("--home", home, "sessions", "list")
    assert ended.code == Exit.DONE
    assert ended.lines[0].split() == ["Title", "Preview", "Last", "Active", "ID"]
    assert "nobody's" in ended.lines[1]
    assert [line.split("  ")[0] for line in ended.lines[3:]] == ["my project", "refactoring auth"]
    assert session_of(home, 0) in ended.lines[-1]


def test_without_titles_the_list_says_where_sessions_come_from(gsess: Gsess, home: Path):
    ended = gsess("--home", home, "sessions", "list", "--source", "cli")
    assert ended.lines[0].split() == ["Preview", "Last", "Active", "Src", "ID"]
    said, *_, source, session_id = ended.lines[1].split()
    assert (said, source, session_id) == ("nobody's", "cli", "loose")


def test_a_list_says_that_there_is_more(gsess: Gsess, home: Path):
    ended = gsess("--home", home, "sessions", "list", "--limit", 2)
    assert len(ended.lines) == 3
    assert "--limit" in ended.err
    assert gsess("--home", home, "sessions", "list", "--limit", 2, "--json").json_answer["facts"] == {
        "more": True
    }


def test_what_strangers_wrote_moves_no_cursor_and_marks_nothing_up(gsess: Gsess, home: Path):
    for ended in (
        gsess("--home", home, "sessions", "list"),
        gsess("--home", home, "sessions", "show", session_of(home, 2)),
    ):
        assert "\x1b" not in ended.out
        assert "[bold]x" in ended.out


def test_a_session_is_shown_by_title_beginning_or_id(gsess: Gsess, home: Path):
    whole = session_of(home, 1)
    for text in ("my project", whole):
        ended = gsess("--home", home, "sessions", "show", text)
        assert whole in ended.out
        assert SAID[1] in ended.out
    assert gsess("--home", home, "sessions", "show", "loos").code == Exit.DONE


def test_a_session_is_shown_without_what_was_said_before(gsess: Gsess, home: Path):
    ended = gsess("--home", home, "sessions", "show", "my project", "-n", 1)
    assert "1 earlier message " in ended.out
    assert f"user: {SAID[1]}" not in ended.out


def test_a_search_shows_where_something_was_said(gsess: Gsess, home: Path):
    ended = gsess("--home", home, "sessions", "search", "refactor*")
    assert "refactoring auth" in ended.lines[0]
    assert ended.out.count("auth module") == 2
    found = gsess("search", "--home", home).code
    assert found == Exit.WRONG_USE
    assert (
        gsess("--home", home, "sessions", "search", "火车", "--role", "user", "--json").json_answer["facts"][
            "matches"
        ]
        == 1
    )
    assert "Nothing" in gsess("--home", home, "sessions", "search", "nowhere").err


def test_a_fuzzy_search_finds_what_is_misspelt_and_says_by_which_words(gsess: Gsess, home: Path):
    asked = ("--home", home, "sessions", "search", "moduel")
    assert "Nothing" in gsess(*asked).err
    found = gsess(*asked, "--fuzzy")
    assert found.out.count("auth module") == 2
    assert "Also looked for: module" in found.err
    answer = gsess(*asked, "--fuzzy", "--json").json_answer
    assert answer["facts"]["near_words"] == ["module"]
    wrong = gsess(*asked, "--fuzzy", "--substring")
    assert wrong.code == Exit.WRONG_USE
    assert "mode 'words' only" in wrong.err


def test_a_search_knows_times_and_sessions(gsess: Gsess, home: Path):
    asked = ("--home", home, "sessions", "search", "module", "--json")
    assert (
        gsess(*asked, "--since", "1h", "--session", "refactoring auth").json_answer["facts"]["matches"] == 2
    )
    assert gsess(*asked, "--until", "1h").json_answer["facts"]["matches"] == 0


def test_stats_count(gsess: Gsess, home: Path):
    ended = gsess("--home", home, "sessions", "stats")
    assert [line.split() for line in ended.lines[:3]] == [
        ["Sessions", "4"],
        ["Messages", "7"],
        ["Lanes", "3"],
    ]
    assert gsess("--home", home, "sessions", "stats", "--json").json_answer["facts"]["waiting"] == 3
    gsess("--home", home, "queue", "cancel", key_of_person(1), "--all", "--yes")
    assert gsess("--home", home, "sessions", "stats", "--json").json_answer["facts"]["waiting"] == 0


def test_a_session_is_renamed(gsess: Gsess, home: Path):
    assert gsess("--home", home, "sessions", "rename", "my project", "a", "better", "name").code == Exit.DONE
    assert "a better name" in gsess("--home", home, "sessions", "list").out


def test_a_session_is_deleted_when_that_is_confirmed(gsess: Gsess, home: Path):
    asked = gsess("--home", home, "sessions", "delete", "loose")
    assert (asked.code, count(home, "sessions")) == (Exit.DECLINED, 4)
    assert "Would delete loose" in gsess("--home", home, "sessions", "delete", "loose", "--dry-run").out
    assert count(home, "sessions") == 4
    assert gsess("-y", "--home", home, "sessions", "delete", "loose").out == "Deleted loose.\n"
    assert count(home, "sessions") == 3


def test_old_sessions_are_pruned_when_that_is_confirmed(gsess: Gsess, home: Path):
    execute_sql(home / "sessions.db", "UPDATE totals SET last_active = 0 WHERE session_id = 'loose'")
    old = ("--home", home, "sessions", "prune", "--older-than", "5w", "--dry-run")
    assert gsess(*old).lines == ["Would remove 0 ended sessions (0 messages, 0 B of text)."]
    told = ["Would remove 1 session, ended or not (1 message, 8 B of text):", "  loose"]
    assert gsess(*old, "--unended").lines == told
    execute_sql(home / "sessions.db", "UPDATE sessions SET ended_at = 0 WHERE session_id = 'loose'")
    assert gsess(*old).lines == ["Would remove 1 ended session (1 message, 8 B of text):", "  loose"]
    assert gsess("--home", home, "sessions", "prune").code == Exit.DECLINED
    assert (
        gsess("--home", home, "sessions", "prune", "--json").json_answer["error"]["exit_code"]
        == Exit.DECLINED
    )
    assert count(home, "sessions") == 4
    assert "Removed 1 ended session " in gsess("--home", home, "sessions", "prune", "--yes").out
    assert count(home, "sessions") == 3


def test_a_reset_is_undone(gsess: Gsess, home: Path):
    before = session_of(home, 0)

    async def reset() -> None:
        async with SessionStore.open(home) as store:
            await store.reset_session(key_of_person(0))

    asyncio.run(reset())
    assert session_of(home, 0) != before
    assert gsess("--home", home, "sessions", "undo-reset", key_of_person(0)).code == Exit.DECLINED
    rehearsed = gsess("--home", home, "sessions", "undo-reset", key_of_person(0), "--dry-run")
    assert (rehearsed.code, rehearsed.out) == (
        Exit.DONE,
        f"Would let {key_of_person(0)} go on with {before} in place of {session_of(home, 0)}.\n",
    )
    assert session_of(home, 0) != before
    assert gsess("--home", home, "sessions", "undo-reset", key_of_person(0), "--yes").code == Exit.DONE
    assert session_of(home, 0) == before


def test_sessions_go_to_a_file_and_into_another_store(gsess: Gsess, home: Path, tmp_path: Path):
    file = tmp_path / "backup.jsonl"
    assert gsess("--home", home, "sessions", "export", file).out.startswith(
        "Exported 4 sessions with 7 messages"
    )
    assert gsess("--home", home, "sessions", "export", file).code == Exit.WRONG_USE
    rehearsed = gsess("--home", tmp_path / "new", "sessions", "import", file, "--dry-run")
    assert rehearsed.out.startswith("Would import 4 sessions")
    assert not (tmp_path / "new").exists()
    assert gsess("--home", tmp_path / "new", "sessions", "import", file).out.startswith("Imported 4 sessions")
    assert "4 were here already" in gsess("--home", tmp_path / "new", "sessions", "import", file).out
    file.write_bytes(file.read_bytes() + b"garbage\n")
    again = gsess("--home", tmp_path / "new", "sessions", "import", file)
    assert (again.code, "error: line 5" in again.out) == (Exit.FAILED, True)


def test_an_export_can_go_into_a_pipe(gsess: Gsess, home: Path):
    ended = gsess("--home", home, "sessions", "export", "-", "--session-id", "my project")
    (line,) = ended.lines
    assert json.loads(line)["title"] == "my project"
    assert "Exported 1 session " in ended.err
    assert "# " in gsess("--home", home, "sessions", "export", "-", "--format", "markdown").out


# queues


def test_what_waits_is_listed_and_cancelled(gsess: Gsess, home: Path):
    assert [line.split()[-1] for line in gsess("--home", home, "queue", "list").lines[1:]] == [
        "one",
        "two",
        "three",
    ]
    assert gsess("--home", home, "queue", "cancel", key_of_person(1), 2).code == Exit.DECLINED
    for chosen, told in ((2, "1 message"), ("--all", "3 messages")):
        rehearsed = gsess("--home", home, "queue", "cancel", key_of_person(1), chosen, "--dry-run")
        assert (rehearsed.code, rehearsed.out) == (Exit.DONE, f"Would cancel {told} on {key_of_person(1)}.\n")
    assert (
        gsess("--home", home, "queue", "cancel", key_of_person(1), 2, "--yes").out == "Cancelled 1 message.\n"
    )
    assert gsess("--home", home, "queue", "cancel", key_of_person(1), 2, "--yes").code == Exit.NOT_FOUND
    assert [
        line.split()[-1] for line in gsess("--home", home, "queue", "list", key_of_person(1)).lines[1:]
    ] == [
        "one",
        "three",
    ]
    assert (
        gsess("--home", home, "queue", "cancel", key_of_person(1), "--all", "--yes").out
        == "Cancelled 2 messages.\n"
    )
    assert "Nothing waits" in gsess("--home", home, "queue", "list").err


def test_what_was_given_up_waits_again(gsess: Gsess, home: Path):
    async def fail() -> None:
        async with SessionStore.open(home) as store:
            turn = await store.claim(key_of_person(1))
            assert turn is not None
            await turn.fail("broken")

    asyncio.run(fail())
    (letter,) = gsess("--home", home, "queue", "list", "--dead", "--json").json_answer["results"]
    assert "broken" in gsess("--home", home, "queue", "list", "--dead").out
    assert key_of_person(1) in gsess("--home", home, "queue", "requeue", letter["item_id"]).out
    assert "given up" in gsess("--home", home, "queue", "list", "--dead").err


# the database


def test_a_healthy_database_is_checked_and_needs_no_repair(gsess: Gsess, home: Path):
    assert gsess("--home", home, "sessiondb", "check").out == "Nothing is wrong.\n"
    assert gsess("--home", home, "sessiondb", "repair", "--yes").out == "Nothing had to be repaired.\n"


def test_a_damaged_database_is_found_and_mended(gsess: Gsess, home: Path):
    execute_sql(home / "sessions.db", "DELETE FROM totals WHERE session_id = 'loose'")
    found = gsess("--home", home, "sessiondb", "check")
    assert found.code == Exit.UNSOUND
    assert "sessiondb repair" in found.out
    assert gsess("--home", home, "doctor").code == Exit.UNSOUND
    assert "Would mend" in gsess("--home", home, "sessiondb", "repair", "--dry-run").out
    assert gsess("--home", home, "sessiondb", "repair").code == Exit.DECLINED
    assert gsess("--home", home, "sessiondb", "check").code == Exit.UNSOUND
    assert "mended" in gsess("--home", home, "sessiondb", "repair", "--yes").out
    assert gsess("--home", home, "sessiondb", "check").code == Exit.DONE


def test_a_store_moves(gsess: Gsess, home: Path, tmp_path: Path):
    new = tmp_path / "new"
    assert gsess("--home", home, "sessiondb", "migrate", new, "--dry-run").out.startswith(
        "Would migrate 4 sessions"
    )
    assert not new.exists()
    assert gsess("--home", home, "sessiondb", "migrate", new).out.startswith(
        "Migrated 4 sessions, 7 messages, "
    )
    assert gsess("sessiondb", "migrate", new / "sessions.db", "--from", home).out.startswith(
        "Checked 4 sessions"
    )
    assert gsess("--home", new, "sessions", "list").code == Exit.DONE
    refused = gsess("sessiondb", "migrate", home, "--from", new, "--json")
    assert (refused.code, refused.json_answer["error"]["kind"]) == (Exit.FAILED, "MigrationError")


@pytest.mark.parametrize(
    "command",
    ["sessions rename loose better", "sessions delete loose", "sessions prune", "queue requeue 1",
     "queue cancel agent:main:telegram:dm:1 --all", "sessions import {tmp}/none.jsonl", "import hermes {tmp}",
     "sessiondb migrate {tmp}/new", "sessiondb repair", "privacy erase main:telegram:user:u1",
     "sessions list", "chat --recap off"],
)  # fmt: skip
def test_every_command_takes_a_yes_and_asks_nothing_then(
    gsess: Gsess, home: Path, tmp_path: Path, command: str
):
    """Scripts say it always, and a script has nobody to ask."""
    (tmp_path / "none.jsonl").write_text("")
    ended = gsess("--home", home, *command.format(tmp=tmp_path).split(), "--yes")
    assert ended.code != Exit.DECLINED
    assert "such option" not in ended.err


# people


def test_a_person_is_told_and_forgotten(gsess: Gsess, home: Path, tmp_path: Path):
    owner = f"main:telegram:user:{source_of_person(1).user_id}"
    told = gsess("--home", home, "privacy", "export", "my project")
    assert [json.loads(line).get("lane", "-") for line in told.lines] == [key_of_person(1), "-"]
    gsess("--home", home, "privacy", "export", owner, tmp_path / "told.jsonl")
    assert (tmp_path / "told.jsonl").read_text("utf-8") == told.out
    assert (
        gsess("--home", home, "privacy", "export", key_of_person(2), tmp_path / "told.jsonl").code
        == Exit.WRONG_USE
    )
    assert (tmp_path / "told.jsonl").read_text("utf-8") == told.out
    assert (
        gsess("--home", home, "privacy", "export", key_of_person(2), tmp_path / "told.jsonl", "--force").code
        == Exit.DONE
    )
    assert (tmp_path / "told.jsonl").read_text("utf-8") != told.out
    assert (
        f"Would forget {owner}: 1 session,"
        in gsess("--home", home, "privacy", "erase", key_of_person(1), "--dry-run").out
    )
    assert gsess("--home", home, "privacy", "erase", owner).code == Exit.DECLINED
    assert count(home, "sessions") == 4
    receipt = gsess("--home", home, "privacy", "erase", owner, "--yes")
    assert "1 session, " in receipt.out
    assert count(home, "sessions") == 3


# configuration and the whole


def test_a_configuration_is_checked_and_explained(gsess: Gsess, home: Path, monkeypatch: pytest.MonkeyPatch):
    assert "no file" in gsess("--home", home, "config", "validate").out
    (home / "config.yaml").write_text("timezone: UTC\nsessiondb:\n  url: sqlite:////x/y\n")
    assert gsess("--home", home, "config", "validate").out == f"{home / 'config.yaml'} is right.\n"
    monkeypatch.setenv("GATEWAY_SESSIONS__SESSION_RESET__AT_HOUR", "5")
    told = gsess("--home", home, "config", "explain", "--set").lines
    assert [line.split()[:2] for line in told[1:]] == [
        ["timezone", "UTC"],
        ["session_reset.at_hour", "5"],
        ["sessiondb.url", "sqlite:////x/y"],
    ]
    assert "GATEWAY_SESSIONS__SESSION_RESET__AT_HOUR" in told[2]
    assert "line 3" in told[3]
    assert [
        line.split()[0] for line in gsess("--home", home, "config", "explain", "sessiondb", "--set").lines[1:]
    ] == ["sessiondb.url"]


def test_what_nobody_has_set_is_explained_as_the_default(gsess: Gsess, tmp_path: Path):
    file = tmp_path / "c.yaml"
    file.write_text(
        "session_reset: {mode: idle}\nsessions_json: 'off'\nprivacy:\nplatforms: {sms: {enabled: false}}\n"
    )
    told = gsess("config", "explain", "--file", file).lines
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in told[1:]}
    assert rows["session_reset.mode"] == ["idle", f"{file}, line 1"]
    assert rows["session_reset.idle_minutes"] == ["1440", "default"]
    assert rows["agent.gateway_timeout"] == ["1800", "default"]
    assert rows["session_store_max_age_days"] == ["0", "default"]
    assert rows["model.api_key"] == ["null", "default"]
    assert rows["session_reset.notify_exclude_platforms"] == ["[api_server,", "webhook]  default"]
    assert rows["sessions_json"] == ["off", f"{file}, line 2"]
    assert ("sessions_json.mode" in rows, rows["sessions_json.interval_seconds"]) == (False, ["1", "default"])
    assert ("privacy" in rows, rows["privacy.redact_pii"]) == (False, ["false", "default"])
    assert rows["platforms.sms.enabled"] == ["false", f"{file}, line 4"]
    one = gsess("config", "explain", "--file", file, "session_reset.at_hour", "--json").json_answer
    assert one["results"] == [
        {"key": "session_reset.at_hour", "value": "4", "where": "default", "is_set": False}
    ]


def test_a_word_for_all_resets_leaves_no_default_of_them(gsess: Gsess, tmp_path: Path):
    file = tmp_path / "c.yaml"
    file.write_text("session_reset: never\n")
    told = gsess("config", "explain", "--file", file, "session_reset").lines
    assert [line.split()[:2] for line in told[1:]] == [["session_reset", "never"]]


def test_where_nothing_is_set_the_reader_is_told_what_counts(gsess: Gsess, home: Path):
    for asked, counts in (
        ("platforms.sms.busy.mode", "what is set above it counts"),
        ("platforms.sms.enabled", "the defaults count"),
    ):
        ended = gsess("--home", home, "config", "explain", asked)
        assert (ended.code, counts in ended.err) == (Exit.DONE, True)


def test_a_platform_that_is_nearly_a_known_one_is_warned_of(gsess: Gsess, tmp_path: Path):
    file = tmp_path / "c.yaml"
    file.write_text(
        "platforms:\n  telegrm:\n    enabled: true\n"
        "  slack: {chat_types: {chanel: {}}}\n  shop: {}\n  SMS: {}\n"
        "session_reset: {notify_exclude_platforms: [webhok, shop]}\n"
    )
    ended = gsess("config", "validate", file)
    assert (ended.code, ended.out) == (Exit.DONE, f"{file} is right.\n")
    assert (
        "line 2: platforms.telegrm: is no platform that is well known (did you mean 'telegram'?)" in ended.err
    )
    assert "(did you mean 'channel'?)" in ended.err
    assert "(did you mean 'webhook'?)" in ended.err
    assert ended.err.count("Warning") == 3
    warned = gsess("config", "validate", file, "--json").json_answer["facts"]["warnings"]
    assert [one["suggestion"] for one in warned] == ["telegram", "channel", "webhook"]


def test_the_configuration_shows_no_password(gsess: Gsess, tmp_path: Path):
    file = tmp_path / "c.yaml"
    file.write_text("sessiondb:\n  provider: postgresql\n  url: postgresql://me:secret@host/db\n")
    assert "secret@" not in gsess("config", "explain", "--file", file).out


async def test_the_doctor_counts_like_people_do(gsess: Gsess, tmp_path: Path):
    async with SessionStore.open(tmp_path / "one") as store:
        source = SessionSource(platform="irc", chat_id="1")
        assert isinstance(await store.enqueue(InboundMessage(source=source, text="hello")), Accepted)
    shown = (await asyncio.to_thread(gsess, "--home", tmp_path / "one", "doctor")).out
    assert ", 1 lane\n" in shown
    assert "1 turn waits" in shown


def test_the_doctor_finds_a_store_well(gsess: Gsess, home: Path):
    ended = gsess("--home", home, "doctor")
    assert ended.code == Exit.DONE
    assert "✗" not in ended.out
    assert {one["health"] for one in gsess("--home", home, "doctor", "--json").json_answer["results"]} <= {
        "good",
        "warning",
    }


@pytest.mark.parametrize(
    "command",
    [
        ("sessions", "list"), ("sessions", "search", "x"), ("sessions", "stats"),
        ("sessions", "prune", "--dry-run"),
        ("sessions", "export", "-"), ("insights",), ("queue", "list"), ("queue", "list", "--dead"),
        ("sessiondb", "check"), ("config", "validate"), ("config", "explain"), ("doctor",),
        ("explain", "agent:main:telegram:dm:7"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_an_empty_store_is_no_problem(gsess: Gsess, empty: Path, command: tuple[str, ...]):
    ended = gsess("--home", empty, *command)
    assert ended.code == Exit.DONE
    if "-" not in command:
        assert gsess(*command, "--json", "--home", empty).json_answer["ok"] is True


def test_a_rehearsal_of_a_deletion_ends_as_the_deletion_would(gsess: Gsess, home: Path):
    current = session_of(home, 0)
    for option in ("--dry-run", "--yes"):
        ended = gsess("--home", home, "sessions", "delete", current, option)
        assert (ended.code, "--end" in ended.err) == (Exit.BUSY, True)
    assert count(home, "sessions") == 4


def test_the_current_session_of_a_lane_is_ended_and_deleted_when_that_is_asked_for(gsess: Gsess, home: Path):
    current = session_of(home, 0)
    told = gsess("--home", home, "sessions", "delete", current, "--end", "--dry-run").out
    assert told.startswith(f"Would delete {current}")
    assert key_of_person(0) in told
    assert session_of(home, 0) == current
    assert gsess("--home", home, "sessions", "delete", current, "--end").code == Exit.DECLINED
    assert gsess("--home", home, "sessions", "delete", current, "--end", "--yes").code == Exit.DONE
    assert session_of(home, 0) != current
    assert gsess("--home", home, "sessions", "show", current).code == Exit.NOT_FOUND


def test_a_store_of_ours_is_no_home_of_hermes(gsess: Gsess, home: Path, tmp_path: Path):
    for option in ((), ("--dry-run",)):
        ended = gsess("--home", tmp_path / "new", "import", "hermes", home, *option)
        assert (ended.code, "is a store of gateway_sessions" in ended.err) == (Exit.WRONG_USE, True)
    assert not (tmp_path / "new").exists()


def test_a_key_that_does_not_exist_is_said_so(gsess: Gsess, home: Path):
    for wrong in ("nosuch.key", "session_reset.idle_minute", "serve.nothing"):
        ended = gsess("--home", home, "config", "explain", wrong)
        assert (ended.code, "there is no key" in ended.err) == (Exit.WRONG_USE, True)
    near = gsess("--home", home, "config", "explain", "session_reset.idle_minute")
    assert "did you mean 'session_reset.idle_minutes'?" in near.err
    for right in ("session_reset", "session_reset.idle_minutes", "platforms.telegram", "timezone"):
        assert gsess("--home", home, "config", "explain", right).code == Exit.DONE


def test_a_title_that_is_taken_away_is_told(gsess: Gsess, home: Path):
    assert "'mine'" in gsess("--home", home, "sessions", "rename", "loose", "mine").out
    assert gsess("--home", home, "sessions", "rename", "loose", "").out == "loose has no title now.\n"


def test_a_rehearsed_repair_ends_as_a_check_does(gsess: Gsess, home: Path):
    assert gsess("--home", home, "sessiondb", "repair", "--dry-run").code == Exit.DONE
    execute_sql(home / "sessions.db", "UPDATE entries SET record = '{'")
    for words in (("check",), ("repair", "--dry-run")):
        assert gsess("--home", home, "sessiondb", *words).code == Exit.UNSOUND
