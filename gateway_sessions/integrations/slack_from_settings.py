"""The adapter for Slack that a configuration asks for: by Socket Mode, or with events at a webhook."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from gateway_sessions.adapters.group_talk import GroupRules
from gateway_sessions.adapters.protocol import Adapter
from gateway_sessions.integrations.configured import AdapterSettings
from gateway_sessions.integrations.slack.reading import ThreadSessions
from gateway_sessions.integrations.slack.sending import API_URL

CATCH_UP_HOURS: Final = 24
MOST_HOURS: Final = 24 * 365
ONE_WAY: Final = (
    "must be set for Socket Mode, or signing_secret for events at a webhook, and not both of them:"
    " else Slack tells everything twice, or nothing"
)


class SlackOptions(NamedTuple):
    """What both ways take."""

    token: str
    api_url: str
    name: str
    groups: GroupRules[Any]
    threads: ThreadSessions
    command: str
    unfurl: bool
    catch_up: timedelta
    unreadable: Path | None


def slack_from_settings(settings: AdapterSettings) -> Adapter:
    """Make the adapter of one app from `token`, and `app_token` or `signing_secret`."""
    options = SlackOptions(
        token=settings.required_text("token"),
        api_url=settings.text("api_url") or API_URL,
        name=settings.name,
        groups=settings.group_rules(),
        threads=settings.choice("threads", ThreadSessions, ThreadSessions.CHANNELS),
        command=settings.text("command") or "",
        unfurl=settings.flag("unfurl"),
        catch_up=timedelta(hours=settings.number("catch_up_hours", CATCH_UP_HOURS, most=MOST_HOURS) or 0),
        unreadable=settings.folder("unreadable"),
    )
    app_token, secrets = settings.text("app_token"), settings.texts("signing_secret")
    path = settings.text("path")
    if (app_token is None) is not bool(secrets):
        settings.refuse("app_token", ONE_WAY)
    elif app_token is not None and path is not None:
        settings.refuse("path", "is for signing_secret: with Socket Mode, Slack calls no address")
    if options.command and not options.command.startswith("/"):
        settings.refuse("command", "must begin with a slash, as people type it")
    if app_token is not None and not app_token.startswith("xapp-"):
        settings.refuse("app_token", "must be an app-level token of Slack, which begins with xapp-")
    if options.token.startswith("xapp-"):
        settings.refuse("token", "must be the token of the bot, which begins with xoxb-")
    settings.check()
    return _with_webhook(options, secrets, path) if app_token is None else _with_bolt(options, app_token)


def _with_bolt(options: SlackOptions, app_token: str) -> Adapter:
    from gateway_sessions.integrations.slack_bolt import SlackBoltAdapter, app_with  # noqa: PLC0415

    return SlackBoltAdapter(
        app_with(options.token, options.api_url),
        app_token=app_token,
        name=options.name,
        groups=options.groups,
        threads=options.threads,
        command=options.command,
        unfurl=options.unfurl,
        catch_up=options.catch_up,
        unreadable=options.unreadable,
    )


def _with_webhook(options: SlackOptions, secrets: tuple[str, ...], path: str | None) -> Adapter:
    from gateway_sessions.integrations.slack.adapter import SlackAdapter  # noqa: PLC0415

    return SlackAdapter(
        options.token,
        secrets,
        name=options.name,
        groups=options.groups,
        threads=options.threads,
        command=options.command,
        unfurl=options.unfurl,
        catch_up=options.catch_up,
        path=path,
        unreadable=options.unreadable,
        api_url=options.api_url,
    )
