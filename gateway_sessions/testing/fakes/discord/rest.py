"""The part of Discord's REST API that bots use, with the rules for what they send."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from gateway_sessions.testing.fakes.discord.guilds import (
    ANSWER,
    SLASH_COMMAND,
    DiscordChannel,
    DiscordGuilds,
)
from gateway_sessions.testing.fakes.discord.refusals import (
    DiscordRefusalError,
    cannot_reach_person,
    invalid_form,
    missing_access,
    missing_permissions,
    unknown,
)
from gateway_sessions.testing.fakes.http_server import UploadedFile

LONGEST_CONTENT: Final = 2000
LONGEST_NONCE: Final = 25
LONGEST_CUSTOM_ID: Final = 100
LONGEST_LABEL: Final = 80
MOST_EMBEDS: Final = 10
LONGEST_EMBEDS: Final = 6000
MOST_FILES: Final = 10
MOST_BUTTONS: Final = 5
"""So many rows of buttons, and so many buttons in a row."""
NONCE_SECONDS: Final = 180.0
TOKEN_SECONDS: Final = 15 * 60.0
"""How long the token of an interaction lives."""
ANSWER_SECONDS: Final = 3.0
"""How long Discord waits for the first answer to an interaction."""
EPHEMERAL: Final = 1 << 6


class DiscordCall(NamedTuple):
    """A request as a method of the API sees it."""

    ids: Mapping[str, str]
    """The variable parts of the address."""
    given: Mapping[str, Any]
    """Query and body."""
    files: tuple[UploadedFile, ...] = ()


@dataclass(slots=True)
class FakeInteraction:
    """A press or a command, and what the bot has answered."""

    id: int
    kind: int
    token: str
    channel: DiscordChannel
    message_id: int | None = None
    """The message with the button that was pressed."""
    began: float = field(default_factory=time.monotonic)
    response: int | None = None
    """The type of the first answer; None: none so far."""
    has_failed: bool = False
    """Whether the person was told that the application did not respond."""
    original: int | None = None
    """The message that is the answer to it."""
    ephemeral: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """The answers that only one person sees."""

    @property
    def is_answered(self) -> bool:
        """Whether the person sees no "interaction failed"."""
        return self.response is not None


RestMethod: TypeAlias = Callable[[DiscordCall], Any]


class _RestRoute(NamedTuple):
    method: str
    pattern: re.Pattern[str]
    function: RestMethod


def _route(method: str, path: str, function: RestMethod) -> _RestRoute:
    return _RestRoute(method, re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path)), function)


_MESSAGES: Final = "/channels/{channel_id}/messages"
_COMMANDS: Final = "/applications/{application_id}/commands"
_TOKEN: Final = "/webhooks/{application_id}/{token}"  # noqa: S105 -- an address


class DiscordRest:
    """The methods of the REST API; an answer of None is one without a body."""

    def __init__(self, guilds: DiscordGuilds, *, files: dict[str, bytes]) -> None:
        self._guilds = guilds
        self._files = files
        self._nonces: dict[str, tuple[float, dict[str, Any]]] = {}
        self.nonce_seconds: float = NONCE_SECONDS
        self.commands: dict[str, dict[str, Any]] = {}
        """The commands of the application, by name."""
        self.interactions: dict[str, FakeInteraction] = {}
        """By token."""
        self.typing: list[int] = []
        """The channels in which the bot has shown that it writes."""
        self.blocked: set[int] = set()
        """The people who take no private messages."""
        self.file_url: Callable[[str], str] = str
        self.allowed_content: Callable[[dict[str, Any]], dict[str, Any]] = dict
        """Return a message of history as this bot may see it."""
        self._routes: list[_RestRoute] = self._table()

    def find(self, method: str, path: str) -> tuple[str, RestMethod, dict[str, str]] | None:
        """Return name, function and ids of a request; None if there is no such address."""
        for route in self._routes:
            if route.method == method and (found := route.pattern.fullmatch(path)):
                return route.function.__name__.removeprefix("_"), route.function, found.groupdict()
        return None

    def _table(self) -> list[_RestRoute]:
        return [
            _route("GET", "/users/@me", self._get_me),
            _route("GET", "/oauth2/applications/@me", self._get_application),
            _route("GET", "/applications/@me", self._get_application),
            _route("POST", "/users/@me/channels", self._open_dm),
            _route("GET", "/channels/{channel_id}", self._get_channel),
            _route("GET", _MESSAGES, self._get_messages),
            _route("POST", _MESSAGES, self._create_message),
            _route("GET", _MESSAGES + "/{message_id}", self._get_message),
            _route("PATCH", _MESSAGES + "/{message_id}", self._edit_message),
            _route("DELETE", _MESSAGES + "/{message_id}", self._delete_message),
            _route("POST", _MESSAGES + "/{message_id}/threads", self._start_thread),
            _route("POST", "/channels/{channel_id}/threads", self._start_thread),
            _route("POST", "/channels/{channel_id}/typing", self._type),
            _route("POST", "/interactions/{interaction_id}/{token}/callback", self._respond),
            _route("GET", _TOKEN + "/messages/@original", self._get_original),
            _route("PATCH", _TOKEN + "/messages/@original", self._edit_original),
            _route("PATCH", _TOKEN + "/messages/{message_id}", self._edit_follow_up),
            _route("POST", _TOKEN, self._follow_up),
            _route("GET", _COMMANDS, self._get_commands),
            _route("POST", _COMMANDS, self._create_command),
            _route("PUT", _COMMANDS, self._replace_commands),
        ]

    # Who the bot is

    def _get_me(self, _call: DiscordCall) -> Any:
        return self._guilds.bot.as_json()

    def _get_application(self, _call: DiscordCall) -> Any:
        bot = self._guilds.bot
        facts = {"description": "", "icon": None, "bot_public": True, "bot_require_code_grant": False}
        return {"id": str(bot.id), "name": bot.name, "owner": bot.as_json(), "verify_key": "", **facts}

    def _open_dm(self, call: DiscordCall) -> Any:
        for person in self._guilds.people.values():
            if str(person.id) == str(call.given.get("recipient_id")):
                return self._guilds.private_channel(person).as_json()
        raise unknown("User")

    # Channels and messages

    def _visible(self, call: DiscordCall) -> DiscordChannel:
        number = call.ids["channel_id"]
        channel = self._guilds.channels.get(int(number)) if number.isdigit() else None
        if channel is None:
            raise unknown("Channel")
        if not channel.may_read:
            raise missing_access()
        return channel

    def _writable(self, call: DiscordCall) -> DiscordChannel:
        channel = self._visible(call)
        if not channel.may_write:
            raise missing_permissions()
        if channel.recipient is not None and channel.recipient.id in self.blocked:
            raise cannot_reach_person()
        return channel

    def _message(self, channel: DiscordChannel, call: DiscordCall) -> dict[str, Any]:
        number = call.ids["message_id"]
        if not number.isdigit() or int(number) not in channel.messages:
            raise unknown("Message")
        return channel.messages[int(number)]

    def _get_channel(self, call: DiscordCall) -> Any:
        return self._visible(call).as_json()

    def _get_message(self, call: DiscordCall) -> Any:
        return self.allowed_content(self._message(self._visible(call), call))

    def _get_messages(self, call: DiscordCall) -> Any:
        channel, given = self._visible(call), call.given
        limit = int(given.get("limit", 50))
        if not 1 <= limit <= 100:
            raise invalid_form("limit", "NUMBER_TYPE_MAX", "int value should be between 1 and 100.")
        ids = sorted(channel.messages)
        if "after" in given:
            ids = [one for one in ids if one > int(given["after"])][:limit]
        elif "before" in given:
            ids = [one for one in ids if one < int(given["before"])][-limit:]
        place = {"guild_id": str(channel.guild_id)} if channel.guild_id is not None else {}
        shown: list[dict[str, Any]] = []
        for one in reversed(ids):
            message = self.allowed_content({**channel.messages[one], **place})
            shown.append({name: value for name, value in message.items() if name != "guild_id"})
        return shown

    def _create_message(self, call: DiscordCall) -> Any:
        channel, given = self._writable(call), call.given
        nonce = given.get("nonce")
        if nonce is not None and len(str(nonce)) > LONGEST_NONCE:
            raise invalid_form("nonce", "NONCE_TYPE_TOO_LONG", f"Must be {LONGEST_NONCE} or fewer in length.")
        if nonce is not None and given.get("enforce_nonce"):
            at, message = self._nonces.get(str(nonce), (0.0, {}))
            if message and time.monotonic() - at <= self.nonce_seconds:
                if int(message["id"]) not in self._guilds.channels[int(message["channel_id"])].messages:
                    raise unknown("Message")
                return message
        answered = given.get("message_reference")
        more: dict[str, Any] = self._content(call) | self._answered(channel, answered)
        if nonce is not None:
            more["nonce"] = nonce
        message = self._guilds.add_message(channel, self._guilds.bot, more.pop("content", ""), **more)
        if nonce is not None:
            self._nonces[str(nonce)] = (time.monotonic(), message)
        return message

    def _answered(self, channel: DiscordChannel, answered: Mapping[str, Any] | None) -> dict[str, Any]:
        if not answered:
            return {}
        number = int(answered["message_id"])
        if number not in channel.messages:
            if answered.get("fail_if_not_exists", True):
                raise invalid_form("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
            return {}
        place = {"channel_id": str(channel.id), "message_id": str(number), "type": 0}
        return {
            "type": ANSWER,
            "message_reference": place,
            "referenced_message": channel.messages[number],
        }

    def _edit_message(self, call: DiscordCall) -> Any:
        channel = self._visible(call)
        message = self._message(channel, call)
        if message["author"]["id"] != str(self._guilds.bot.id):
            raise DiscordRefusalError(403, 50005, "Cannot edit a message authored by another user")
        return self._guilds.edit_message(channel, int(message["id"]), **self._content(call, new=False))

    def _delete_message(self, call: DiscordCall) -> Any:
        channel = self._visible(call)
        self._guilds.delete_message(channel, int(self._message(channel, call)["id"]))

    def _type(self, call: DiscordCall) -> Any:
        self.typing.append(self._writable(call).id)

    def _start_thread(self, call: DiscordCall) -> Any:
        channel = self._writable(call)
        number = int(call.ids["message_id"]) if "message_id" in call.ids else None
        return self._guilds.thread(channel, str(call.given["name"]), thread_id=number).as_json()

    def _content(self, call: DiscordCall, *, new: bool = True) -> dict[str, Any]:
        """Return the content that a request gives, or refuse it as Discord does."""
        given = call.given
        content = {
            name: given[name] for name in ("content", "embeds", "components", "flags") if name in given
        }
        if content.get("content") is None:
            content.pop("content", None)
        text = str(content.get("content", ""))
        if len(text) > LONGEST_CONTENT:
            problem = f"Must be {LONGEST_CONTENT} or fewer in length."
            raise invalid_form("content", "BASE_TYPE_MAX_LENGTH", problem)
        _check_embeds(given.get("embeds") or [])
        _check_components(given.get("components") or [])
        if call.files:
            content["attachments"] = [self._keep(file) for file in call.files[:MOST_FILES]]
        if new and not text.strip() and not (given.get("embeds") or call.files):
            raise DiscordRefusalError(400, 50006, "Cannot send an empty message")
        return content

    def _keep(self, file: UploadedFile) -> dict[str, Any]:
        return self.keep_file(file.name, file.content, file.media_type)

    def keep_file(self, name: str, content: bytes, media_type: str) -> dict[str, Any]:
        """Keep a file, and return the attachment that names it."""
        number = self._guilds.new_id()
        path = f"/attachments/{number}/{name}"
        self._files[path] = content
        address = self.file_url(path)
        facts = {"filename": name, "size": len(content), "content_type": media_type}
        return {"id": str(number), "url": address, "proxy_url": address, **facts}

    # Interactions

    def _respond(self, call: DiscordCall) -> Any:
        interaction = self.interactions.get(call.ids["token"])
        if interaction is None or time.monotonic() - interaction.began > ANSWER_SECONDS:
            raise unknown("Interaction")
        if interaction.response is not None:
            raise DiscordRefusalError(400, 40060, "Interaction has already been acknowledged.")
        self.take_response(interaction, call.given)
        if call.given.get("with_response") not in ("1", "true"):
            return None
        facts = {"id": str(interaction.id), "type": interaction.kind}
        return {"interaction": facts, "resource": {"type": interaction.response}}

    def take_response(self, interaction: FakeInteraction, given: Mapping[str, Any]) -> None:
        """Take the first answer to an interaction."""
        interaction.response = int(given["type"])
        if interaction.response == 4:
            self._answer_interaction(interaction, DiscordCall({}, given.get("data") or {}))

    def _answer_interaction(self, interaction: FakeInteraction, call: DiscordCall) -> dict[str, Any]:
        more = {"type": SLASH_COMMAND, **self._content(call)}
        place, bot, text = interaction.channel, self._guilds.bot, str(more.pop("content", ""))
        if int(more.get("flags") or 0) & EPHEMERAL:
            message = self._guilds.make_message(place, bot, text, **more)
            interaction.ephemeral.append(message)
            return message
        message = self._guilds.add_message(place, bot, text, **more)
        if interaction.original is None:
            interaction.original = int(message["id"])
        return message

    def _interaction(self, call: DiscordCall) -> FakeInteraction:
        interaction = self.interactions.get(call.ids["token"])
        if interaction is None:
            raise unknown("Webhook")
        if time.monotonic() - interaction.began > TOKEN_SECONDS:
            raise DiscordRefusalError(401, 50027, "Invalid Webhook Token")
        if interaction.response is None:
            raise unknown("Webhook")
        return interaction

    def _edit_original(self, call: DiscordCall) -> Any:
        interaction = self._interaction(call)
        if interaction.original is None and interaction.response == 5:
            return self._answer_interaction(interaction, call)
        number = interaction.original or interaction.message_id
        if number is None or number not in interaction.channel.messages:
            raise unknown("Message")
        return self._guilds.edit_message(interaction.channel, number, **self._content(call, new=False))

    def _get_original(self, call: DiscordCall) -> Any:
        interaction = self._interaction(call)
        if interaction.original is None:
            raise unknown("Message")
        return interaction.channel.messages[interaction.original]

    def _follow_up(self, call: DiscordCall) -> Any:
        return self._answer_interaction(self._interaction(call), call)

    def _edit_follow_up(self, call: DiscordCall) -> Any:
        interaction = self._interaction(call)
        message = self._message(interaction.channel, call)
        content = self._content(call, new=False)
        return self._guilds.edit_message(interaction.channel, int(message["id"]), **content)

    # Commands

    def _get_commands(self, _call: DiscordCall) -> Any:
        return list(self.commands.values())

    def _create_command(self, call: DiscordCall) -> Any:
        name = str(call.given["name"])
        if not re.fullmatch(r"[-_\w]{1,32}", name) or name != name.lower():
            raise invalid_form("name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
        known = self.commands.get(name, {"id": str(self._guilds.new_id()), "version": "1"})
        bot = str(self._guilds.bot.id)
        plain = {"type": 1, "default_member_permissions": None, "application_id": bot}
        self.commands[name] = {**plain, **known, **call.given}
        return self.commands[name]

    def _replace_commands(self, call: DiscordCall) -> Any:
        self.commands.clear()
        return [self._create_command(DiscordCall({}, one)) for one in call.given["commands"]]


def _check_embeds(embeds: list[Mapping[str, Any]]) -> None:
    if len(embeds) > MOST_EMBEDS:
        raise invalid_form("embeds", "BASE_TYPE_MAX_LENGTH", f"Must be {MOST_EMBEDS} or fewer in length.")
    if (
        sum(len(str(one.get(name, ""))) for one in embeds for name in ("title", "description"))
        > LONGEST_EMBEDS
    ):
        raise invalid_form("embeds", "MAX_EMBED_SIZE_EXCEEDED", f"Embed size exceeds {LONGEST_EMBEDS}")


def _check_components(rows: list[Mapping[str, Any]]) -> None:
    if len(rows) > MOST_BUTTONS or any(len(row.get("components", [])) > MOST_BUTTONS for row in rows):
        raise invalid_form("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
    buttons = [one for row in rows for one in row.get("components", [])]
    names = [one["custom_id"] for one in buttons if "custom_id" in one]
    if len(set(names)) < len(names):
        raise invalid_form(
            "components", "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id is duplicated"
        )
    if any(len(name) > LONGEST_CUSTOM_ID for name in names):
        raise invalid_form("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
    if any(not 1 <= len(str(one.get("label", ""))) <= LONGEST_LABEL for one in buttons):
        raise invalid_form("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 80 in length.")


def parameters_of(body: Mapping[str, Any]) -> DiscordCall:
    """Return what a request gives: JSON, or a form whose `payload_json` is accompanied by files."""
    files = tuple(one for one in body.values() if isinstance(one, UploadedFile))
    given = {name: value for name, value in body.items() if not isinstance(value, UploadedFile)}
    if "payload_json" in given:
        given |= json.loads(str(given.pop("payload_json")))
    return DiscordCall({}, given, files)
