"""An agent without a model: it shows that a session remembers."""

from __future__ import annotations

from gateway_sessions import TurnContext


async def answer(turn: TurnContext) -> str:
    """Answer with what was said, and with how much was said before."""
    history = await turn.history()
    before = [row["content"] for row in history if row["role"] == "user"][:-1]
    if not before:
        return (
            f"You said: {turn.text}\nI have no model. --agent module:name brings one; /help lists commands."
        )
    return f"You said: {turn.text}\nBefore that, {len(before)} more; the first was: {before[0]}"
