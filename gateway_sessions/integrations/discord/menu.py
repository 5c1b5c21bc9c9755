"""The commands of a gateway in Discord's menu, beside those that the bot has itself."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Final

from gateway_sessions.core.display_text import shorten_text
from gateway_sessions.core.notices.command_replies import CommandHelp
from gateway_sessions.integrations.discord.api import DiscordRequest

MOST_COMMANDS: Final = 100
LONGEST_SUMMARY: Final = 100
ARGUMENTS: Final = "arguments"
"""The option of each command: what people would type behind its name."""

_NAME: Final = re.compile(r"[-_\w]{1,32}")
_COMMANDS: Final = "/applications/{application_id}/commands"
_KEPT: Final = (
    "id",
    "name",
    "type",
    "description",
    "options",
    "name_localizations",
    "description_localizations",
    "default_member_permissions",
    "nsfw",
    "contexts",
    "integration_types",
    "handler",
)
"""The members of a command that a request may give; Discord tells more of it."""


def menu_of(commands: Iterable[CommandHelp], own: Container[str]) -> list[dict[str, Any]]:
    """Return the menu of commands as Discord takes it, without those whose names are the bot's *own*."""
    menu: list[dict[str, Any]] = []
    for command in commands:
        name = command.name.lower()
        if name not in own and _NAME.fullmatch(name) and len(menu) < MOST_COMMANDS:
            menu.append({"name": name, "type": 1, "description": summary_of(command)})
            usage = shorten_text(command.usage, LONGEST_SUMMARY) or "-"
            menu[-1]["options"] = [{"type": 3, "name": ARGUMENTS, "description": usage}]
    return menu


def summary_of(command: CommandHelp) -> str:
    """Return what the menu says of a command."""
    return shorten_text(command.summary, LONGEST_SUMMARY) or f"/{command.name}"


def request_for_menu(application_id: str) -> DiscordRequest:
    """Return the request that asks for the menu."""
    return DiscordRequest(method="GET", path=_COMMANDS, ids={"application_id": application_id})


def request_that_changes_menu(
    application_id: str, known: Sequence[Mapping[str, Any]], menu: Sequence[Mapping[str, Any]]
) -> DiscordRequest | None:
    """Return the request that adds a menu to what is *known*; None if nothing changes.

    Commands that somebody else has put there stay: Discord replaces the whole menu at once.
    """
    names = {one["name"] for one in menu}
    there = [one for one in known if one.get("type", 1) == 1 and one["name"] in names]
    if sorted(map(_shown, there)) == sorted(map(_shown, menu)):
        return None
    kept = [one for one in known if one.get("type", 1) != 1 or one["name"] not in names]
    others = [{name: one[name] for name in _KEPT if one.get(name) is not None} for one in kept]
    ids = {"application_id": application_id}
    return DiscordRequest(method="PUT", path=_COMMANDS, ids=ids, json=[*others, *menu][:MOST_COMMANDS])


def _shown(command: Mapping[str, Any]) -> tuple[str, str, list[tuple[str, str]]]:
    given: Sequence[Mapping[str, str]] = command.get("options") or ()
    options = [(one["name"], one["description"]) for one in given]
    return command["name"], command["description"], options
