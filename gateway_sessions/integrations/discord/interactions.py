"""Presses on buttons and commands from Discord's menu: what they bring, and how they are answered."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any, Final, cast

from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.discord.api import DiscordRequest
from gateway_sessions.integrations.discord.objects import (
    DiscordComponent,
    DiscordInteraction,
    DiscordMember,
    DiscordOption,
    DiscordPlace,
    UnreadableDiscordObjectError,
    milliseconds_of,
)
from gateway_sessions.integrations.discord.reading import DiscordRules, attachment_of, source_of
from gateway_sessions.integrations.discord.sending import OWN_DIGEST, OWN_VALUE

ANSWERS: Final = "answers"
"""The member of a message's metadata that names the message with the pressed button; "" for a command."""
INTERACTION: Final = "interaction"
"""The member of a message's metadata that holds the token by which a command is answered."""
TOKEN_LIVES: Final = timedelta(minutes=14)
"""How long the token of an interaction is used: Discord takes it for fifteen minutes."""
_ONLY_IN_CHANNELS: Final = frozenset({"nonce", "enforce_nonce", "message_reference", "flags"})
_THREADS: Final = frozenset({10, 11, 12})


class InteractionType(IntEnum):
    """The kinds of interactions, as Discord numbers them."""

    PING = 1
    COMMAND = 2
    COMPONENT = 3
    AUTOCOMPLETE = 4
    MODAL = 5


class InteractionAnswer(IntEnum):
    """The first answers to an interaction, as Discord numbers them."""

    PONG = 1
    LATER_AS_MESSAGE = 5
    LATER = 6
    """The person sees nothing new; an answer is a message as any other."""
    CHOICES = 8


def read_interaction(
    interaction: DiscordInteraction, place: DiscordPlace, rules: DiscordRules, values: Mapping[str, str]
) -> InboundMessage | None:
    """Return what a press or a command brings; None if it is for somebody else.

    *values* are remembered values of buttons, by the names of the buttons.
    """
    member = interaction.member or DiscordMember(user=interaction.user)
    person = member.user
    if person is None:
        problem = "an interaction does not say who it is from"
        raise UnreadableDiscordObjectError(problem)
    try:
        action: str | None = None
        match interaction.type:
            case InteractionType.COMMAND:
                text = command_text(interaction, rules.command)
                metadata = {ANSWERS: "", INTERACTION: interaction.token}
            case InteractionType.COMPONENT:
                action = action_of(interaction.data.custom_id, values)
                if action is None:
                    return None
                text = label_of(interaction) or action
                metadata = {ANSWERS: interaction.message.id if interaction.message else ""}
            case _:
                return None
        files = interaction.data.resolved.attachments
        return InboundMessage(
            source=source_of(place, person, member.nick or person.name, rules),
            text=text,
            message_id=interaction.id,
            account=rules.account,
            action=action,
            attachments=tuple(attachment_of(one) for one in files.values()),
            sent_at=datetime.fromtimestamp(milliseconds_of(interaction.id) / 1000, UTC),
            metadata=metadata,
        )
    except (InvalidInputError, ValueError, OverflowError, OSError) as error:
        problem = f"an interaction of Discord cannot be read ({type(error).__name__}: {error})"
        raise UnreadableDiscordObjectError(problem) from error


def place_of(interaction: DiscordInteraction) -> DiscordPlace:
    """Return the place of an interaction, as far as it tells that."""
    channel = interaction.channel
    number = (channel.id if channel is not None else None) or interaction.channel_id or ""
    parent = channel.parent_id if channel is not None and channel.type in _THREADS else None
    name = channel.name if channel is not None else None
    return DiscordPlace(channel_id=number, guild_id=interaction.guild_id, name=name, parent_id=parent)


def action_of(custom_id: str, values: Mapping[str, str]) -> str | None:
    """Return the value of a pressed button of ours; None if the button is somebody else's."""
    if custom_id.startswith(OWN_DIGEST):
        return values.get(custom_id)
    return custom_id.removeprefix(OWN_VALUE) if custom_id.startswith(OWN_VALUE) else None


def label_of(interaction: DiscordInteraction) -> str:
    """Return what the pressed button says; "" if that is not told."""
    shown = interaction.message.components if interaction.message is not None else []
    return next(
        (one.label or "" for one in _buttons(shown) if one.custom_id == interaction.data.custom_id), ""
    )


def _buttons(components: list[DiscordComponent]) -> Iterator[DiscordComponent]:
    for one in components:
        yield one
        yield from _buttons(one.components)


def command_text(interaction: DiscordInteraction, bare: str = "") -> str:
    """Return a command as people would type it; of the command *bare*, only what was given to it.

    The files that were given to it are no words.
    """
    name, files = interaction.data.name, interaction.data.resolved.attachments
    given = [*_given(interaction.data.options, files)]
    return " ".join(given if given and name == bare else [f"/{name}", *given])


def _given(options: list[DiscordOption], files: Collection[str]) -> Iterator[str]:
    for option in options:
        if option.value is None:  # a command within the command
            yield option.name
            yield from _given(option.options, files)
        elif option.value not in files:
            yield str(option.value)


def request_that_answers(interaction: DiscordInteraction, answer: InteractionAnswer) -> DiscordRequest:
    """Return the request with the first answer to an interaction."""
    return DiscordRequest(
        method="POST",
        path="/interactions/{interaction_id}/{webhook_token}/callback",
        ids={"interaction_id": interaction.id, "webhook_token": interaction.token},
        json={"type": int(answer)},
    )


def request_in_place(application_id: str, token: str, request: DiscordRequest) -> DiscordRequest:
    """Return the request that shows a message where a command waits for its answer.

    It can be repeated: the message is then shown in the same place once more.
    """
    payload = cast("Mapping[str, Any]", request.json)
    return DiscordRequest(
        method="PATCH",
        path="/webhooks/{webhook_id}/{webhook_token}/messages/@original",
        ids={"webhook_id": application_id, "webhook_token": token},
        json={name: value for name, value in payload.items() if name not in _ONLY_IN_CHANNELS},
        files=request.files,
    )


def request_of_follow_up(application_id: str, token: str, request: DiscordRequest) -> DiscordRequest:
    """Return the request that shows a message by the token of an interaction, without a bot's token."""
    in_place = request_in_place(application_id, token, request)
    path = in_place.path.removesuffix("/messages/@original")
    return replace(in_place, method="POST", path=path)


def is_alive(interaction_id: str, now: datetime) -> bool:
    """Return whether the token of an interaction still opens anything."""
    began = datetime.fromtimestamp(milliseconds_of(interaction_id) / 1000, UTC)
    return now - began < TOKEN_LIVES
