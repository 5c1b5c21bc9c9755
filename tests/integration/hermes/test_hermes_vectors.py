"""What Hermes 0.19 answers, as recorded by running it, compared with what we answer."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from gateway_sessions import (
    Config,
    Scope,
    SessionResetPolicy,
    SessionSource,
    SessionStore,
    build_session_key,
)
from gateway_sessions.config import AgentConfig, Durability, SessionDBConfig
from gateway_sessions.core.identity.hermes_keys import hermes_key
from gateway_sessions.core.identity.keys import (
    Isolation,
    identity_key,
    ids_to_resolve,
    normalize_whatsapp_id,
    session_key,
)
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.core.sessions.reset_policy import reset_due
from gateway_sessions.errors import InvalidSourceError, UnidentifiedSourceError
from gateway_sessions.runtime.queue.aliases import canonical_id
from gateway_sessions.sessions import is_shared_multi_user_session
from gateway_sessions.storage.tables.change import Actor
from gateway_sessions.storage.transactions.sessions import expire
from gateway_sessions.testing import FakeClock
from tests.integration.hermes.deliberate_differences import (
    DIFFERENCES,
    Difference,
    difference_for,
    differences_of_section,
)
from tests.raw_sql import execute_sql

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "hermes_vectors.json").read_text(encoding="utf-8"))
QUICK = SessionDBConfig(durability=Durability.OS)

Vector = dict[str, Any]


def source_of(fields: Vector) -> SessionSource:
    return SessionSource.from_dict({"chat_id": ""} | fields)


def compare(section: str, answers: Iterable[tuple[Vector, Any, Any]]) -> None:
    """Ours must be Hermes' answer, except where a listed difference says another; each has to occur."""
    unseen = {one.name for one in differences_of_section(section)}
    for vector, theirs, ours in answers:
        difference: Difference | None = difference_for(section, vector)
        if difference is None:
            assert ours == theirs, vector
            continue
        assert ours == difference.ours(vector), (difference.name, vector)
        assert ours != theirs, (difference.name, vector)
        unseen.discard(difference.name)
    assert not unseen


def test_the_list_of_differences_is_one_of_reasons():
    assert len({one.name for one in DIFFERENCES}) == len(DIFFERENCES)
    assert {one.section for one in DIFFERENCES} <= set(VECTORS)
    assert all(len(one.reason.split()) > 5 for one in DIFFERENCES)


class TestKeys:
    def test_they_are_those_of_hermes_byte_for_byte(self):
        for vector in VECTORS["keys"]:
            assert (
                build_session_key(source_of(vector["source"]), **vector.get("flags", {})) == vector["key"]
            ), vector

    def test_they_differ_where_separators_stand_inside_a_part(self):
        section = "deliberate_differences"
        compare(
            section,
            (
                (one, one["key"], build_session_key(source_of(one["source"]), **one.get("flags", {})))
                for one in VECTORS[section]
            ),
        )

    def test_each_of_them_is_spelt_as_there_on_the_way_back(self):
        for vector in (*VECTORS["keys"], *VECTORS["deliberate_differences"]):
            source, flags = source_of(vector["source"]), Isolation(**vector.get("flags", {}))
            for ours in (session_key(source, flags), identity_key(source, flags)):
                assert hermes_key(ours) == vector["key"], vector

    def test_what_collides_there_is_told_apart_here(self):
        theirs, ours = defaultdict(set), set()
        for vector in VECTORS["deliberate_differences"]:
            one = identity_key(source_of(vector["source"]), Isolation(**vector.get("flags", {})))
            theirs[vector["key"]].add(one)
            ours.add(one)
        assert any(len(identities) > 1 for identities in theirs.values())
        assert len(ours) == len(VECTORS["deliberate_differences"])

    def test_whatsapp_ids_are_resolved_alike(self, tmp_path):
        compare("whatsapp_keys", self._whatsapp_answers(tmp_path))

    def _whatsapp_answers(self, root: Path):
        for number, vector in enumerate(VECTORS["whatsapp_keys"]):
            folder = root / str(number)
            folder.mkdir()
            for name, content in vector["alias_files"].items():
                (folder / name).write_text(json.dumps(content))
            for given, canonical in vector["canonical"].items():
                assert canonical in (None, canonical_id([folder], normalize_whatsapp_id(given)))
            source = source_of(vector["source"])
            aliases = {one: canonical_id([folder], one) for one in ids_to_resolve(source)}
            yield vector, vector.get("key", vector.get("error")), build_session_key(source, aliases=aliases)

    def test_without_an_identifier_the_key_is_theirs(self):
        for vector in VECTORS["keys_without_identifier"]:
            assert build_session_key(source_of(vector["source"])) == vector["key"]

    async def test_without_an_identifier_there_is_no_session(self, session_store):
        async def answer(fields: Vector) -> str:
            try:
                return (await session_store.get_or_create_session(source_of(fields))).session_key
            except UnidentifiedSourceError as error:
                return type(error).__name__

        section = "keys_without_identifier"
        compare(section, [(one, one["key"], await answer(one["source"])) for one in VECTORS[section]])

    async def test_without_an_identifier_there_is_theirs_if_that_is_allowed(self, tmp_path, fake_clock):
        config = Config(sessiondb=QUICK, allow_unidentified_sources=True)
        async with SessionStore.open(tmp_path, config, clock=fake_clock) as store:
            for vector in VECTORS["keys_without_identifier"]:
                entry = await store.get_or_create_session(source_of(vector["source"]))
                assert entry.session_key == vector["key"]

    def test_who_shares_a_session(self):
        compare(
            "shared",
            (
                (one, one["shared"], is_shared_multi_user_session(source_of(one["source"]), **one["flags"]))
                for one in VECTORS["shared"]
            ),
        )


class TestSources:
    def test_they_are_stored_and_described_alike(self):
        for vector in VECTORS["sources"]:
            source = source_of(vector["source"])
            assert list(source.to_dict().items()) == list(vector["dict"].items()), vector
            assert source.description == vector["description"]

    def test_what_was_stored_is_read_alike(self):
        def answer(stored: Vector) -> Any:
            try:
                return SessionSource.from_dict(stored).to_dict()
            except InvalidSourceError as error:
                return type(error).__name__

        section = "sources_read"
        compare(
            section,
            ((one, one.get("dict", one.get("error")), answer(one["stored"])) for one in VECTORS[section]),
        )


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


class Clocks:
    def __init__(self, last: str) -> None:
        self.last_interaction_at = utc(last)
        self.deferred_boundary = None


def test_policies_ask_for_resets_alike():
    for vector in VECTORS["resets"]:
        policy = SessionResetPolicy.from_dict(vector["policy"])
        due = reset_due(policy, Clocks(vector["updated_at"]), utc(vector["now"]), UTC)
        assert (due.reason if due else None) == vector["reason"], vector


WINDOWS = {"0": None, "-1": None, "60": timedelta(minutes=1)}


def settings_of(decision: Vector) -> str:
    names = ("policy", "freshness_window", "active_processes", "force_new")
    return json.dumps([decision.get(name) for name in names])


async def decide(decisions: list[Vector], home: Path) -> list[tuple[Vector, Any, Any]]:
    """One store whose lanes are read from a file as Hermes wrote it; each lane gets one message."""
    first = decisions[0]
    sources = [SessionSource(platform="telegram", chat_id=f"c{number}") for number in range(len(decisions))]
    write_index(
        home, {build_session_key(source): one for source, one in zip(sources, decisions, strict=True)}
    )
    config = Config(
        timezone="UTC",
        sessiondb=QUICK,
        session_reset=SessionResetPolicy.from_dict(first["policy"]),
        agent=AgentConfig(
            gateway_auto_continue_freshness=WINDOWS.get(first.get("freshness_window"), timedelta(hours=1))
        ),
    )
    active = first.get("active_processes", False)
    clock = FakeClock(utc(first["now"]))
    answers = []
    async with SessionStore.open(home, config, clock=clock, has_active_processes=lambda _: active) as store:
        for source, decision in zip(sources, decisions, strict=True):
            before = await store.peek_session_id(build_session_key(source))
            after = await store.get_or_create_session(source, decision.get("force_new", False))
            ours = {"kept": after.session_id == before, "reason": after.auto_reset_reason}
            ours |= {} if ours["kept"] else {"had_activity": after.reset_had_activity}
            theirs = {name: decision[name] for name in ("kept", "reason", "had_activity") if name in decision}
            answers.append((decision, theirs, ours))
    return answers


def write_index(home: Path, decisions: dict[str, Vector]) -> None:
    home.mkdir(parents=True)
    entries = {
        key: {
            "session_key": key,
            "session_id": f"old_{number}",
            "created_at": decision["entry"]["updated_at"],
            "platform": "telegram",
            "chat_type": "dm",
            "origin": SessionSource(platform="telegram", chat_id=key.rpartition(":")[2]).to_dict(),
            **decision["entry"],
        }
        for number, (key, decision) in enumerate(decisions.items())
    }
    (home / "sessions.json").write_text(json.dumps(entries))


async def test_a_message_is_answered_alike(tmp_path):
    groups = defaultdict(list)
    for decision in VECTORS["decisions"]:
        groups[settings_of(decision)].append(decision)
    answers = [
        answer
        for number, decisions in enumerate(groups.values())
        for answer in await decide(decisions, tmp_path / f"{number}")
    ]
    compare("decisions", answers)


MARKS = (
    "suspended", "resume_pending", "resume_reason", "expiry_finalized", "is_fresh_reset", "was_auto_reset",
    "auto_reset_reason", "reset_had_activity",
)  # fmt: skip


async def finalize(store: SessionStore, key: str) -> None:
    """What the watcher does, also where the policy would not ask for it."""
    if await store.watcher.sweep() and not (await store.get_session(key)).expiry_finalized:
        entry = await store.get_session(key)
        await store._parts.context.apply(  # noqa: SLF001 -- nobody else can end a session that is not due
            Actor.WATCHER, partial(expire.finalise_session, planned=entry, reason=EndReason.IDLE)
        )


async def take(store: SessionStore, source: SessionSource, key: str, step: Vector) -> Any:
    more = step.get("with", {})
    match step["do"]:
        case "get_or_create":
            return await store.get_or_create_session(source, **more)
        case "update":
            await store.update_session(key, **more)
        case "finalize":
            await finalize(store, key)
        case "append":
            pass  # whether a lane has a transcript makes no difference to us
        case "prune" | "suspend_recently_active":
            return await METHODS[step["do"]](store, **more)
        case _:
            return await METHODS[step["do"]](store, key, **more)
    return None


METHODS = {
    "prune": SessionStore.prune_old_entries,
    "suspend": SessionStore.suspend_session,
    "reset": SessionStore.reset_session,
    "suspend_recently_active": SessionStore.suspend_recently_active,
    "mark_resume_pending": SessionStore.mark_resume_pending,
    "clear_resume_pending": SessionStore.clear_resume_pending,
}


def lane_now(entry: SessionEntry | None, seen: list[str]) -> Vector:
    if entry is None:
        return {"session": None}
    if entry.session_id not in seen:
        seen.append(entry.session_id)
    marks = {name: value for name in MARKS if (value := getattr(entry, name))}
    return {"session": seen.index(entry.session_id), "marks": marks}


async def live(scenario: Vector, home: Path) -> list[tuple[Vector, Any, Any]]:
    source = SessionSource(platform="telegram", chat_id="c1", user_id="u1", user_name="Alice")
    key = build_session_key(source)
    policy = SessionResetPolicy.from_dict(scenario["policy"])
    clock = FakeClock(utc(scenario["start"]))
    config = Config(timezone="UTC", sessiondb=QUICK, session_reset=policy)
    seen: list[str] = []
    answers = []
    async with SessionStore.open(home, config, clock=clock) as store:
        for number, step in enumerate(scenario["steps"]):
            clock.step(utc(scenario["start"]) + timedelta(minutes=step["minutes"]) - clock.now())
            result = await take(store, source, key, step)
            theirs = {name: step[name] for name in ("result", "session", "marks") if name in step}
            ours = {"result": "entry" if isinstance(result, SessionEntry) else result}
            ours |= lane_now(await store.get_session(key), seen)
            where = {"title": scenario["title"], "number": number}
            answers.append((theirs | where, theirs | where, ours | where))
    return answers


async def test_a_session_lives_alike(tmp_path):
    answers = [
        answer
        for number, scenario in enumerate(VECTORS["scenarios"])
        for answer in await live(scenario, tmp_path / f"{number}")
    ]
    compare("scenarios", answers)


def lay_out(name: str, home: Path, member: str = "sessions.json") -> Vector:
    """A home of Hermes: the file, and the routing table in the database above it."""
    found = next(one for one in VECTORS["files"] if one["name"] == name)
    sessions = home / "sessions"
    sessions.mkdir(parents=True)
    (sessions / "sessions.json").write_text(found[member])
    if rows := found.get("gateway_routing"):
        with closing(sqlite3.connect(home / "state.db")) as database:
            database.execute(
                "CREATE TABLE gateway_routing (scope TEXT, session_key TEXT, entry_json TEXT,"
                " updated_at REAL, PRIMARY KEY (scope, session_key))"
            )
            database.executemany(
                "INSERT INTO gateway_routing VALUES (?, ?, ?, ?)",
                [
                    (str(sessions.resolve()), row["session_key"], row["entry_json"], row["updated_at"])
                    for row in rows
                ],
            )
            database.commit()
    return {key: value for key, value in json.loads(found[member]).items() if not key.startswith("_")}


def open_at(home: Path) -> SessionStore:
    config = Config(timezone="UTC", sessiondb=QUICK, session_reset=SessionResetPolicy(mode="none"))
    return SessionStore.open(home / "sessions", config, clock=FakeClock("2026-03-05T15:10:00"))


async def all_entries(store: SessionStore) -> dict[str, SessionEntry]:
    return {one.session_key: one for one in await store.list_sessions(scope=Scope.operator(), limit=1000)}


class TestFiles:
    async def test_every_lane_is_taken_in_with_its_session_and_marks(self, tmp_path):
        written = lay_out("marked", tmp_path)
        async with open_at(tmp_path) as store:
            found = {
                one.session_id: one for one in await store.list_sessions(scope=Scope.operator(), limit=99)
            }
            assert store.incidents == ()
        assert len(found) == len(written)
        for stored in written.values():
            entry = found[stored["session_id"]]
            for name in MARKS:
                assert getattr(entry, name) == stored[name], (entry.session_key, name)
            assert entry.last_prompt_tokens == stored["last_prompt_tokens"]
            assert entry.updated_at == utc(stored["updated_at"])

    async def test_whoever_wrote_there_goes_on_here(self, tmp_path):
        written = lay_out("marked", tmp_path)
        async with open_at(tmp_path) as store:
            for stored in written.values():
                entry = await store.get_or_create_session(SessionSource.from_dict(stored["origin"]))
                ended = stored["suspended"] or stored["expiry_finalized"]
                assert (entry.session_id == stored["session_id"]) is not ended, stored["session_key"]

    async def test_the_routing_table_wins_over_the_file(self, tmp_path):
        lay_out("marked", tmp_path)
        key = "agent:main:telegram:dm:plain"
        with closing(sqlite3.connect(tmp_path / "state.db")) as database:
            database.execute(
                "UPDATE gateway_routing SET entry_json = json_set(entry_json, '$.session_id', 'newer')"
                " WHERE session_key = ?",
                (key,),
            )
            database.execute("DELETE FROM gateway_routing WHERE session_key = 'agent:main:telegram:dm:fresh'")
            database.commit()
        async with open_at(tmp_path) as store:
            assert await store.peek_session_id(key) == "newer"
            assert await store.peek_session_id("agent:main:telegram:dm:fresh") is not None

    async def test_the_table_of_another_directory_is_not_ours(self, tmp_path):
        lay_out("marked", tmp_path)
        execute_sql(tmp_path / "state.db", "UPDATE gateway_routing SET scope = '/elsewhere'")
        (tmp_path / "sessions" / "sessions.json").unlink()
        async with open_at(tmp_path) as store:
            assert await all_entries(store) == {}

    async def test_the_other_database_is_left_as_it_was(self, tmp_path):
        lay_out("marked", tmp_path)
        before = (tmp_path / "state.db").read_bytes()
        async with open_at(tmp_path):
            pass
        assert (tmp_path / "state.db").read_bytes() == before

    async def test_a_shared_session_stays_with_the_lane_that_used_it_last(self, tmp_path):
        lay_out("shared-session", tmp_path)
        async with open_at(tmp_path) as store:
            lanes = await all_entries(store)
            reported = [one for one in store.incidents if one.action == "shared_session_split"]
        first, *others = (lanes[f"agent:main:telegram:dm:switch-{number}"] for number in range(3))
        assert first.session_id == "20260305_150017_70b796dd"
        assert {one.previous_session_id for one in others} == {first.session_id}
        assert len({one.session_id for one in lanes.values()}) == 3
        assert len(reported) == 2

    async def test_what_hermes_would_skip_and_erase_is_set_aside_and_reported(self, tmp_path):
        lay_out("edited", tmp_path, "before")
        async with open_at(tmp_path) as store:
            lanes = await all_entries(store)
            reported = {
                one.detail.split(": ")[0] for one in store.incidents if one.action == "entry_quarantined"
            }
        assert reported == {
            f"agent:main:telegram:dm:{name}" for name in ("bad-id", "bad-time", "no-id", "wrong-types")
        }
        assert {key.rpartition(":")[2] for key in lanes} == {
            "good", "later", "legacy", "aware", "no-origin", "unknown-platform", "spaces/x/threads/y",
        }  # fmt: skip
        kept = json.loads(next((tmp_path / "sessions" / "quarantine").iterdir()).read_text())
        sessions = {json.loads(one["raw"]).get("session_id") for one in kept}
        assert sessions == {"../../etc", "old_bad-time", "old_wrong-types", None}

    async def test_what_nobody_knows_survives_a_rewrite(self, tmp_path):
        lay_out("edited", tmp_path, "before")
        async with open_at(tmp_path) as store:
            await store.update_session("agent:main:telegram:dm:good")
        written = json.loads((tmp_path / "sessions" / "sessions.json").read_text())
        assert written["agent:main:telegram:dm:later"]["later_field"] == {"a": 1}
        assert written["agent:main:telegram:dm:unknown-platform"]["origin"]["platform"] == "left the building"
        assert written["agent:main:telegram:dm:legacy"]["expiry_finalized"] is True
