"""What each error of Slack's Web API means for a message, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from gateway_sessions.adapters.webhooks.api_calls import (
    CallOutcome,
    CallRefused,
    CallUnauthorized,
    CallUnavailable,
    CallUnknown,
)
from gateway_sessions.integrations.slack.objects import SlackAnswer

_INVITE: Final = "invite the app with /invite, or check the id of the channel"
_INSTALL: Final = "install the app again, and copy its new token (xoxb-…) from OAuth & Permissions"
_MESSAGES_TAB: Final = "turn on the Messages Tab under App Home"

UNAUTHORIZED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "invalid_auth": "the token is wrong: copy it (xoxb-…) from OAuth & Permissions of the app",
        "not_authed": "there is no token: copy it (xoxb-…) from OAuth & Permissions of the app",
        "token_revoked": f"the token was revoked: {_INSTALL}",
        "token_expired": f"the token has expired: {_INSTALL}",
        "account_inactive": f"the app was removed from the workspace: {_INSTALL}",
    }
)
"""The errors of a token that opens nothing. Replies wait for a good one."""

UNAVAILABLE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "not_allowed_token_type": (
            "this is the wrong kind of token: calls need that of the bot (xoxb-…), Socket Mode that of the "
            "app (xapp-…)"
        ),
        "team_access_not_granted": "the app has no access to this workspace: let an administrator install it",
        "access_denied": "the app has no access: ask an administrator of the workspace",
        "accesslimited": "the access is limited for now",
        "ekm_access_denied": "an administrator has suspended posting",
        "org_login_required": "the workspace is being moved to an organisation",
        "service_unavailable": "is away for a moment",
        "team_added_to_org": "the workspace is being moved to an organisation",
        "request_timeout": "the call did not arrive whole",
    }
)
"""The errors after which a call may succeed later, as it is."""

UNKNOWN: Final[frozenset[str]] = frozenset({"fatal_error", "internal_error"})
"""The errors after which Slack may have done something all the same."""

LAYOUT: Final[frozenset[str]] = frozenset(
    {
        *("invalid_blocks", "invalid_blocks_format", "invalid_attachments", "too_many_attachments"),
        *("slack_file_not_found", "block_mismatch", "msg_blocks_too_long"),
    }
)
"""The errors of blocks: the text alone may be shown."""

REFUSED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "channel_not_found": f"there is no such channel, or the app is not in it: {_INVITE}",
        "not_in_channel": f"the app is not in the channel: {_INVITE}",
        "is_archived": "the channel is archived",
        "msg_too_long": "the text is too long",
        "no_text": "there is no text",
        "restricted_action": "a setting of the workspace forbids it to post there: ask an administrator",
        "user_not_found": "there is no such person",
        "user_not_visible": "the person cannot be seen by the app",
        "user_disabled": "the person's account is deactivated",
        "cannot_dm_bot": "a bot cannot write to a bot",
        "messages_tab_disabled": f"people cannot be written to: {_MESSAGES_TAB}",
        "message_not_found": "the message is gone",
        "cant_update_message": "the message is somebody else's",
        "edit_window_closed": "the message is too old to be changed",
        "thread_not_found": "the thread is gone",
        "file_not_found": "the file is gone",
        "metadata_too_large": "the metadata is too large",
    }
)
"""The errors after which a message never will be shown as it is."""


def outcome_of_error(answer: SlackAnswer) -> CallOutcome:
    """Return what an answer that is not ok means."""
    error = answer.error
    if error in UNAUTHORIZED:
        return CallUnauthorized(f"{UNAUTHORIZED[error]} ({error})")
    if error == "missing_scope":
        needed = answer.needed or "one"
        return CallUnavailable(
            f"the app lacks the scope {needed}: add it under OAuth & Permissions, and install the app again"
        )
    if error in UNAVAILABLE:
        return CallUnavailable(f"{UNAVAILABLE[error]} ({error})")
    if error in UNKNOWN:
        return CallUnknown(f"Slack failed in the middle of the call ({error})")
    if error in LAYOUT:
        return CallRefused(f"the blocks are refused ({error}: {_details(answer.errors)})", markup=True)
    return CallRefused(f"{REFUSED.get(error, 'the call is refused')} ({error or 'without a reason'})")


def _details(errors: list[Any] | None) -> str:
    return "; ".join(map(str, errors or ["without a reason"]))
