"""Make all pictures of the documentation, from the tables of states and from what commands really print.

python docs/pictures/make.py [FOLDER]

The people, the clock, the ids and the width are made up, so that every run makes the same pictures; the
store, the gateway and the commands are real.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import os
import re
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from types import MappingProxyType

import time_machine

COLUMNS = 100
NOW = "2026-03-09T09:40:00+00:00"
os.environ.update(COLUMNS=str(COLUMNS), TERM="xterm-256color", TZ="UTC")
for variable in ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "GATEWAY_SESSIONS_HOME", "GATEWAY_SESSIONS_CONFIG"):
    os.environ.pop(variable, None)


class Screen(io.StringIO):
    """Standard output, as if it were a terminal."""

    def isatty(self) -> bool:
        """Colours are shown."""
        return True


with contextlib.redirect_stdout(Screen()):  # the demo looks once whether it may use colours
    import states
    import terminal

    from gateway_sessions import Gateway, SessionStore, TurnContext, load_config
    from gateway_sessions.cli.app import main
    from gateway_sessions.cli.demo import paint
    from gateway_sessions.cli.demo.night import live_through_the_night
    from gateway_sessions.testing import FakeClock, FakePlatform

ANSWERS = MappingProxyType(
    {
        "When does the night train to Rome leave?": "At 19:23 from platform 8. It arrives at 10:05.",
        "Book two beds, please.": "Done: carriage 304, beds 21 and 25.",
        "The build fails on main since noon": "test_clock fails in New York only: the clocks changed there.",
        "火车几点出发": "十九点二十三分 八号站台",
        "Is the board meeting on Thursday?": "No, on Friday at ten.",
        "And the ferry from Civitavecchia?": "Daily at 23:00, from pier 12.",
    }
)
TITLES = MappingProxyType(
    {"ada": "Night train to Rome", "bob": "Broken build", "mei": "去罗马的火车", "eve": "Board meeting"}
)
CONFIG = """\
timezone: Europe/Vienna
session_reset:
  mode: both
  at_hour: 4
  idle_minutes: 720
"""
SAID = (
    ("2026-03-08T07:10:00+00:00", "telegram", "ada", "And the ferry from Civitavecchia?"),
    ("2026-03-08T17:02:00+00:00", "telegram", "mei", "火车几点出发"),
    ("2026-03-09T08:05:00+00:00", "telegram", "ada", "When does the night train to Rome leave?"),
    ("2026-03-09T08:06:00+00:00", "telegram", "ada", "Book two beds, please."),
    ("2026-03-09T09:12:00+00:00", "slack", "bob", "The build fails on main since noon"),
    ("2026-03-09T09:31:00+00:00", "telegram", "mei", "火车几点出发"),
    ("2026-03-09T09:34:00+00:00", "discord", "eve", "Is the board meeting on Thursday?"),
    ("2026-03-09T09:36:30+00:00", "discord", "eve", "Read me the minutes of the last one"),
    ("2026-03-09T09:38:10+00:00", "discord", "eve", "and who was there?"),
    ("2026-03-09T09:39:30+00:00", "discord", "eve", "slower, please"),
)
SCREENS = MappingProxyType(
    {
        "sessions-list": ("sessions", "list"),
        "explain": ("explain", "agent:main:telegram:dm:ada"),
        "top": ("top", "--once"),
    }
)

_SESSION_ID = re.compile(r"(\d{8}_\d{6})_[0-9a-f]{8}")
_PROCESS = re.compile(r"process \d+")
_LATE = re.compile(r"[\d.]+ ms late, at most [\d,]+ ms")


async def answer(turn: TurnContext) -> str:
    """An agent that knows a few answers, and is still reading the minutes out."""
    if turn.text.startswith("Read me"):
        await asyncio.Event().wait()
    return ANSWERS[turn.text]


@contextlib.asynccontextmanager
async def busy_gateway(home: Path) -> AsyncIterator[None]:
    """A gateway on which people have written what they have, and one turn runs."""
    config = load_config(home / "config.yaml")
    clock = FakeClock(SAID[0][0])
    platforms = {name: FakePlatform(name, clock=clock) for name in ("telegram", "slack", "discord")}
    async with (
        SessionStore.open(home, config, clock=clock, titler=None) as store,
        Gateway(store, agent=answer, adapters=[*platforms.values()]) as gateway,
    ):
        for at, platform, person, text in SAID:
            await clock.advance_to(at)
            await platforms[platform].says(person, text)
            await clock.advance(seconds=2)
        for person, platform in {person: platform for _, platform, person, _ in SAID}.items():
            session_id = await store.peek_session_id(store.key_for(platforms[platform].source(person)))
            title = TITLES[person]
            await store.db.set_session_title(session_id or "", title)
        await clock.advance_to(NOW)
        await store.flush()
        yield
        await gateway.drain(within=config.delivery.retry * 0)


def printed(*arguments: str) -> str:
    """What a command prints on a terminal."""
    with contextlib.redirect_stdout(Screen()) as screen:
        code = main(list(arguments))
    if code:
        message = f"{' '.join(arguments)} has ended with {code}"
        raise RuntimeError(message)
    return screen.getvalue()


async def screens(place: Path) -> dict[str, str]:
    """What commands print beside a busy gateway."""
    async with busy_gateway(place / "store"):
        with time_machine.travel(NOW, tick=False):
            return {
                name: await asyncio.to_thread(printed, "--home", "store", *arguments)
                for name, arguments in SCREENS.items()
            }


def night(place: Path) -> str:
    """The third scene of the demo."""
    paint.SECONDS_PER_LINE = 0
    with contextlib.redirect_stdout(Screen()) as screen:
        asyncio.run(live_through_the_night(place / "night"))
    return screen.getvalue()


def settled(shown: str) -> str:
    """The same with ids and numbers that do not change from run to run."""
    calm = _LATE.sub("0.2 ms late, at most 3 ms", shown)
    return _PROCESS.sub("process 4711", _SESSION_ID.sub(_named, calm))


def _named(found: re.Match[str]) -> str:
    return f"{found[1]}_{hashlib.sha256(found[1].encode()).hexdigest()[:8]}"


def pictures() -> dict[str, str]:
    """Every picture by the name of its file."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        (place / "store").mkdir()
        (place / "store" / "config.yaml").write_text(CONFIG, "utf-8")
        os.chdir(place)  # what commands print has no more of a path than they were given
        shown = asyncio.run(screens(place))
        drawn = {
            f"{name}.svg": terminal.picture(f"gsess {' '.join(SCREENS[name])}", settled(text), COLUMNS)
            for name, text in shown.items()
        }
        drawn["night.svg"] = terminal.picture("make demo", settled(night(place)), paint.WIDTH + 2)
    return {**drawn, **states.pictures()}


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else __file__).absolute()
    folder = folder if folder.is_dir() else folder.parent
    for name, svg in pictures().items():
        (folder / name).write_text(svg, "utf-8")
