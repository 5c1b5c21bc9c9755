import asyncio
import json
import logging
import os
from collections import Counter
from collections.abc import Awaitable
from datetime import timedelta
from pathlib import Path

import pytest

from gateway_sessions.errors import AliasUnknownError, InvalidSourceError
from gateway_sessions.runtime.queue.aliases import (
    MAX_ALIASES,
    TO_RESOLVE,
    Aliases,
    CachedAliases,
    WhatsAppAliasFiles,
)
from gateway_sessions.testing import FakeClock


class Directory:
    """A resolver that counts, can be held, and can fail."""

    def __init__(self) -> None:
        self.asked: Counter[tuple[str, str]] = Counter()
        self.aliases: dict[str, object] = {}
        self.open = asyncio.Event()
        self.open.set()
        self.failure: Exception | None = None

    async def __call__(self, platform: str, identifier: str) -> str:
        self.asked[platform, identifier] += 1
        await self.open.wait()
        if self.failure is not None:
            raise self.failure
        return self.aliases.get(identifier, identifier)


async def _failure(asking: Awaitable[object]) -> Exception | None:
    try:
        await asking
    except AliasUnknownError as error:
        return error
    return None


@pytest.fixture
async def directory() -> Directory:
    return Directory()


@pytest.fixture
async def aliases(directory, fake_clock) -> CachedAliases:
    return CachedAliases(directory, clock=fake_clock)


class TestCachedAliases:
    async def test_an_alias_is_looked_up_once(self, aliases, directory):
        directory.aliases["123"] = "7"
        assert [await aliases("signal", "123") for _ in range(3)] == ["7", "7", "7"]
        assert directory.asked.total() == 1

    async def test_an_alias_is_looked_up_again_after_a_while(self, aliases, directory, fake_clock):
        await aliases("signal", "123")
        await fake_clock.advance(minutes=4, seconds=59)
        await aliases("signal", "123")
        assert directory.asked.total() == 1
        await fake_clock.advance(seconds=1)
        directory.aliases["123"] = "8"
        assert await aliases("signal", "123") == "8"

    async def test_the_time_to_live_can_be_set(self, directory, fake_clock):
        aliases = CachedAliases(directory, clock=fake_clock, ttl=timedelta(seconds=1))
        await aliases("signal", "123")
        await fake_clock.advance(seconds=1)
        await aliases("signal", "123")
        assert directory.asked.total() == 2

    async def test_platforms_have_ids_of_their_own(self, aliases, directory):
        await aliases("signal", "123")
        await aliases("sms", "123")
        assert directory.asked == {("signal", "123"): 1, ("sms", "123"): 1}

    async def test_all_spellings_of_a_whatsapp_id_are_one_lookup(self, aliases, directory):
        for spelling in ("+49170", "49170@s.whatsapp.net", "49170:3@s.whatsapp.net", "49170"):
            assert await aliases("whatsapp", spelling) == "49170"
        assert directory.asked == {("whatsapp", "49170"): 1}

    @pytest.mark.parametrize("identifier", ["", "+", "@lid"])
    async def test_nothing_is_asked_about_nothing(self, aliases, directory, identifier):
        assert await aliases("whatsapp", identifier) == ""
        assert directory.asked.total() == 0

    async def test_lookups_at_the_same_time_share_one_call(self, aliases, directory):
        directory.open.clear()
        directory.aliases["123"] = "7"
        async with asyncio.TaskGroup() as group:
            lookups = [group.create_task(aliases("signal", "123")) for _ in range(10)]
            await asyncio.sleep(0)
            directory.open.set()
        assert {lookup.result() for lookup in lookups} == {"7"}
        assert directory.asked.total() == 1

    async def test_if_the_one_who_asks_is_cancelled_another_asks_again(self, aliases, directory):
        directory.open.clear()
        directory.aliases["123"] = "7"
        async with asyncio.TaskGroup() as group:
            first = group.create_task(aliases("signal", "123"))
            others = [group.create_task(aliases("signal", "123")) for _ in range(3)]
            await asyncio.sleep(0)
            first.cancel()
            await asyncio.wait({first})
            directory.open.set()
        assert first.cancelled()
        assert [other.result() for other in others] == ["7", "7", "7"]
        assert directory.asked.total() == 2

    async def test_the_cache_is_bounded(self, directory, fake_clock):
        aliases = CachedAliases(directory, clock=fake_clock, size=2)
        for identifier in ("1", "2", "3", "1"):
            await aliases("signal", identifier)
        assert directory.asked["signal", "1"] == 2


class TestWithoutAMemory:
    async def test_it_is_asked_each_time(self, directory, fake_clock):
        directory.aliases["123"] = "7"
        aliases = Aliases(directory, clock=fake_clock)
        assert [await aliases("whatsapp", "123"), await aliases("whatsapp", "123")] == ["7", "7"]
        assert directory.asked.total() == 2

    async def test_an_id_without_an_alias_stands_for_itself(self, directory, fake_clock):
        directory.aliases["123"] = None
        assert await Aliases(directory, clock=fake_clock)("whatsapp", "123") == "123"

    async def test_a_failure_is_told_as_what_it_means_for_the_message(self, directory, fake_clock):
        directory.failure = RuntimeError("boom")
        with pytest.raises(AliasUnknownError, match=r"whatsapp.*RuntimeError: boom") as caught:
            await Aliases(directory, clock=fake_clock)("whatsapp", "123")
        assert caught.value.platform == "whatsapp"
        assert caught.value.__cause__ is directory.failure

    async def test_an_answer_that_is_no_identifier_is_a_failure(self, directory, fake_clock):
        directory.aliases["123"] = 17
        with pytest.raises(AliasUnknownError) as caught:
            await Aliases(directory, clock=fake_clock)("whatsapp", "123")
        assert isinstance(caught.value.__cause__, InvalidSourceError)

    async def test_one_that_hangs_keeps_nobody_waiting(self, directory, fake_clock):
        directory.open.clear()
        async with asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(_failure(Aliases(directory, clock=fake_clock)("whatsapp", "123")))
            await fake_clock.advance(TO_RESOLVE)
            assert isinstance(await asyncio.wait_for(asking, 15), AliasUnknownError)


class TestAFailingResolver:
    async def test_one_that_hangs_keeps_nobody_waiting(self, aliases, directory, fake_clock):
        directory.open.clear()
        async with asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(aliases("signal", "123"))
            await fake_clock.advance(TO_RESOLVE)
            assert await asyncio.wait_for(asking, 15) == "123"

    async def test_the_id_stands_for_itself(self, aliases, directory):
        directory.failure = OSError("no such file: /bridge/lid-mapping-49170.json")
        assert await aliases("whatsapp", "+49170@s.whatsapp.net") == "49170"

    async def test_the_last_alias_stands_so_that_no_conversation_moves(self, aliases, directory, fake_clock):
        directory.aliases["123"] = "7"
        await aliases("signal", "123")
        await fake_clock.advance(minutes=6)
        directory.failure = TimeoutError()
        assert await aliases("signal", "123") == "7"

    async def test_it_is_not_asked_again_at_once(self, aliases, directory, fake_clock):
        directory.failure = OSError()
        for _ in range(3):
            await aliases("signal", "123")
        assert directory.asked.total() == 1
        directory.failure, directory.aliases["123"] = None, "7"
        await fake_clock.advance(minutes=5)
        assert await aliases("signal", "123") == "7"

    @pytest.mark.parametrize("answer", [17, b"7", "7\n8", "../7", "7" * 600])
    async def test_an_answer_that_is_no_identifier_is_a_failure(self, aliases, directory, answer):
        directory.aliases["123"] = answer
        assert await aliases("signal", "123") == "123"

    @pytest.mark.parametrize("answer", ["", None])
    async def test_no_answer_is_no_failure(self, aliases, directory, answer, caplog):
        directory.aliases["123"] = answer
        assert await aliases("signal", "123") == "123"
        assert caplog.records == []

    async def test_it_is_logged_once_for_each_id_without_the_id(self, aliases, directory, fake_clock, caplog):
        directory.failure = OSError("no such file: lid-mapping-49170123.json")
        with caplog.at_level(logging.DEBUG):
            for identifier in ("49170123", "49170123", "49170999"):
                await aliases("whatsapp", identifier)
                await fake_clock.advance(minutes=6)
        facts = [(record.action, record.platform, record.error) for record in caplog.records]
        assert facts == [("alias_failed", "whatsapp", "OSError")] * 2
        assert not any("49170" in str(vars(record)) for record in caplog.records)

    async def test_cancellation_passes(self, aliases, directory):
        directory.open.clear()
        lookup = asyncio.ensure_future(aliases("signal", "123"))
        await asyncio.sleep(0)
        lookup.cancel()
        await asyncio.wait({lookup})
        assert lookup.cancelled()


class Bridge:
    """The directory of a WhatsApp bridge."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)
        self.resolve = WhatsAppAliasFiles([path])

    def map(self, identifier: str, alias: object, suffix: str = "") -> None:
        self.write(identifier, json.dumps(alias), suffix)

    def write(self, identifier: str, content: str, suffix: str = "") -> None:
        (self.path / f"lid-mapping-{identifier}{suffix}.json").write_text(content)

    async def canonical(self, identifier: str) -> str:
        return await self.resolve("whatsapp", identifier)


@pytest.fixture
def bridge(tmp_path) -> Bridge:
    return Bridge(tmp_path / "session")


class TestWhatsAppAliasFiles:
    async def test_a_number_and_its_linked_id_have_one_name(self, bridge):
        bridge.map("4917012345", "99887766554433@lid")
        bridge.map("99887766554433", "4917012345@s.whatsapp.net", "_reverse")
        for spelling in ("+4917012345", "4917012345:7@s.whatsapp.net", "99887766554433@lid"):
            assert await bridge.canonical(spelling) == "4917012345"

    async def test_aliases_of_aliases_count(self, bridge):
        bridge.map("5555", "444")
        bridge.map("444", "33", "_reverse")
        bridge.map("33", "5555")
        assert await bridge.canonical("5555") == "33"

    async def test_of_aliases_equally_long_the_first_in_order_is_taken(self, bridge):
        bridge.map("300", "200")
        bridge.map("200", "100")
        bridge.map("100", "300")
        assert {await bridge.canonical(one) for one in ("100", "200", "300")} == {"100"}

    async def test_without_files_the_normalised_id_stands(self, bridge, tmp_path):
        assert await bridge.canonical("+4917012345:2@s.whatsapp.net") == "4917012345"
        missing = WhatsAppAliasFiles([tmp_path / "missing"])
        assert await missing("whatsapp", "+49") == "49"

    async def test_an_id_with_blanks_is_looked_up_without_them(self, bridge):
        bridge.map("49151234", "77")
        assert await bridge.canonical("+49 151 234") == "77"

    @pytest.mark.parametrize("identifier", ["a_b", "x/../../y", "ü", "a\x00b", "%2f", ""])
    async def test_an_odd_id_stands_for_itself(self, bridge, identifier):
        bridge.map("other", "1")
        assert await bridge.canonical(identifier) == identifier

    @pytest.mark.parametrize(
        "content", ["", "{", '{"a": 1}', "17", "null", '"a b"', '"../x"', '""', "[" * 4000, "\xff"]
    )
    async def test_a_file_that_is_no_mapping_is_passed_over(self, bridge, content):
        bridge.write("12345", content)
        assert await bridge.canonical("12345") == "12345"

    async def test_a_file_that_is_too_large_is_passed_over(self, bridge):
        bridge.write("12345", '"1' + " " * 10_000 + '"')
        assert await bridge.canonical("12345") == "12345"

    async def test_a_link_is_not_followed(self, bridge, tmp_path):
        (tmp_path / "outside.json").write_text('"1"')
        (bridge.path / "lid-mapping-12345.json").symlink_to(tmp_path / "outside.json")
        assert await bridge.canonical("12345") == "12345"

    async def test_neither_a_pipe_nor_a_folder_holds_it_up(self, bridge):
        os.mkfifo(bridge.path / "lid-mapping-12345.json")
        (bridge.path / "lid-mapping-12345_reverse.json").mkdir()
        before = len(list(Path("/dev/fd").iterdir()))
        assert await bridge.canonical("12345") == "12345"
        assert len(list(Path("/dev/fd").iterdir())) == before

    async def test_a_very_long_id_stands_for_itself(self, bridge):
        bridge.map("1", "2")
        assert await bridge.canonical("9" * 500) == "9" * 500

    async def test_a_long_chain_of_aliases_ends_somewhere(self, bridge):
        for number in range(1000, 1000 + 3 * MAX_ALIASES):
            bridge.map(str(number), str(number - 1))
        assert len(await bridge.canonical(str(1000 + 3 * MAX_ALIASES))) == 4

    async def test_other_platforms_have_no_aliases(self, bridge):
        bridge.map("12345", "1")
        assert await bridge.resolve("signal", "+12345@x") == "+12345@x"

    async def test_the_first_directory_that_holds_anything_counts(self, tmp_path):
        (tmp_path / "empty").mkdir()
        old, new = Bridge(tmp_path / "old"), Bridge(tmp_path / "new")
        new.map("12345", "1")
        resolve = WhatsAppAliasFiles([tmp_path / "none", tmp_path / "empty", old.path, new.path])
        assert await resolve("whatsapp", "12345") == "1"
        old.map("other", "2")
        assert await resolve("whatsapp", "12345") == "12345"

    async def test_together_with_the_cache_no_file_is_read_twice(self, bridge):
        bridge.map("12345", "1")
        aliases = CachedAliases(bridge.resolve, clock=FakeClock())
        assert await aliases("whatsapp", "+12345") == "1"
        (bridge.path / "lid-mapping-12345.json").unlink()
        assert await aliases("whatsapp", "12345@lid") == "1"
