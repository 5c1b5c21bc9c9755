"""The objects of discord.py as the objects of Discord's API."""

from __future__ import annotations

from typing import Any

import discord

from gateway_sessions.integrations.discord.objects import (
    DiscordComponent,
    DiscordFile,
    DiscordForwarded,
    DiscordInteraction,
    DiscordInteractionData,
    DiscordMember,
    DiscordMessage,
    DiscordPlace,
    DiscordPoll,
    DiscordPollAnswer,
    DiscordPollText,
    DiscordReference,
    DiscordSnapshot,
    DiscordSticker,
    DiscordUser,
    read_as,
)


def message_of(message: discord.Message) -> DiscordMessage:
    """Return a message."""
    author = message.author
    reference = message.reference
    resolved = reference.resolved if reference is not None else None
    return DiscordMessage(
        id=str(message.id),
        author=user_of(author),
        content=message.content,
        edited_timestamp=message.edited_at.isoformat() if message.edited_at is not None else None,
        type=message.type.value,
        flags=message.flags.value,
        member=DiscordMember(author.nick) if isinstance(author, discord.Member) else None,
        webhook_id=str(message.webhook_id) if message.webhook_id is not None else None,
        mentions=[user_of(one) for one in message.mentions],
        mention_roles=[str(one) for one in message.raw_role_mentions],
        attachments=[_file_of(one) for one in message.attachments],
        sticker_items=[DiscordSticker(str(one.id), one.name) for one in message.stickers],
        poll=_poll_of(message.poll),
        message_reference=_reference_of(reference),
        referenced_message=message_of(resolved) if isinstance(resolved, discord.Message) else None,
        message_snapshots=[_snapshot_of(one) for one in message.message_snapshots],
        components=[_component_of(one) for one in message.components],
    )


def user_of(person: discord.abc.User) -> DiscordUser:
    """Return a person, a bot or a webhook."""
    return DiscordUser(str(person.id), person.name, person.global_name, person.bot)


def place_of(channel: Any, guild_id: int | None) -> DiscordPlace:
    """Return a channel; one of which discord.py knows only the id is not `known`."""
    number, guild = str(channel.id), str(guild_id) if guild_id is not None else None
    if isinstance(channel, discord.Thread):
        name = channel.parent.name if channel.parent is not None else None
        return DiscordPlace(number, guild, name, str(channel.parent_id))
    if isinstance(channel, discord.PartialMessageable):
        return DiscordPlace(number, guild, known=guild is None)
    name = channel.name if isinstance(channel, discord.abc.GuildChannel) else None
    return DiscordPlace(number, guild, name)


def interaction_of(interaction: discord.Interaction[Any]) -> DiscordInteraction:
    """Return a press or a command."""
    person = interaction.user
    return DiscordInteraction(
        id=str(interaction.id),
        type=interaction.type.value,
        token=interaction.token,
        application_id=str(interaction.application_id),
        data=read_as(DiscordInteractionData, dict(interaction.data or {})),
        guild_id=str(interaction.guild_id) if interaction.guild_id is not None else None,
        member=DiscordMember(person.nick if isinstance(person, discord.Member) else None, user_of(person)),
        message=message_of(interaction.message) if interaction.message is not None else None,
    )


def _file_of(file: discord.Attachment) -> DiscordFile:
    return DiscordFile(file.url, file.filename, file.content_type, file.size)


def _poll_of(poll: discord.Poll | None) -> DiscordPoll | None:
    if poll is None:
        return None
    answers = [DiscordPollAnswer(DiscordPollText(one.text)) for one in poll.answers]
    return DiscordPoll(DiscordPollText(poll.question), answers)


def _reference_of(reference: discord.MessageReference | None) -> DiscordReference | None:
    if reference is None:
        return None
    number = str(reference.message_id) if reference.message_id is not None else None
    return DiscordReference(number, reference.type.value)


def _snapshot_of(snapshot: discord.MessageSnapshot) -> DiscordSnapshot:
    files = [_file_of(one) for one in snapshot.attachments]
    return DiscordSnapshot(DiscordForwarded(snapshot.content, files))


def _component_of(component: Any) -> DiscordComponent:
    return DiscordComponent(
        type=component.type.value,
        label=getattr(component, "label", None),
        custom_id=getattr(component, "custom_id", None),
        components=[_component_of(one) for one in getattr(component, "children", [])],
    )
