"""The night in New York that loses an hour: one session is kept, another one ends, and is brought back."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from gateway_sessions import Config, Gateway, SessionEntry, SessionStore, TurnContext
from gateway_sessions.cli.demo.paint import (
    NEW_YORK,
    WIDTH,
    begin_scene,
    dim,
    good,
    in_columns,
    new_york_time,
    note,
    say,
    strong,
    told,
    without_random_part,
    wrapped,
)
from gateway_sessions.testing import FakeClock, FakePlatform

CONFIG = Config.from_mapping(
    {
        "timezone": "America/New_York",
        "session_reset": {"mode": "both", "at_hour": 4, "idle_minutes": 90, "grace_minutes": 30},
    }
)
NIGHT = "2026-03-08T01:40-05:00"
WIDTHS = (14, 4)


async def answer_from_history(turn: TurnContext) -> str:
    """Answer with how much this session remembers."""
    said = [row["content"] for row in await turn.history() if row["role"] == "user"]
    known = len(said) - 1
    return f"I know {known} of your messages{f', the first: “{said[0]}”' if known else '.'}"


async def live_through_the_night(home: Path) -> None:
    """Show how Ada, who stays awake, keeps her session, and Bob does not."""
    begin_scene(
        3,
        "The night of 8 March in New York: 02:00 is 03:00",
        "Policy: a session ends at 04:00 or after 90 minutes of silence, but not within 30 minutes of a "
        "message. The clock is a fake, so that the night takes no time; the store is the real one.",
    )
    clock = FakeClock(NIGHT)
    platform = FakePlatform("telegram", clock=clock)
    async with (
        SessionStore.open(home, CONFIG, clock=clock) as store,
        Gateway(store, agent=answer_from_history, adapters=[platform]),
    ):
        night = Night(store, platform, clock)
        await night.show_message("ada", "01:40", "I cannot sleep.")
        await night.show_message("bob", "01:45", "The rent is due on Monday.")
        await night.show_silence("ada", "03:20", "Still awake.")
        await night.show_warnings("03:45")
        await night.show_message("ada", "03:50", "Wait, I am not done.")
        await night.show_sessions("04:05")
        await night.show_message("ada", "04:10", "Now I am. Good night.")
        await night.show_sessions("09:00")
        await night.show_message("ada", "09:01", "What did I say last night?", with_answers=True)
        await night.show_message("ada", "09:02", "/undo-reset", with_answers=True)
        await night.show_message("ada", "09:03", "And now?", with_answers=True)
        ada = store.key_for(platform.source("ada"))
        await show_explanation_of(store, ada, "explain: why Ada has this session")


class Night:
    """Shows what people do in the night, and what becomes of their sessions."""

    def __init__(self, store: SessionStore, platform: FakePlatform, clock: FakeClock) -> None:
        self.store = store
        self.platform = platform
        self.clock = clock
        self.sessions: dict[str, list[str]] = {}

    async def show_message(
        self, person: str, wall_time: str, text: str, *, with_answers: bool = False
    ) -> None:
        """Let a person write, and show the session that gets the message."""
        await self._advance_to(wall_time)
        seen = len(self.platform.sent)
        await self.platform.says(person, text)
        await self.platform.wait_until_idle()
        entry = await self._entry(person)
        known = self.sessions.setdefault(person, [])
        what = strong("back" if entry.session_id in known else "new")
        what = dim("goes on") if known[-1:] == [entry.session_id] else what
        known.append(entry.session_id)
        self._show_line(
            person, in_columns(f"“{text}”", without_random_part(entry.session_id), what, widths=(30, 15))
        )
        for sent in self.platform.sent[seen:] if with_answers else ():
            shown = told if sent.message.is_notice else good
            for line in wrapped(without_random_part(sent.text), WIDTH - 2 - sum(WIDTHS) - len(WIDTHS), shown):
                say(in_columns("", "", line, widths=WIDTHS))

    async def show_silence(self, person: str, wall_time: str, text: str) -> None:
        """Let a person write after the lost hour, and show the true silence."""
        before = await self._entry(person)
        await self._advance_to(wall_time)
        since, now = before.last_interaction_at, self.clock.now()
        await self.show_message(person, wall_time, text)
        silence = (now - since).total_seconds() / 60
        on_walls = (_wall_clock(now) - _wall_clock(since)).total_seconds() / 60
        true = strong(f"{silence:.0f} minutes of silence")
        self._show_line("", f"{true}; the clocks on the walls say {on_walls:.0f}")

    async def show_warnings(self, wall_time: str) -> None:
        """Show when each session will end, early enough to warn people."""
        await self._advance_to(wall_time)
        for person in self.sessions:
            why = await self.store.explain(self._key(person))
            assert why.next_reset_local is not None  # noqa: S101 -- the policy is not `never`
            left = (why.next_reset_local - why.now).total_seconds() / 60
            ends = f"{why.next_reset_local:%H:%M %Z}, in {left:.0f} minutes"
            self._show_line("", f"warn {person.capitalize()}: the session ends at {strong(ends)}")

    async def show_sessions(self, wall_time: str) -> None:
        """Show the state of each person's session."""
        await self._advance_to(wall_time)
        for person in self.sessions:
            entry = await self._entry(person)
            state = good(entry.state) if entry.state == "active" else strong(entry.state)
            because = f", because of {entry.state_reason}" if entry.state_reason else ""
            self._show_line("", f"{person.capitalize()}'s session is {state}{because}")

    async def _advance_to(self, wall_time: str) -> None:
        hour, minute = map(int, wall_time.split(":"))
        then = self.clock.now().astimezone(NEW_YORK).replace(hour=hour, minute=minute)
        await self.clock.advance_to(then)

    def _key(self, person: str) -> str:
        return self.store.key_for(self.platform.source(person))

    async def _entry(self, person: str) -> SessionEntry:
        entry = await self.store.get_session(self._key(person))
        assert entry is not None  # noqa: S101 -- the person has written before
        return entry

    def _show_line(self, person: str, text: str) -> None:
        say(in_columns(new_york_time(self.clock.now()), person.capitalize(), text, widths=WIDTHS))


async def show_explanation_of(store: SessionStore, session_key: str, title: str) -> None:
    """Show why a lane has its session, and what its next message will do."""
    why = await store.explain(session_key)
    assert why.policy is not None  # noqa: S101 -- somebody has written there
    say("")
    note(title)
    for one in reversed(why.history):
        because = f"because of {one.reason}" if one.reason else ""
        say(in_columns(new_york_time(one.at), one.event, because, f"by {one.actor}", widths=(14, 12, 32)))
    say(f"next message: {without_random_part(why.next_message)}")
    if why.next_reset_local is not None:
        say(f"next reset: {new_york_time(why.next_reset_local)}, if nobody writes before")


def _wall_clock(instant: datetime) -> datetime:
    return instant.astimezone(NEW_YORK).replace(tzinfo=None)
