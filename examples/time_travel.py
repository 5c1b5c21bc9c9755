"""Two days of a bot's life in a few seconds: `python examples/time_travel.py`.

The store is the real one, in a temporary directory; only the clock is a fake, so that a night takes no time.
Nothing here needs a network, and every run prints the same.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import sys
import tempfile
from asyncio.subprocess import PIPE
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from gateway_sessions import (
    Config,
    SessionEntry,
    SessionFinalized,
    SessionSource,
    SessionStore,
    build_session_key,
)
from gateway_sessions.testing import FakeClock

NEW_YORK = ZoneInfo("America/New_York")
WIDTH = 78
FAILURES = 2
ACKNOWLEDGED = 100
NIGHT = "2026-10-31T18:00-04:00"
MORNING_AFTER = "2026-11-01T12:00-05:00"

ADA = SessionSource(platform="telegram", chat_id="4711", user_id="4711", user_name="Ada")
ADA_IN_TEAM = SessionSource(
    platform="telegram", chat_id="-100", chat_type="group", chat_name="Team", user_id="4711"
)
BOB_IN_TEAM = SessionSource(
    platform="telegram", chat_id="-100", chat_type="group", chat_name="Team", user_id="4712"
)

CONFIG = Config.from_mapping(
    {
        "timezone": "America/New_York",
        "session_reset": {"mode": "both", "idle_minutes": 180, "at_hour": 1},
        # Each change is in sessions.json before the call returns: slower, and good to look at.
        "sessions_json": "sync",
    }
)


async def main() -> None:
    """Tell the story from the first key to the crash."""
    logging.getLogger("gateway_sessions").addHandler(logging.NullHandler())
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory) / "store"
        show_keys()
        await live_through_the_night(home)
        await crash_and_recover(home)
    say_where_to_go_on()


# 1. Keys


def show_keys() -> None:
    """Who shares a conversation with whom."""
    chapter("1", "Every conversation has a key, made of nothing but the message's origin")
    for who, source in (("Ada, alone", ADA), ("Ada in Team", ADA_IN_TEAM), ("Bob in Team", BOB_IN_TEAM)):
        print(f"  {who:<17}{code(build_session_key(source))}")
    shared = build_session_key(ADA_IN_TEAM, group_sessions_per_user=False)
    print(f"  {'Team, if shared':<17}{code(shared)}")


# 2. to 5. One night


async def live_through_the_night(home: Path) -> None:
    """A conversation, a silence, the night in which an hour comes twice, and a way back."""
    clock = FakeClock(NIGHT)
    hook = FlakyHook(clock)
    async with SessionStore.open(home, CONFIG, clock=clock, hooks=[hook]) as store:
        bot = Bot(store, clock)
        chapter("2", "A session lasts while people talk, and ends by a policy")
        note("Here: after 3 hours of silence or at 01:00 in New York, whichever is first.")
        await bot.hears("Which museums are open tomorrow?")
        await bot.hears_at("18:20", "And on Monday?")
        await bot.hears_at("22:30", "Back again.")

        chapter("3", "The night of 1 November: 01:00 comes twice, the daily reset once")
        for wall_time in ("23:30", "00:30", "01:10"):
            await bot.hears_at(wall_time, "Still awake.")
        note("Now the clocks go back. One hour later it is 01:10 again:")
        await bot.hears_after(hours=1, text="Still awake?")
        await bot.hears_after(hours=1, text="Good night.")

        chapter("4", "A reset can be undone: nothing was deleted")
        back = await store.undo_reset(bot.key)
        assert back is not None  # noqa: S101 -- the lane exists
        print(f"  undo_reset  {arrow()} {show_id(back.session_id)} is the session again")
        await bot.hears("What did we say about Monday?")

        await end_with_a_failing_hook(store, bot, hook)
        chapter("6", "Ask the store why")
        await explain(store, bot.key)
        chapter("7", "sessions.json is a readable copy of all this")
        show_file(home / "sessions.json")


async def end_with_a_failing_hook(store: SessionStore, bot: Bot, hook: FlakyHook) -> None:
    """What a hook that fails is given: the same call again, and a key to tell that it is the same."""
    chapter("5", "A hook is called until it succeeds, with a key that stays the same")
    note("Ada types /new. The hook that files the old session fails twice:")
    hook.watched = True
    hook.failures_left = FAILURES
    await store.reset_session(bot.key)
    for _ in range(FAILURES + 1):
        await bot.clock.advance(minutes=1)


class Bot:
    """As much of a bot as the story needs: it hears Ada, tells her of a reset, and answers."""

    def __init__(self, store: SessionStore, clock: FakeClock) -> None:
        self.store = store
        self.clock = clock
        self.key = build_session_key(ADA)
        self.session_id = ""

    async def hears_at(self, wall_time: str, text: str) -> None:
        """Hear something at the next time that New York's clocks show *wall_time*."""
        hour, minute = map(int, wall_time.split(":"))
        local = self.clock.now().astimezone(NEW_YORK)
        minutes = (hour - local.hour) * 60 + minute - local.minute
        await self.hears_after(hours=(minutes % (24 * 60)) / 60, text=text)

    async def hears_after(self, *, hours: float, text: str) -> None:
        """Hear something after a while."""
        await self.clock.advance(hours=hours)
        await self.hears(text)

    async def hears(self, text: str) -> None:
        """Hear something now."""
        entry = await self.store.get_or_create_session(ADA)
        print(f"  {show_time(self.clock.now())}  {text:<34}{show_id(entry.session_id)} {self._what(entry)}")
        self.session_id = entry.session_id
        await self.store.update_session(entry.session_key, 1200, session_id=entry.session_id)

    def _what(self, entry: SessionEntry) -> str:
        if entry.was_auto_reset:
            return strong(f"new: {entry.auto_reset_reason}")
        if not self.session_id:
            return strong("new")
        return "goes on"


class FlakyHook:
    """A hook that fails as often as it is told to."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.watched = False
        self.failures_left = 0

    async def __call__(self, event: SessionFinalized) -> None:
        """File the session that has ended, or fail."""
        fails = self.failures_left > 0
        self.failures_left -= fails
        if self.watched:
            outcome = "fails" if fails else strong("done ")
            key = code(show_id(event.idempotency_key))
            print(f"  {show_time(self.clock.now())}  attempt {event.attempt}: {outcome}   {key}")
        if fails:
            raise ConnectionError


async def explain(store: SessionStore, session_key: str) -> None:
    """Print for people what `store.explain` knows."""
    why = await store.explain(session_key)
    assert why.entry is not None  # noqa: S101 -- the lane exists
    assert why.policy is not None  # noqa: S101 -- so it has a policy
    assert why.next_reset_local is not None  # noqa: S101 -- which is not `never`
    rows = {
        "lane": why.session_key,
        "session": f"{show_id(why.entry.session_id)}, {why.entry.state}",
        "policy": f"{why.policy.policy.mode}, from {why.policy.path}, in {why.policy.zone_name}",
        "next reset": f"{show_time(why.next_reset_local)}, if nobody writes before",
        "next message": show_id(why.next_message),
    }
    for name, value in rows.items():
        print(f"  {name:<14}{value}")
    for number, one in enumerate(why.history[:5]):
        because = f"because of {one.reason}" if one.reason else ""
        print(
            f"  {'' if number else 'history':<14}{show_time(one.at)}  {one.event:<10}"
            f"{because:<26}by {one.actor}"
        )


def show_file(path: Path) -> None:
    """Print the part of the file that tells most."""
    shown = ("session_id", "updated_at", "was_auto_reset", "is_fresh_reset", "previous_session_id", "owner")
    content = json.loads(path.read_text("utf-8"))
    for key, entry in content.items():
        if key.startswith("_"):
            continue
        print(f'  "{code(key)}": {{')
        for name in shown:
            print(f'      "{name}": {show_id(json.dumps(entry[name]))},')
        print(f"      {dim(f'... {len(entry) - len(shown)} more members')}")
        print("  }")
    print(f'  "_meta": {{ "entries": {content["_meta"]["entries"]}, {dim("... checksums")} }}')


# 8. A crash


async def crash_and_recover(home: Path) -> None:
    """Kill a process while it writes, and see what is left."""
    chapter("8", "kill -9, in the middle of writing")
    child = await asyncio.create_subprocess_exec(sys.executable, __file__, "--child", home, stdout=PIPE)
    assert child.stdout is not None  # noqa: S101 -- asked for above
    for _ in range(ACKNOWLEDGED):
        await child.stdout.readline()
    child.kill()
    acknowledged = (await child.stdout.read()).split(b"\n")[:-1]
    await child.wait()
    last = int(acknowledged[-1]) if acknowledged else ACKNOWLEDGED
    note(f"A child process answers Ada, {ACKNOWLEDGED} times and more. Then it gets SIGKILL.")

    async with SessionStore.open(home, CONFIG, clock=FakeClock(MORNING_AFTER)) as store:
        entry = await store.get_session(build_session_key(ADA))
        assert entry is not None  # noqa: S101 -- a lost lane would be the end of this demo
        kept = last <= entry.last_prompt_tokens <= last + 1
        findings = {
            "the process before ended in order": store.started.clean,
            "every acknowledged answer is there": kept,
            "sessions.json is whole": not store.incidents,
        }
        for finding, holds in findings.items():
            print(f"  {finding:<38}{strong('yes' if holds else 'no')}")
        if list(findings.values()) != [False, True, True]:
            sys.exit("This must not happen: please tell us.")
        note("Did Ada get the last answer? Nobody knows. Mark what was in use as cut off:")
        marked = await store.suspend_recently_active()
        entry = await store.get_or_create_session(ADA)
        print(f"  {marked} session: {strong(entry.state)}, because of {entry.resume_reason}")
        print(f"  The next message goes on with {show_id(entry.session_id)}, and the bot can say so.")
        await store.clear_resume_pending(entry.session_key)


async def write_until_killed(home: Path) -> None:
    """The child: answer one message after the other, and say so each time."""
    async with SessionStore.open(home, CONFIG, clock=FakeClock(MORNING_AFTER)) as store:
        entry = await store.get_or_create_session(ADA)
        tokens = 0
        while True:
            tokens += 1
            await store.update_session(entry.session_key, tokens)
            print(tokens, flush=True)


def say_where_to_go_on() -> None:
    """The end."""
    chapter("", "Where to go on")
    print("  docs/tutorial/first-session.md      your own first session, in ten minutes")
    print("  examples/embed_in_a_bot.py          how a bot's message handler uses the store")
    print("  examples/policies.py                a policy, tested over a year in a second")
    print("  docs/explanation/failure-modes.md   what happens when something breaks")


# How it looks

COLOUR = sys.stdout.isatty() and "NO_COLOR" not in os.environ


def painted(text: str, style: str) -> str:
    """The text in a style, where that can be shown."""
    return f"\x1b[{style}m{text}\x1b[0m" if COLOUR else text


def strong(text: str) -> str:
    """What the eye should find."""
    return painted(text, "1;32")


def code(text: str) -> str:
    """What the program would say."""
    return painted(text, "36")


def dim(text: str) -> str:
    """What may be overlooked."""
    return painted(text, "2")


def arrow() -> str:
    """Leads from a call to its outcome."""
    return dim("->")


def note(text: str) -> None:
    """A remark between the lines."""
    print(f"  {dim(text)}")


def chapter(number: str, title: str) -> None:
    """Begin something new."""
    heading = f"{number}. {title}" if number else title
    print(f"\n{painted(heading, '1')}\n{dim('-' * min(len(heading), WIDTH))}")


def show_id(text: str) -> str:
    """Session ids end in a random part: leave it out, so that each run prints the same."""
    return re.sub(r"(\d{8}_\d{6})_[0-9a-f]{8}", r"\1", text)


def show_time(instant: datetime) -> str:
    """On the clocks of New York."""
    return f"{instant.astimezone(NEW_YORK):%a %H:%M %Z}".ljust(13)


if __name__ == "__main__":
    if "--child" in sys.argv:
        asyncio.run(write_until_killed(Path(sys.argv[-1])))
    else:
        asyncio.run(main())
