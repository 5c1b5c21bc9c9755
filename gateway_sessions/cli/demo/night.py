"""A night in New York that loses an hour: one session is kept, another one ends, and there is a way back."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from gateway_sessions import Config, Gateway, SessionStore, TurnContext
from gateway_sessions.cli.demo.paint import (
    NEW_YORK,
    WIDTH,
    dim,
    good,
    local,
    masked,
    note,
    row,
    say,
    scene,
    strong,
    told,
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


async def remember(turn: TurnContext) -> str:
    """An agent that knows what this session knows, and no more."""
    said = [row["content"] for row in await turn.history() if row["role"] == "user"]
    known = len(said) - 1
    return f"I know {known} of your messages{f', the first: “{said[0]}”' if known else '.'}"


async def live_through_the_night(home: Path) -> None:
    """Tell the story of Ada, who stays awake, and Bob, who does not."""
    scene(
        3,
        "The night of 8 March in New York: 02:00 is 03:00",
        "Policy: a session ends at 04:00 or after 90 minutes of silence, but not within 30 minutes of a "
        "message. The clock is a fake, so that the night takes no time; the store is the real one.",
    )
    clock = FakeClock(NIGHT)
    platform = FakePlatform("telegram", clock=clock)
    async with (
        SessionStore.open(home, CONFIG, clock=clock) as store,
        Gateway(store, agent=remember, adapters=[platform]),
    ):
        night = Night(store, platform, clock)
        await night.hears("ada", "01:40", "I cannot sleep.")
        await night.hears("bob", "01:45", "The rent is due on Monday.")
        await night.measures_silence("ada", "03:20", "Still awake.")
        await night.warns("03:45")
        await night.hears("ada", "03:50", "Wait, I am not done.")
        await night.looks("04:05")
        await night.hears("ada", "04:10", "Now I am. Good night.")
        await night.looks("09:00")
        await night.hears("ada", "09:01", "What did I say last night?", with_answers=True)
        await night.hears("ada", "09:02", "/undo-reset", with_answers=True)
        await night.hears("ada", "09:03", "And now?", with_answers=True)
        await night.explains("ada")


class Night:
    """Who does what at which time."""

    def __init__(self, store: SessionStore, platform: FakePlatform, clock: FakeClock) -> None:
        self.store = store
        self.platform = platform
        self.clock = clock
        self.sessions: dict[str, list[str]] = {}

    async def hears(self, person: str, wall_time: str, text: str, *, with_answers: bool = False) -> None:
        """A person writes."""
        await self._until(wall_time)
        seen = len(self.platform.sent)
        await self.platform.says(person, text)
        await self.platform.wait_until_idle()
        entry = await self.store.get_session(self._key(person))
        assert entry is not None  # noqa: S101 -- somebody has just written there
        known = self.sessions.setdefault(person, [])
        what = strong("back" if entry.session_id in known else "new")
        what = dim("goes on") if known[-1:] == [entry.session_id] else what
        known.append(entry.session_id)
        self._line(person, row(f"“{text}”", masked(entry.session_id), what, widths=(30, 15)))
        for sent in self.platform.sent[seen:] if with_answers else ():
            shown = told if sent.message.is_notice else good
            for line in wrapped(masked(sent.text), WIDTH - 2 - sum(WIDTHS) - len(WIDTHS), shown):
                say(row("", "", line, widths=WIDTHS))

    async def measures_silence(self, person: str, wall_time: str, text: str) -> None:
        """A person writes after the hour that was lost: what the clocks on the wall say, and what is true."""
        before = await self.store.get_session(self._key(person))
        assert before is not None  # noqa: S101 -- the person has written before
        await self._until(wall_time)
        since, now = before.last_interaction_at, self.clock.now()
        await self.hears(person, wall_time, text)
        silence = (now - since).total_seconds() / 60
        on_walls = (_naive(now) - _naive(since)).total_seconds() / 60
        true = strong(f"{silence:.0f} minutes of silence")
        self._line("", f"{true}; the clocks on the walls say {on_walls:.0f}")

    async def warns(self, wall_time: str) -> None:
        """Ask what will happen, early enough to tell people."""
        await self._until(wall_time)
        for person in self.sessions:
            why = await self.store.explain(self._key(person))
            assert why.next_reset_local is not None  # noqa: S101 -- the policy is not `never`
            left = (why.next_reset_local - why.now).total_seconds() / 60
            ends = f"{why.next_reset_local:%H:%M %Z}, in {left:.0f} minutes"
            self._line("", f"warn {person.capitalize()}: the session ends at {strong(ends)}")

    async def looks(self, wall_time: str) -> None:
        """Look at everybody's session."""
        await self._until(wall_time)
        for person in self.sessions:
            entry = await self.store.get_session(self._key(person))
            assert entry is not None  # noqa: S101 -- the person has written before
            state = good(entry.state) if entry.state == "active" else strong(entry.state)
            because = f", because of {entry.state_reason}" if entry.state_reason else ""
            self._line("", f"{person.capitalize()}'s session is {state}{because}")

    async def explains(self, person: str) -> None:
        """Print for people why the session is as it is."""
        await explain(self.store, self._key(person), f"explain: why {person.capitalize()} has this session")

    async def _until(self, wall_time: str) -> None:
        hour, minute = map(int, wall_time.split(":"))
        then = self.clock.now().astimezone(NEW_YORK).replace(hour=hour, minute=minute)
        await self.clock.advance_to(then)

    def _key(self, person: str) -> str:
        return self.store.key_for(self.platform.source(person))

    def _line(self, person: str, text: str) -> None:
        say(row(local(self.clock.now()), person.capitalize(), text, widths=WIDTHS))


async def explain(store: SessionStore, session_key: str, title: str) -> None:
    """Print for people why a lane has the session it has, and what its next message will do."""
    why = await store.explain(session_key)
    assert why.policy is not None  # noqa: S101 -- somebody has written there
    say("")
    note(title)
    for one in reversed(why.history):
        because = f"because of {one.reason}" if one.reason else ""
        say(row(local(one.at), one.event, because, f"by {one.actor}", widths=(14, 12, 32)))
    say(f"next message: {masked(why.next_message)}")
    if why.next_reset_local is not None:
        say(f"next reset: {local(why.next_reset_local)}, if nobody writes before")


def _naive(instant: datetime) -> datetime:
    return instant.astimezone(NEW_YORK).replace(tzinfo=None)
