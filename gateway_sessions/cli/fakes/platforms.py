"""The platforms that can be faked, each with what its fake offers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from gateway_sessions.cli.fakes.acts import Act, FakeToRun
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.testing.fakes.webhook_platform import FakeWebhookPlatform, WebhookDelivery

if TYPE_CHECKING:  # only the fake that is asked for is imported, with what it needs
    from gateway_sessions.testing.fakes.discord import FakeDiscord
    from gateway_sessions.testing.fakes.google_chat import FakeGoogleChat
    from gateway_sessions.testing.fakes.line import FakeLine
    from gateway_sessions.testing.fakes.matrix import FakeMatrix
    from gateway_sessions.testing.fakes.mattermost import FakeMattermost
    from gateway_sessions.testing.fakes.slack import FakeSlack
    from gateway_sessions.testing.fakes.teams import FakeTeams
    from gateway_sessions.testing.fakes.telegram import FakeTelegram
    from gateway_sessions.testing.fakes.twilio import FakeTwilio
    from gateway_sessions.testing.fakes.whatsapp import FakeWhatsApp

SPEED: Final = 60.0
"""What a platform waits a minute for is repeated after a second: nobody at a terminal waits longer."""
EXTRAS: Final = MappingProxyType(
    {"cryptography": "gateway-sessions[webhooks]", "jwt": "gateway-sessions[webhooks]"}
)
"""The extras for modules that may be missing."""


def load_fake(platform: str) -> FakeToRun[Any, Any]:
    """Return what the fake of a platform offers; `InvalidInputError` if it cannot be had."""
    if platform not in FAKES:
        problem = f"there is no fake of {platform!r}; platforms with one are {', '.join(FAKES)}"
        raise InvalidInputError(problem)
    try:
        return FAKES[platform]()
    except ModuleNotFoundError as error:
        package = EXTRAS.get(str(error.name), str(error.name))
        problem = f"to fake {platform}, install what it needs: pip install '{package}'"
        raise InvalidInputError(problem) from error


def _group_of(act: Act[Any]) -> str:
    """Return the group from which the bot is removed."""
    if act.place is None:
        problem = r"say from which group: `#team \remove`"
        raise InvalidInputError(problem)
    return act.place


def _telegram() -> FakeToRun[FakeTelegram, int]:
    from gateway_sessions.testing.fakes.telegram import FakeTelegram  # noqa: PLC0415 -- see above

    def send(fake: FakeTelegram, act: Act[int]) -> None:
        file = act.file()
        kind = {"image": "photo"}.get(file.kind, file.kind)
        fake.sends(act.person, kind, file.content, name=file.name, group=act.place)

    return FakeToRun(
        title="Telegram",
        make=FakeTelegram,
        says=lambda fake, act: fake.says(act.person, act.words, group=act.place),
        acts={
            "edit": lambda fake, act: fake.edits(act.last(), act.words),
            "again": lambda fake, act: fake.again(fake.chats.update(act.last())),
            "press": lambda fake, act: fake.presses(act.person, act.words, group=act.place),
            "send": send,
            "block": lambda fake, act: fake.blocks(act.person),
            "unblock": lambda fake, act: fake.unblocks(act.person),
        },
        sending=("sendMessage", "sendPhoto", "sendDocument"),
        mention="@helper_bot",
    )


def _slack() -> FakeToRun[FakeSlack, str]:
    from gateway_sessions.testing.fakes.slack import FakeSlack, SlackTiming  # noqa: PLC0415 -- see above

    def send(fake: FakeSlack, act: Act[str]) -> None:
        file = act.file()
        fake.people.says(act.person, "", channel=act.place, files=[(file.name, file.content)])

    def command(fake: FakeSlack, act: Act[str]) -> None:
        name, _, text = act.words.partition(" ")
        fake.people.commands(act.person, f"/{name.removeprefix('/')}", text, channel=act.place)

    return FakeToRun(
        title="Slack",
        make=lambda: FakeSlack(timing=SlackTiming(speed=SPEED)),
        says=lambda fake, act: fake.people.says(act.person, act.words, channel=act.place),
        acts={
            "edit": lambda fake, act: fake.people.edits(act.last(), act.words),
            "delete": lambda fake, act: fake.people.deletes(act.last()),
            "thread": lambda fake, act: fake.people.says(
                act.person, act.words, channel=act.place, thread=act.last()
            ),
            "again": lambda fake, act: fake.deliveries.again(act.last()),
            "press": lambda fake, act: fake.people.presses(act.person, act.words, channel=act.place),
            "command": command,
            "send": send,
            "remove": lambda fake, act: fake.people.removes_bot(channel=_group_of(act)),
        },
        sending=("chat.postMessage", "files.completeUploadExternal"),
        mention="@helper",
        listens=lambda fake, url: fake.listen_at(url),
        variables={"token": "SLACK_BOT_TOKEN"},
    )


def _discord() -> FakeToRun[FakeDiscord, int]:
    from gateway_sessions.testing.fakes.discord import FakeDiscord  # noqa: PLC0415 -- see above

    def with_mention(fake: FakeDiscord, act: Act[int]) -> str:
        return act.words.replace("@helper", fake.mention)

    def write_in_thread(fake: FakeDiscord, act: Act[int]) -> None:
        place = fake.guilds.channel_of(act.last())
        name = f"thread-{act.last()}"
        fake.guilds.thread(place, name, thread_id=act.last())
        fake.says(act.person, with_mention(fake, act), channel=act.place, thread=name)

    def send(fake: FakeDiscord, act: Act[int]) -> None:
        name, content, media_type = act.file()
        fake.sends(act.person, content, name=name, media_type=media_type, channel=act.place)

    return FakeToRun(
        title="Discord",
        make=FakeDiscord,
        says=lambda fake, act: fake.says(act.person, with_mention(fake, act), channel=act.place),
        acts={
            "edit": lambda fake, act: fake.edits(act.last(), act.words),
            "delete": lambda fake, act: fake.deletes(act.last()),
            "thread": write_in_thread,
            "press": lambda fake, act: fake.presses(act.person, act.words, channel=act.place),
            "command": lambda fake, act: fake.commands(act.person, act.words, channel=act.place),
            "send": send,
            "block": lambda fake, act: fake.blocks(act.person),
        },
        sending=("create_message",),
        mention="@helper",
        variables=None,  # the example has Discord's own address
    )


def _matrix() -> FakeToRun[FakeMatrix, str]:
    from gateway_sessions.testing.fakes.matrix import FakeMatrix  # noqa: PLC0415 -- see above

    def say(fake: FakeMatrix, act: Act[str], thread: str | None = None) -> str:
        named = "@helper" in act.words
        return fake.says(act.person, act.words, room=act.place, thread=thread, mentions=named)

    def send(fake: FakeMatrix, act: Act[str]) -> None:
        file = act.file()
        kind = {"image": "photo"}.get(file.kind, file.kind)
        fake.sends(act.person, kind, file.content, name=file.name, media_type=file.media_type, room=act.place)

    return FakeToRun(
        title="Matrix",
        make=FakeMatrix,
        says=say,
        acts={
            "edit": lambda fake, act: fake.edits(act.last(), act.words),
            "delete": lambda fake, act: fake.deletes(act.last()),
            "thread": lambda fake, act: say(fake, act, thread=act.last()),
            "again": lambda fake, act: fake.again(act.last()),
            "send": send,
            "remove": lambda fake, act: fake.removes_bot(act.person, room=act.place),
        },
        sending=("send",),
        mention="@helper",
        variables={"access_token": "MATRIX_TOKEN"},
    )


def _mattermost() -> FakeToRun[FakeMattermost, str]:
    from gateway_sessions.testing.fakes.mattermost import FakeMattermost  # noqa: PLC0415 -- see above

    def send(fake: FakeMattermost, act: Act[str]) -> None:
        name, content, media_type = act.file()
        fake.sends(act.person, content, name=name, mime_type=media_type, channel=act.place)

    return FakeToRun(
        title="Mattermost",
        make=FakeMattermost,
        says=lambda fake, act: fake.says(act.person, act.words, channel=act.place),
        acts={
            "edit": lambda fake, act: fake.edits(act.last(), act.words),
            "delete": lambda fake, act: fake.deletes(act.last()),
            "thread": lambda fake, act: fake.says(
                act.person, act.words, channel=act.place, thread=act.last()
            ),
            "again": lambda fake, act: fake.again(act.last()),
            "send": send,
            "remove": lambda fake, act: fake.removes_bot(act.person, _group_of(act)),
        },
        sending=("create_post",),
        mention="@helper",
    )


# The platforms that call a bot


def _again(fake: FakeWebhookPlatform, act: Act[WebhookDelivery]) -> WebhookDelivery:
    return fake.again(act.last())


def _listen_at(fake: FakeWebhookPlatform, url: str) -> None:
    fake.webhook_url = url


def _whatsapp() -> FakeToRun[FakeWhatsApp, WebhookDelivery]:
    from gateway_sessions.testing.fakes.whatsapp import FakeWhatsApp  # noqa: PLC0415 -- see above

    def send(fake: FakeWhatsApp, act: Act[WebhookDelivery]) -> None:
        file = act.file()
        more = {"filename": file.name} if file.kind == "document" else {}
        fake.sends(act.person, file.kind, file.content, media_type=file.media_type, **more)

    return FakeToRun(
        title="WhatsApp",
        make=lambda: FakeWhatsApp(speed=SPEED),
        says=lambda fake, act: fake.says(act.person, act.words),
        acts={
            "again": _again,
            "press": lambda fake, act: fake.presses(act.person, act.words),
            "send": send,
            "block": lambda fake, act: fake.blocks(act.person),
            "unblock": lambda fake, act: fake.unblocks(act.person),
        },
        sending=("messages",),
        listens=_listen_at,
        is_called=True,
    )


def _teams() -> FakeToRun[FakeTeams, WebhookDelivery]:
    from gateway_sessions.testing.fakes.teams import FakeTeams  # noqa: PLC0415 -- see above

    def say(fake: FakeTeams, act: Act[WebhookDelivery]) -> WebhookDelivery:
        words = act.words.removeprefix("@helper ")
        return fake.says(act.person, words, group=act.place, mentions=words != act.words)

    return FakeToRun(
        title="Microsoft Teams",
        make=lambda: FakeTeams(speed=SPEED),
        says=say,
        acts={
            "edit": lambda fake, act: fake.edits(act.last(), act.words),
            "delete": lambda fake, act: fake.deletes(act.last()),
            "again": _again,
            "press": lambda fake, act: fake.presses(act.person, act.words, group=act.place),
            "send": lambda fake, act: fake.sends_picture(act.person, act.file().content),
            "block": lambda fake, act: fake.blocks(act.person),
            "remove": lambda fake, act: fake.removes_bot(group=_group_of(act)),
        },
        sending=("sendActivity",),
        mention="@helper",
        listens=_listen_at,
        is_called=True,
        variables={"api_url": "TEAMS_URL"},
    )


def _line() -> FakeToRun[FakeLine, WebhookDelivery]:
    from gateway_sessions.testing.fakes.line import FakeLine  # noqa: PLC0415 -- see above

    def say(fake: FakeLine, act: Act[WebhookDelivery]) -> WebhookDelivery:
        words = act.words.removeprefix("@helper ")
        return fake.says(act.person, words, group=act.place, mentions=words != act.words)

    def delete(fake: FakeLine, act: Act[WebhookDelivery]) -> None:
        (event,) = json.loads(act.last().body)["events"]
        fake.takes_back(act.person, event["message"]["id"])

    def send(fake: FakeLine, act: Act[WebhookDelivery]) -> None:
        file = act.file()
        more = {"fileName": file.name} if file.kind == "document" else {}
        kind = {"document": "file"}.get(file.kind, file.kind)
        fake.sends_content(act.person, kind, file.content, **more)

    return FakeToRun(
        title="LINE",
        make=lambda: FakeLine(speed=SPEED),
        says=say,
        acts={
            "delete": delete,
            "again": _again,
            "press": lambda fake, act: fake.presses(act.person, act.words),
            "send": send,
            "block": lambda fake, act: fake.blocks(act.person),
            "unblock": lambda fake, act: fake.unblocks(act.person),
            "remove": lambda fake, act: fake.removes_bot(act.person, group=_group_of(act)),
        },
        sending=("push", "reply"),
        mention="@helper",
        listens=_listen_at,
        is_called=True,
    )


def _twilio() -> FakeToRun[FakeTwilio, WebhookDelivery]:
    from gateway_sessions.testing.fakes.twilio import FakeTwilio  # noqa: PLC0415 -- see above

    def send(fake: FakeTwilio, act: Act[WebhookDelivery]) -> None:
        file = act.file()
        fake.sends(act.person, file.content, file.media_type)

    return FakeToRun(
        title="Twilio",
        make=lambda: FakeTwilio(speed=SPEED),
        says=lambda fake, act: fake.says(act.person, act.words),
        acts={"again": _again, "send": send},
        sending=("send",),
        listens=_listen_at,
        is_called=True,
        variables={"sender": "TWILIO_NUMBER", "public_url": "PUBLIC_URL"},
    )


def _google_chat() -> FakeToRun[FakeGoogleChat, WebhookDelivery]:
    from gateway_sessions.testing.fakes.google_chat import FakeGoogleChat  # noqa: PLC0415 -- see above

    def say(fake: FakeGoogleChat, act: Act[WebhookDelivery], thread: str | None = None) -> WebhookDelivery:
        words = act.words.removeprefix("@helper ")
        if act.place is not None and words == act.words:
            problem = "in a space, Google Chat tells an app only of what begins with its name: @helper"
            raise InvalidInputError(problem)
        return fake.says(act.person, words, room=act.place, thread=thread)

    def write_in_thread(fake: FakeGoogleChat, act: Act[WebhookDelivery]) -> None:
        say(fake, act, thread=json.loads(act.last().body)["message"]["thread"]["name"])

    return FakeToRun(
        title="Google Chat",
        make=lambda: FakeGoogleChat(speed=SPEED),
        says=say,
        acts={
            "thread": write_in_thread,
            "again": _again,
            "press": lambda fake, act: fake.presses(act.person, act.words),
            "send": lambda fake, act: fake.sends(act.person, *act.file()),
            "remove": lambda fake, act: fake.removes_bot(act.person, room=act.place),
        },
        sending=("create",),
        mention="@helper",
        listens=_listen_at,
        is_called=True,
        variables={
            "audience": "PUBLIC_URL",
            "key_file": "GOOGLE_KEY_FILE",
            "api_url": "GOOGLE_CHAT_URL",
            "keys_url": "GOOGLE_KEYS_URL",
        },
    )


FAKES: Final[Mapping[str, Callable[[], FakeToRun[Any, Any]]]] = MappingProxyType(
    {
        "discord": _discord,
        "google_chat": _google_chat,
        "line": _line,
        "matrix": _matrix,
        "mattermost": _mattermost,
        "slack": _slack,
        "teams": _teams,
        "telegram": _telegram,
        "twilio": _twilio,
        "whatsapp": _whatsapp,
    }
)
"""The platforms that can be faked, each with the function that imports its fake."""
