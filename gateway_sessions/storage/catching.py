"""What a search finds on its way, and how the truth decides about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

from gateway_sessions.core.search_filter import SearchFilter
from gateway_sessions.core.search_wanted import Vocabulary, Wanted, Words
from gateway_sessions.ports import Reader, Verb
from gateway_sessions.storage.verbs import searching
from gateway_sessions.storage.verbs.search_hits import Order
from gateway_sessions.storage.verbs.searching import BEYOND, Candidate, Scanned

STEP: Final = 500
"""So many messages are looked at in one go; then others who want to read, or need the loop, have a turn."""
MANY: Final = 2_500
"""The same of short ones, if no more than a step of them has to be looked at more closely: each go costs a
change of threads, and in a busy process that may take longer than to look."""
FEW: Final = 20
"""The same of long ones, of which the whole text is looked at."""
MOST_SCANNED: Final = 10_000
"""So many messages are looked at one by one, no more."""
MOST_FOUND: Final = 50_000
"""So many answers of the index are compared with the truth, no more."""
NOT_ALL_CHANGED: Final = "the search index is behind; not all changed messages were looked at"

Look: TypeAlias = Callable[[int, int], Verb[Scanned]]
"""Looks at messages before an id, so many of them."""


@dataclass(slots=True)
class Catch:
    """What was found so far."""

    candidates: dict[int, Candidate] = field(default_factory=dict[int, Candidate])
    problem: str | None = None

    def add(self, candidates: list[Candidate]) -> None:
        """These were found as well."""
        self.candidates.update((one.message_id, one) for one in candidates)


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for, and how much of it is enough to choose from."""

    wanted: Wanted | Vocabulary
    shown: SearchFilter
    order: Order
    enough: int

    @property
    def most(self) -> int:
        """So many answers of an index are compared with the truth: of some, the whole text."""
        return MOST_FOUND if isinstance(self.wanted, Words) else MOST_SCANNED

    @property
    def enough_of_newest(self) -> int:
        """So many of the newest are enough to choose from. Many of the newest say nothing of the oldest."""
        return BEYOND if self.order is Order.OLDEST else self.enough

    def end_at(self, checked: int) -> str:
        """What may be missing because no more was looked at."""
        end = "oldest" if self.order is Order.OLDEST else "newest"
        return f"of what may match only the {checked} {end} messages were looked at"


async def select(
    truth: Reader,
    catch: Catch,
    message_ids: Sequence[int],
    request: Request,
    *,
    sure: bool = True,
    enough: int = BEYOND,
) -> None:
    """Let the truth decide about what an index has found, until that is enough."""
    step = STEP if sure else FEW
    for at in range(0, len(message_ids), step):
        if len(catch.candidates) >= enough:
            return
        verb = partial(
            searching.select, message_ids[at : at + step], request.wanted, request.shown, sure=sure
        )
        catch.add(await truth.read(verb))


async def scan(truth: Reader, request: Request) -> Catch:
    """Look at messages one by one, without an index."""
    catch = Catch()
    await look_at(truth, catch, _between(0, request), enough=request.enough_of_newest)
    return catch


async def look_behind(truth: Reader, catch: Catch, request: Request, after: int, newest: Scanned) -> None:
    """Go on after the *newest* messages behind an id: look at no more than it takes to choose from."""
    enough = request.enough_of_newest
    if len(catch.candidates) < enough:
        await look_at(truth, catch, _between(after, request), newest=newest, enough=enough)


async def look_at(
    truth: Reader, catch: Catch, look: Look, *, newest: Scanned | None = None, enough: int = BEYOND
) -> None:
    """Look at messages, the newest first, as far as it is bearable."""
    looked, last = 0, newest
    while looked < MOST_SCANNED:
        size = min(_size_after(last), MOST_SCANNED - looked)
        before = BEYOND if last is None or last.last is None else last.last
        last = await truth.read(partial(look, before, size))
        looked += size
        catch.add(last.candidates)
        if last.last is None or len(catch.candidates) >= enough:
            return
    catch.problem = (
        f"only the {MOST_SCANNED} newest messages that the index does not help with were looked at"
    )


def _size_after(last: Scanned | None) -> int:
    """How many messages are looked at next: so many that about a step of them is looked at more closely."""
    if last is None or not last.light:
        return STEP
    return MANY if last.closer * MANY <= STEP else int(STEP / last.closer)


def _between(after: int, request: Request) -> Look:
    def look(before: int, size: int) -> Verb[Scanned]:
        return searching.scan(after, before, request.wanted, request.shown, size)

    return look
