"""What in rows cannot be read: told by a look at a store, and mended, while it stays in the quarantine."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import (
    Accepted,
    InboundMessage,
    InvalidInputError,
    Scope,
    SessionSource,
    SessionStore,
)
from gateway_sessions.errors import StorageCorruptError
from gateway_sessions.operator import RepairReport, check_store, repair_store
from gateway_sessions.storage.api.erasure import Eraser
from tests.raw_sql import change_rows

ANN = SessionSource(platform="telegram", chat_id="1", user_id="ann", chat_name="Ann Lee")
BOB = SessionSource(platform="telegram", chat_id="2", user_id="bob")


async def furnished(home: Path) -> str:
    """A store in which Ann has said something, and said something else that waits; her session."""
    async with SessionStore.open(home) as store:
        entry = await store.get_or_create_session(ANN)
        await store.db.append_message(
            entry.session_id, "user", "hello", platform_message_id="m1", reasoning_details=[{"a": 1}]
        )
        assert isinstance(await store.enqueue(InboundMessage(source=ANN, text="more")), Accepted)
        await store.get_or_create_session(BOB)
        await store.db.back_up()
    return entry.session_id


def in_quarantine(report: RepairReport) -> list[dict[str, object]]:
    return [json.loads(line) for path in report.quarantine for line in path.read_text().splitlines()]


async def test_a_lane_with_a_damaged_entry_goes_on_as_sessions_json_shows_it(home: Path):
    session_id = await furnished(home)
    change_rows(home / "sessions.db", "UPDATE entries SET record = '{' WHERE session_id = ?", session_id)
    told = f"1 row of entries of which record cannot be read: {await key_of(home, ANN)}"
    async with SessionStore.open(home) as store:
        with pytest.raises(StorageCorruptError, match="its entry is damaged"):
            await store.get_session(store.key_for(ANN))
    assert (await check_store(home)).found == (told,)
    report = await repair_store(home)
    assert (report.found, report.done[:1], report.lost) == ((told,), (f"mended: {told}",), ())
    (kept,) = in_quarantine(report)
    assert kept["row"]["record"] == "{"
    async with SessionStore.open(home) as store:
        entry = await store.get_or_create_session(ANN)
        assert (entry.session_id, entry.display_name) == (session_id, "Ann Lee")
        assert entry.origin == ANN
    assert (await check_store(home)).healthy


async def test_without_sessions_json_it_goes_on_with_what_is_known(home: Path):
    session_id = await furnished(home)
    change_rows(
        home / "sessions.db",
        "UPDATE entries SET record = '{', due_at = ? WHERE session_id = ?",
        1 << 62,
        session_id,
    )
    for path in home.glob("sessions.json*"):
        path.unlink()
    report = await repair_store(home)
    assert [line.partition(" of which ")[2].split()[0] for line in report.lost] == ["due_at", "record"]
    async with SessionStore.open(home) as store:
        entry = await store.get_or_create_session(ANN)
        assert (entry.session_id, entry.origin) == (session_id, ANN)
        assert [row["content"] for row in await store.load_transcript(session_id)] == ["hello"]
        assert await store.queue_depth(entry.session_key) == 1


@pytest.mark.parametrize("suspended", [True, False])
async def test_sessions_json_tells_whether_a_session_may_go_on(home: Path, *, suspended: bool):
    session_id = await furnished(home)
    if suspended:
        await suspend(home)
    change_rows(home / "sessions.db", "UPDATE entries SET state = '?' WHERE session_id = ?", session_id)
    report = await repair_store(home)
    assert (len(report.found), report.lost) == (1, ())
    async with SessionStore.open(home) as store:
        entry = await store.get_session(store.key_for(ANN))
        assert entry is not None
        assert entry.suspended == suspended
        assert ((await store.get_or_create_session(ANN)).session_id != session_id) == suspended


@pytest.mark.parametrize("shown", ["nothing", "another session", "what was before"])
async def test_a_session_of_which_nobody_knows_whether_it_may_go_on_does_not(home: Path, shown: str):
    session_id = await furnished(home)
    index = home / "sessions.json"
    before = index.read_text()
    await suspend(home)
    if shown == "nothing":
        index.unlink()
    else:
        index.write_text(before if shown == "what was before" else before.replace(session_id, "another"))
    change_rows(home / "sessions.db", "UPDATE entries SET state = '?' WHERE session_id = ?", session_id)
    report = await repair_store(home)
    (lost,) = report.lost
    assert "of which state cannot be read" in lost
    async with SessionStore.open(home) as store:
        new = await store.get_or_create_session(ANN)
        assert (new.session_id != session_id, new.auto_reset_reason) == (True, "suspended")
        assert await store.queue_depth(new.session_key) == 1
        assert (await store.undo_reset(new.session_key)).session_id == session_id


async def suspend(home: Path) -> None:
    async with SessionStore.open(home) as store:
        assert await store.suspend_session(store.key_for(ANN))


async def test_what_is_readable_of_a_message_stays(home: Path):
    session_id = await furnished(home)
    change_rows(home / "sessions.db", "UPDATE messages SET reasoning_details = '[', sent_at = ?", 1 << 62)
    assert len((await check_store(home)).found) == 2
    report = await repair_store(home)
    assert len(report.lost) == 2
    async with SessionStore.open(home) as store:
        (message,) = await store.db.get_messages(session_id)
    assert (message.text, message.platform_message_id, message.reasoning_details) == ("hello", "m1", None)


async def test_a_message_that_nobody_can_read_waits_no_longer(home: Path):
    await furnished(home)
    change_rows(home / "sessions.db", "UPDATE inbox SET payload = '[]'")
    report = await repair_store(home)
    assert "1 row of inbox of which payload cannot be read" in report.lost[0]
    async with SessionStore.open(home) as store:
        assert await store.queue_depth(store.key_for(ANN)) == 0
        (letter,) = await store.dead_letters()
        assert (letter.message, letter.problem) == (None, "it was damaged, and set aside by a repair")


async def test_text_that_is_none_is_read_again_after_a_repair(home: Path):
    session_id = await furnished(home)
    change_rows(home / "sessions.db", "UPDATE messages SET content = CAST(? AS TEXT)", b"hel\xfflo")
    found = (await check_store(home)).found
    assert len(found) == 1
    assert "messages of which content as text cannot be read" in found[0]
    report = await repair_store(home)
    assert report.lost == ()
    (kept,) = in_quarantine(report)
    assert kept["row"]["content"] == "aGVs/2xv"  # in base64, as bytes are
    async with SessionStore.open(home) as store:
        (message,) = await store.db.get_messages(session_id)
    assert message.text == "hel\ufffdlo"


async def test_a_damaged_key_that_reads_like_another_one_gives_way(home: Path):
    await furnished(home)
    for key in (b"lane\xff", b"lane\xfe"):
        change_rows(home / "sessions.db", "INSERT INTO lanes (session_key) VALUES (CAST(? AS TEXT))", key)
    report = await repair_store(home)
    assert report.lost == ("a row of lanes: as it can be read, there is another like it",)
    assert len(in_quarantine(report)) == 2
    assert (await check_store(home)).healthy


@pytest.mark.parametrize("name", ["epoch", "install_secret", "generation", "settled_epoch"])
async def test_a_store_opens_again_whose_facts_were_damaged(home: Path, name: str):
    session_id = await furnished(home)
    change_rows(home / "sessions.db", "UPDATE meta SET value = '{' WHERE name = ?", name)
    told = f"the fact {name!r} about the store cannot be read"
    assert (await check_store(home)).found == (told,)
    report = await repair_store(home)
    assert (report.found, report.lost) == ((told,), ())
    async with SessionStore.open(home) as store:
        assert (await store.get_or_create_session(ANN)).session_id == session_id
        new = await store.reset_session(store.key_for(ANN))
        assert new.session_id != session_id
    async with SessionStore.open(home) as store:
        assert (await store.get_or_create_session(ANN)).session_id == new.session_id


@pytest.mark.parametrize("name", ["schema_version", "readable_from"])
async def test_a_file_that_does_not_say_its_version_is_rebuilt(home: Path, name: str):
    session_id = await furnished(home)
    change_rows(home / "sessions.db", "UPDATE meta SET value = 'x' WHERE name = ?", name)
    report = await check_store(home)
    assert (report.found, report.damaged) == (("the file does not know its own version",), True)
    assert (await repair_store(home)).lost == ()
    async with SessionStore.open(home) as store:
        assert (await store.get_or_create_session(ANN)).session_id == session_id


async def test_a_secret_that_no_copy_tells_is_lost_and_said_to_be(home: Path):
    await furnished(home)
    change_rows(home / "sessions.db", "UPDATE meta SET value = '{' WHERE name = 'install_secret'")
    for path in (home / "backups").iterdir():
        path.write_bytes(b"")
    report = await repair_store(home)
    assert report.lost == (
        "the fact 'install_secret' about the store cannot be read, and no copy of the store tells it",
    )
    with pytest.raises(StorageCorruptError, match="install_secret"):
        async with SessionStore.open(home):
            pass


async def cut_off(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin to forget Ann, and go no further than the plan."""

    async def fails(_: Eraser, *__: object) -> None:
        raise ConnectionAbortedError

    async with SessionStore.open(home) as store:
        with monkeypatch.context() as patch:
            patch.setattr(Eraser, "_erase_rows", fails)
            with pytest.raises(ConnectionAbortedError):
                await store.db.erase("main:telegram:user:ann")


SPOILT_PLANS = {
    "no plan": "value = '{'",
    "that of somebody else": "name = name || '0'",
    "no text": "value = CAST(replace(value, 'user:ann', 'user:' || CAST(x'ff' AS TEXT)) AS TEXT)",
    "no name": "name = CAST(name || CAST(x'ff' AS TEXT) AS TEXT)",
}


@pytest.mark.parametrize("damage", SPOILT_PLANS)
async def test_an_erasure_of_which_the_plan_is_gone_is_lost_and_can_be_asked_for_again(
    home: Path, monkeypatch: pytest.MonkeyPatch, damage: str
):
    session_id = await furnished(home)
    await cut_off(home, monkeypatch)
    change_rows(home / "sessions.db", f"UPDATE meta SET {SPOILT_PLANS[damage]} WHERE name LIKE 'erasing:%'")  # noqa: S608
    assert len((await check_store(home)).found) == 1
    report = await repair_store(home)
    (lost,) = report.lost
    assert lost.startswith("the fact 'erasing:")
    assert lost.endswith("ask for that erasure again")
    assert not [one for one in report.done if "the fact" in one]
    assert in_quarantine(report)
    assert (await check_store(home)).healthy
    async with SessionStore.open(home) as store:
        assert await store.db.unfinished_erasures() == 0
        assert await store.db.message_count(session_id) == 1
        await store.erase(ANN)
        assert await store.db.get_session(session_id) is None


async def key_of(home: Path, source: SessionSource) -> str:
    async with SessionStore.open(home) as store:
        return store.key_for(source)


async def test_one_damaged_entry_hides_no_other(home: Path, caplog: pytest.LogCaptureFixture):
    session_id = await furnished(home)
    damaged = await key_of(home, ANN)
    change_rows(home / "sessions.db", "UPDATE entries SET record = '{' WHERE session_id = ?", session_id)
    async with SessionStore.open(home) as store:
        cleo = await store.get_or_create_session(replace(BOB, chat_id="3", user_id="cleo"))
        await store.flush()
        everybody = Scope.operator()
        pages = [await store.list_sessions(scope=everybody, limit=1)]
        while pages[-1]:
            pages.append(await store.list_sessions(scope=everybody, limit=1, after=pages[-1][-1]))
        listed = [entry.session_key for page in pages for entry in page]
        others = {store.key_for(BOB), cleo.session_key}
        assert set(listed) == others
        assert len(listed) == len(await store.list_sessions(scope=everybody)) == len(others)
        shown = json.loads((home / "sessions.json").read_bytes())
        assert list(shown) == [*sorted({*others, damaged}), "_meta"]
        assert shown[damaged]["session_id"] == session_id, "a repair goes by what the file shows"
    told = [record.getMessage() for record in caplog.records if "left aside" in record.getMessage()]
    assert all(damaged in one for one in told)
    assert told


async def test_a_session_whose_row_is_damaged_is_left_out_of_a_list(home: Path):
    await furnished(home)
    async with SessionStore.open(home) as store:
        for name in ("one", "two", "three"):
            await store.db.create_session(name, "cli")
    change_rows(home / "sessions.db", "UPDATE sessions SET relation = 'stepchild' WHERE session_id = 'two'")
    async with SessionStore.open(home) as store:
        everybody = Scope.operator()
        for by_activity in (True, False):
            listed = await store.db.list_sessions_rich(
                scope=everybody, order_by_last_active=by_activity, source="cli"
            )
            assert {one.session_id for one in listed} == {"one", "three"}
        with pytest.raises(StorageCorruptError, match="two"):
            await store.db.get_session("two")


@pytest.mark.parametrize("wrong", [False, 0, 1.5, b"", (), [], {}, object], ids=repr)
async def test_no_setter_stores_what_nobody_could_read_again(home: Path, wrong: Any):
    async with SessionStore.open(home) as store:
        entry = await store.get_or_create_session(ANN)
        key, session_id = entry.session_key, entry.session_id
        attempts = {
            "zone": lambda: store.set_zone(key, wrong),
            "policy": lambda: store.set_reset_policy(key, wrong),
            "title": lambda: store.db.set_session_title(session_id, wrong),
            "system_prompt": lambda: store.db.update_system_prompt(session_id, wrong),
            "mode": lambda: store.set_busy_mode(key, wrong),
            "reason": lambda: store.suspend_session(key, wrong),
        }
        if wrong is not False:
            attempts["pinned"] = lambda: store.db.set_session_pinned(session_id, pinned=wrong)
            attempts["archived"] = lambda: store.db.set_session_archived(session_id, archived=wrong)
        if not isinstance(wrong, dict):
            attempts["override"] = lambda: store.set_model_override(key, wrong)
        for name, attempt in attempts.items():
            with pytest.raises(InvalidInputError, match=name):
                await attempt()
        after = await store.get_session(key)
    assert after == entry
    assert (await check_store(home)).healthy
