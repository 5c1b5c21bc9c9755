"""The choice which named account gets a lane from before named accounts had lanes of their own.

In version 0.1 all accounts of a platform shared the lanes of one without a name. The queue and the outbox
still know which accounts wrote on such a lane. Of those, the one that wrote last gets it with all that it
holds; each other one goes on with a new session that is linked to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from gateway_sessions.core.identity.keys import account_of, place_in


class AccountUse(NamedTuple):
    """An account has used a lane, and when it did so last."""

    session_key: str
    account: str
    last_at: int


@dataclass(frozen=True, slots=True)
class LaneChoice:
    """The account that gets a lane, and those that go on with a session linked to the lane's."""

    session_key: str
    account: str
    """Empty: the lane stays where it is."""
    others: tuple[str, ...] = ()
    known: bool = True
    """Whether anything told who had used it; else it goes to the account that was named for such lanes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedLane:
    """A lane that went to an account."""

    session_key: str
    """Its key until then."""
    account: str
    now: str
    """Its key from then on."""
    session_id: str | None
    known: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedLane:
    """A lane that begins with a new session, linked to one that several accounts had shared."""

    session_key: str
    account: str
    session_id: str
    """The shared session."""
    kept_by: str
    """The lane that goes on with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftLane:
    """A lane that could not be given to an account, and why."""

    session_key: str
    account: str
    problem: str
    busy: bool = False
    """Whether it can be given to the account later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanesReport:
    """What became of lanes that named accounts had used without having lanes of their own."""

    moved: tuple[MovedLane, ...] = ()
    linked: tuple[LinkedLane, ...] = ()
    left: tuple[LeftLane, ...] = ()
    dry_run: bool = False

    def and_of(self, other: LanesReport) -> LanesReport:
        """What became of these lanes and of those."""
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

    *lanes* are all there are on platforms in *fallback*, which says by platform where lanes go if nothing
    tells who used them; with *unnamed_too*, also those that only an account without a name has used.
    """
    fallback = fallback or {}
    by_lane: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for key, account, last_at in used:
        if not account_of(key):
            # An account that gets a name may have used the lane under both: that is one account.
            name = account or (fallback.get(place_in(key)[0], "") if unnamed_too else "")
            by_lane[key][name] = max(last_at, by_lane[key].get(name, last_at))
    choices = [_chosen(key, accounts) for key, accounts in by_lane.items()]
    unknown = [one for one in lanes if one not in by_lane and not account_of(one)]
    choices += [LaneChoice(one, fallback.get(place_in(one)[0], ""), known=False) for one in unknown]
    return sorted((one for one in choices if one.account or one.others), key=lambda one: one.session_key)


def fallback_of(serving: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Where lanes go of which nobody knows the account, by platform.

    That is the first account that serves the platform, and nowhere if one without a name does: those are its.
    """
    by_platform: defaultdict[str, list[str]] = defaultdict(list)
    for platform, account in serving:
        by_platform[platform].append(account)
    return {platform: accounts[0] for platform, accounts in by_platform.items() if "" not in accounts}


def _chosen(key: str, accounts: Mapping[str, int]) -> LaneChoice:
    latest, *others = sorted(accounts, key=lambda account: (-accounts[account], account))
    return LaneChoice(key, latest, tuple(others))
