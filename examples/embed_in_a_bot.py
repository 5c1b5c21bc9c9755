"""How a bot's message handler uses the store: find the session, tell of a reset, answer, note that.

A real bot gets its messages from a library and its answers from a model. Here both are scripted, so that the
example runs anywhere: `python examples/embed_in_a_bot.py`.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import defaultdict
from pathlib import Path

from gateway_sessions import Config, EndReason, SessionSource, SessionStore
from gateway_sessions.testing import FakeClock

NOTICES = {
    EndReason.IDLE: "A day of silence: this is a new conversation. /undo goes back.",
    EndReason.DAILY: "A new day, a new conversation. /undo goes back to yesterday's.",
}
SCRIPT = ((0, "My name is Ada."), (1, "Who am I?"), (30, "Who am I?"), (0, "/undo"), (0, "Who am I?"))


class Bot:
    """Keeps what was said by session id; the store says which session a message belongs to."""

    def __init__(self, store: SessionStore) -> None:
        self.store = store
        self.transcripts: defaultdict[str, list[str]] = defaultdict(list)

    async def on_message(self, chat_id: str, user_id: str, text: str) -> list[str]:
        """Return what to send back."""
        source = SessionSource(platform="telegram", chat_id=chat_id, user_id=user_id)
        entry = await self.store.get_or_create_session(source)
        if text == "/undo":
            await self.store.undo_reset(entry.session_key)
            return ["Back in the conversation before."]
        replies: list[str] = []
        if entry.auto_reset_reason is not None:
            replies.append(NOTICES.get(entry.auto_reset_reason, "This is a new conversation."))
        replies.append(self.answer(entry.session_id, text))
        # With the session id, an answer that took longer than its session changes nothing.
        await self.store.update_session(entry.session_key, session_id=entry.session_id)
        return replies

    def answer(self, session_id: str, text: str) -> str:
        """Stand in for the model, which sees what was said in this session and nothing else."""
        said = self.transcripts[session_id]
        said.append(text)
        return "You are Ada." if "My name is Ada." in said and text != said[0] else "Nice to meet you."


async def main() -> None:
    """Play the script: the hours that pass, and what the person says then."""
    config = Config.from_mapping({"timezone": "UTC", "session_reset": {"mode": "idle"}})
    clock = FakeClock("2026-03-02T09:00+00:00")  # a real bot leaves the clock out
    with tempfile.TemporaryDirectory() as directory:
        async with SessionStore.open(Path(directory), config, clock=clock) as store:
            bot = Bot(store)
            for hours, text in SCRIPT:
                await clock.advance(hours=hours)
                print(f"{clock.now():%a %H:%M}  Ada: {text}")
                for reply in await bot.on_message("4711", "4711", text):
                    print(f"{'':11}Bot: {reply}")


if __name__ == "__main__":
    asyncio.run(main())
