from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from gateway_sessions.runtime.reach import Letter, Reach
from gateway_sessions.runtime.running import StopReason
from gateway_sessions.storage.verbs.nodes import Mail, Post

KEY = "agent:main:telegram:dm:ann"


class Database:
    """Has that post, once."""

    epoch = 7

    def __init__(self, *mail: Mail) -> None:
        self.mail = list(enumerate(mail, 1))
        self.thrown_away = 0

    async def read(self, _verb: Callable[[], object]) -> Post:
        return Post(
            mail=tuple(one for _, one in self.mail),
            mail_ids=tuple(at for at, _ in self.mail),
            leases=frozenset({(KEY, 3)}),
        )

    async def write(self, _verb: Callable[[], object]) -> None:
        self.thrown_away, self.mail = len(self.mail), []


class Running:
    """A turn of this node."""

    def __init__(self) -> None:
        self.turn = SimpleNamespace(
            session_key=KEY, token=3, held=SimpleNamespace(epoch=Database.epoch), ended=False
        )
        self.stopped: list[StopReason] = []

    def stop(self, reason: StopReason) -> None:
        self.stopped.append(reason)


async def test_a_letter_that_cannot_be_read_is_thrown_away_and_the_next_one_is_read():
    """A node of another version may have written it: it must not end the gateway."""
    database = Database(
        Mail(session_key=KEY, token=3, kind=Letter.STEER, body="{"),
        Mail(session_key=KEY, token=3, kind="of tomorrow", body=None),
        Mail(session_key=KEY, token=3, kind=Letter.INTERRUPT, body=None),
    )
    running = Running()
    lanes: Any = SimpleNamespace(running={KEY: running})
    ledger: Any = SimpleNamespace(knows=lambda *_: True)
    db: Any = database
    assert await Reach(lanes, ledger, db, None).sweep() == 3
    assert running.stopped == [StopReason.MESSAGE]
    assert database.thrown_away == 3
