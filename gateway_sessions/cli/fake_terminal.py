"""A fake of a platform at the terminal: lines that are typed are people's messages, replies are shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple

import anyio

from gateway_sessions.adapters.console import Console
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.queue.inbound import Accepted, Disposition, InboundMessage, Receipt
from gateway_sessions.testing.fakes.telegram.server import FakeTelegram

LOOK_SECONDS: Final = 0.05
"""The pause between two looks at what the bot has said: people read no faster."""
YOU: Final = "you"
"""The person who types lines without a name."""
_LINE: Final = re.compile(
    r"(?:#(?P<group>\S+)\s+)?(?:(?P<person>[A-Za-z][\w-]{0,30}):\s+)?(?P<text>.*)", re.DOTALL
)
FAKES: Final = ("telegram",)
"""The platforms that can be faked here."""
_HINT: Final = """\
A fake Telegram listens on this machine. Say so in a configuration,

serve:
  adapters:
    - platform: telegram
      token: "{token}"
      api_url: {url}

or to a program, such as those in examples/bots:

export TELEGRAM_TOKEN={token} TELEGRAM_API_URL={url}

Type what people write: a line is yours, `ann: hello` is Ann's, `#team ann: hello` is hers in a group.
In a group, a bot hears what mentions it: `#team ann: @{name} hello`.
"""


class TypedLine(NamedTuple):
    """A line that was typed: who writes what, in a group or in private."""

    person: str
    text: str
    group: str | None


def read_typed_line(line: str) -> TypedLine:
    """Return who writes what: `hello`, `ann: hello` or `#team ann: hello`."""
    found = _LINE.fullmatch(line.strip())
    if found is None:
        return TypedLine(YOU, line, None)
    return TypedLine((found["person"] or YOU).lower(), found["text"], found["group"])


class ShownMessages:
    """Tells which messages of a bot are new, or have changed since they were shown."""

    def __init__(self, telegram: FakeTelegram) -> None:
        self._telegram = telegram
        self._shown: dict[tuple[int, int], str] = {}

    def news(self) -> Iterator[str]:
        """Yield a line for each new text of the bot."""
        for chat in list(self._telegram.chats.chats.values()):
            for message_id, message in sorted(chat.messages.items()):
                if message["from"]["id"] != self._telegram.bot.id:
                    continue
                text = str(message.get("text", message.get("caption", "(something without text)")))
                if self._shown.get((chat.id, message_id)) != text:
                    self._shown[chat.id, message_id] = text
                    where = f"#{chat.title}" if chat.person is None else chat.title
                    yield f"bot → {where}: {text}"


async def run_fake(platform: str, note: Callable[[str], object]) -> None:
    """Run the fake until the input ends; *note* says where it is."""
    assert platform in FAKES  # noqa: S101 -- the command has looked
    async with FakeTelegram() as telegram:
        shown, console = ShownMessages(telegram), Console(person=YOU)
        note(_HINT.format(url=telegram.url, token=telegram.token, name=telegram.bot.username))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_show_replies, console, shown)
            async with console.connect(partial(_say, telegram)):
                await console.ended()
                await _wait_for_answers(telegram)
            tasks.cancel_scope.cancel()


async def _say(telegram: FakeTelegram, message: InboundMessage) -> Receipt:
    typed = read_typed_line(message.text)
    telegram.says(typed.person, typed.text, group=typed.group)
    return Accepted(seq=0, session_key="", session_id=None, disposition=Disposition.STARTS)


async def _show_replies(console: Console, shown: ShownMessages) -> None:
    target = ReplyTarget(platform=console.platform)
    while True:
        for line in shown.news():
            await console.send(target, OutboundMessage(text=line), idempotency_key=line)
        await anyio.sleep(LOOK_SECONDS)


async def _wait_for_answers(telegram: FakeTelegram) -> None:
    """Wait at the end of the input until the bot has read everything, or for good if none runs yet."""
    while telegram.pending or not telegram.polls:  # noqa: ASYNC110 -- its thread tells nobody
        await anyio.sleep(LOOK_SECONDS)
    await anyio.sleep(1)  # a bot that has read a message needs a moment to answer
