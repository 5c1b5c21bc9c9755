"""The choice which named account gets a lane from before named accounts had lanes of their own.

In version 0.1 all accounts of a platform shared the lanes of the account without a name. The queue and the
outbox still know which accounts wrote on such a lane. The account that wrote last gets the lane with all its
sessions; each other account goes on with a new session that is linked to the shared one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from gateway_sessions.core.identity.keys import account_in_key, platform_and_chat_type


class AccountUse(NamedTuple):
    """One account's use of a lane."""

    session_key: str
    account: str
    last_at: int
    """The instant of the last use, in microseconds since the epoch."""


@dataclass(frozen=True, slots=True)
class LaneChoice:
    """The account that gets a lane, and the accounts that go on with a session linked to it."""

    session_key: str
    account: str
    """The account that gets the lane; empty: the lane keeps its key."""
    others: tuple[str, ...] = ()
    """The other accounts that used the lane."""
    known: bool = True
    """Whether queue or outbox told who used the lane; if not, the lane goes to the fallback account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedLane:
    """A lane that went to an account."""

    session_key: str
    """The key of the lane before the move."""
    account: str
    now: str
    """The key of the lane after the move."""
    session_id: str | None
    known: bool
    """Whether queue or outbox told who used the lane."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedLane:
    """A lane that begins with a new session, linked to a session that several accounts had shared."""

    session_key: str
    account: str
    session_id: str
    """The id of the shared session."""
    kept_by: str
    """The key of the lane that goes on with the shared session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftLane:
    """A lane that could not be given to an account, and the reason."""

    session_key: str
    account: str
    problem: str
    """The reason, in words."""
    busy: bool = False
    """Whether the lane can be given to the account later, once no turn runs or waits on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanesReport:
    """The report of a move: the lanes that named accounts had used without having lanes of their own."""

    moved: tuple[MovedLane, ...] = ()
    """The lanes that their account has now."""
    linked: tuple[LinkedLane, ...] = ()
    """The lanes whose session stayed with another lane, and which begin a session linked to it."""
    left: tuple[LeftLane, ...] = ()
    """The lanes that stayed as they were."""
    dry_run: bool = False

    def joined_with(self, other: LanesReport) -> LanesReport:
        """Return one report of both moves."""
        return replace(
            self,
            moved=self.moved + other.moved,
            linked=self.linked + other.linked,
            left=self.left + other.left,
        )


def choose_accounts(
    used: Iterable[AccountUse],
    lanes: Iterable[str] = (),
    fallback: Mapping[str, str] | None = None,
    *,
    unnamed_too: bool = False,
) -> list[LaneChoice]:
    """Return the lanes that get an account, or that several accounts have shared, in the order of their keys.

    *lanes* are all lanes on the platforms of *fallback*, the map from a platform to the account of lanes
    whose user is unknown. With *unnamed_too*, lanes that only the account without a name has used go there as
    well.
    """
    fallback = fallback or {}
    by_lane: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for key, account, last_at in used:
        if not account_in_key(key):
            # An account that gets a name may have used the lane under both: that is one account.
            name = account or (fallback.get(platform_and_chat_type(key)[0], "") if unnamed_too else "")
            by_lane[key][name] = max(last_at, by_lane[key].get(name, last_at))
    choices = [_give_to_latest_account(key, accounts) for key, accounts in by_lane.items()]
    unknown = [one for one in lanes if one not in by_lane and not account_in_key(one)]
    choices += [
        LaneChoice(one, fallback.get(platform_and_chat_type(one)[0], ""), known=False) for one in unknown
    ]
    return sorted((one for one in choices if one.account or one.others), key=lambda one: one.session_key)


def fallback_accounts(serving: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the account of lanes whose user is unknown, by platform.

    That is the first account that serves the platform; no account, if one without a name serves it, since
    such lanes are its own already.
    """
    by_platform: defaultdict[str, list[str]] = defaultdict(list)
    for platform, account in serving:
        by_platform[platform].append(account)
    return {platform: accounts[0] for platform, accounts in by_platform.items() if "" not in accounts}


def _give_to_latest_account(key: str, accounts: Mapping[str, int]) -> LaneChoice:
    latest, *others = sorted(accounts, key=lambda account: (-accounts[account], account))
    return LaneChoice(key, latest, tuple(others))
