"""A store for callers without a loop: the same answers and errors, any thread, and nothing left behind."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

import pytest
from anyio.from_thread import BlockingPortal

from gateway_sessions import (
    Accepted,
    FencedError,
    GatewaySessionsError,
    InvalidInputError,
    Scope,
    SessionNotFoundError,
    SessionSource,
    SessionStore,
    StoreBusyError,
    blocking,
)
from gateway_sessions.adapters import InboundMessage
from gateway_sessions.blocking import BlockingSessionDB, BlockingSessionStore, BlockingTurn
from gateway_sessions.blocking._loop_thread import LoopThread
from gateway_sessions.errors import EventLoopRunningError, StoreStoppedError
from tests.unit.runtime.store_fixtures import QUICK, dm_source

EVERYTHING = Scope.operator()


def a_store(home: Path, **options) -> BlockingSessionStore:
    return BlockingSessionStore.open(home, QUICK, **options)


def a_database(home: Path) -> BlockingSessionDB:
    return BlockingSessionDB.open(home / "sessions.db", survives_power_cut=False)


@pytest.fixture(autouse=True)
def nothing_stays_behind():
    before = set(threading.enumerate())
    yield
    left = set(threading.enumerate()) - before
    for thread in left:
        thread.join(15)
    assert not any(thread.is_alive() for thread in left)


def test_a_conversation_lasts_from_one_opening_to_the_next(tmp_path: Path):
    with a_store(tmp_path) as store:
        entry = store.get_or_create_session(dm_source())
        assert store.home == tmp_path
        assert store.should_notify(entry) is False
        assert store.started.clean
        assert not store.drain_requested
    with a_store(tmp_path) as store:
        assert store.get_or_create_session(dm_source()).session_id == entry.session_id
        assert [one.session_key for one in store.list_sessions(scope=EVERYTHING)] == [entry.session_key]


def test_a_store_has_its_parts(tmp_path: Path):
    ended: SimpleQueue[str] = SimpleQueue()

    async def tell(event) -> None:
        ended.put(event.session_id)

    with a_store(tmp_path, hooks={"tell": tell}) as store:
        entry = store.get_or_create_session(dm_source())
        store.db.append_message(entry.session_id, "user", "hello")
        assert [one.content for one in store.db.get_messages(entry.session_id)] == ["hello"]
        store.reset_session(entry.session_key)
        store.hooks.sweep()
        assert ended.get(timeout=15) == entry.session_id  # the store may have been quicker than our sweep
        assert store.hooks.dead_letters() == []
        assert store.watcher.sweep().finalised == 0


def test_a_database_can_be_used_alone(tmp_path: Path):
    with a_database(tmp_path) as db:
        db.create_session("s", "cli")
        assert db.record_usage("s", "e", input_tokens=5)
        assert db.usage_of_session("s").total.input_tokens == 5
        assert db.path == tmp_path / "sessions.db"


def test_what_comes_one_by_one_can_be_left_early(tmp_path: Path):
    with a_database(tmp_path) as db:
        for name in "abc":
            db.create_session(name, "cli")
        assert len(list(db.export_all(scope=EVERYTHING))) == 3
        assert len(list(itertools.islice(db.export_all(scope=EVERYTHING), 1))) == 1
        rest = db.export_all(scope=EVERYTHING)
        next(rest)
    with pytest.raises(StoreStoppedError):
        next(rest)
    rest.close()


def test_errors_pass_unchanged(tmp_path: Path):
    with a_store(tmp_path) as store:
        with pytest.raises(SessionNotFoundError, match="gone"):
            store.db.get_messages("gone")
        with pytest.raises(InvalidInputError, match="limit"):
            store.list_sessions(scope=EVERYTHING, limit=0)
        with pytest.raises(StoreBusyError), a_store(tmp_path):
            pass
        assert store.get_or_create_session(dm_source())


def test_what_is_wrong_with_an_opening_is_told_at_once():
    with pytest.raises(GatewaySessionsError):
        BlockingSessionDB.open("oracle://somewhere")


def test_threads_share_a_store(tmp_path: Path):
    with a_store(tmp_path) as store, ThreadPoolExecutor(8) as threads:
        session = store.get_or_create_session(dm_source()).session_id

        def use(number: int) -> bool:
            return store.db.record_usage(session, f"e{number % 60}", input_tokens=1)

        assert sum(threads.map(use, range(120))) == 60
        assert store.db.usage_of_session(session).total.input_tokens == 60


def test_it_is_open_within_its_block_only(tmp_path: Path):
    store = a_store(tmp_path)
    with pytest.raises(StoreStoppedError):
        store.get_or_create_session(dm_source())
    with store:
        with pytest.raises(StoreStoppedError, match="open already"), store.db:
            pass
        assert store.get_or_create_session(dm_source())
    with pytest.raises(StoreStoppedError):
        store.get_or_create_session(dm_source())
    with pytest.raises(StoreStoppedError), store:
        pass


def test_an_error_in_the_block_closes_the_store(tmp_path: Path):
    with pytest.raises(ZeroDivisionError), a_store(tmp_path) as store:
        store.get_or_create_session(dm_source(str(1 // 0)))
    with a_store(tmp_path) as again:
        assert again.started.clean


async def test_a_thread_with_a_loop_is_refused(tmp_path: Path):
    store = a_store(tmp_path)
    with pytest.raises(EventLoopRunningError, match="await"), store:
        pass

    def elsewhere() -> None:
        with a_store(tmp_path) as opened:
            opened.get_or_create_session(dm_source())
            rest.append(opened)

    rest: list[BlockingSessionStore] = []
    await asyncio.to_thread(elsewhere)
    with pytest.raises(EventLoopRunningError):
        rest[0].has_any_sessions()
    with pytest.raises(EventLoopRunningError):
        rest[0].db.export_all(scope=EVERYTHING)
    async with SessionStore.open(tmp_path, QUICK) as asynchronous:
        assert await asynchronous.has_any_sessions()


def test_a_hook_that_would_wait_for_itself_is_refused(tmp_path: Path):
    """It runs on the loop that it would have to wait for."""
    refused = []

    async def call_back(event) -> None:
        try:
            store.has_any_sessions()
        except EventLoopRunningError as error:
            refused.append(error)

    with a_store(tmp_path, hooks=[call_back]) as store:
        store.reset_session(store.get_or_create_session(dm_source()).session_key)
        store.hooks.sweep()
    assert refused


class Patience:
    """Who knows the aliases takes for ever."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.given_up = threading.Event()

    async def __call__(self, platform: str, name: str) -> str:
        self.asked.set()
        try:
            await asyncio.sleep(3600)
        finally:
            self.given_up.set()
        return name


WHATSAPP = SessionSource(platform="whatsapp", chat_id="4912@s.whatsapp.net", user_id="4912@s.whatsapp.net")


def outcome(call: Callable[[], object]) -> BaseException | object:
    try:
        return call()
    except GatewaySessionsError as error:
        return error


@pytest.mark.parametrize("error", [None, ZeroDivisionError], ids=["ends", "fails"])
def test_who_still_waits_when_the_block_ends_is_told(tmp_path: Path, error: type[Exception] | None):
    patience = Patience()
    with ThreadPoolExecutor(1) as threads:
        with suppress(ZeroDivisionError), a_store(tmp_path, aliases=patience) as store:
            waiting = threads.submit(outcome, lambda: store.get_or_create_session(WHATSAPP))
            assert patience.asked.wait(15)
            leave_with(error)
        assert isinstance(waiting.result(15), StoreStoppedError)


def leave_with(error: type[Exception] | None) -> None:
    if error is not None:
        raise error


class StopWaitingError(Exception):
    pass


def waits(thread: int) -> bool:
    """Whether a thread stands in the `wait` of a condition."""
    frame = sys._current_frames()[thread]  # noqa: SLF001 -- the documented way to look
    while frame is not None and frame.f_code is not threading.Condition.wait.__code__:
        frame = frame.f_back
    return frame is not None


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals go to the main thread"
)
def test_a_call_that_is_interrupted_is_cancelled(tmp_path: Path):
    def stop(number, frame) -> None:
        raise StopWaitingError

    def send() -> None:
        patience.asked.wait(15)
        while not waits(main):
            time.sleep(0.001)
        signal.pthread_kill(main, signal.SIGUSR1)

    main = threading.main_thread().ident
    patience = Patience()
    before = signal.signal(signal.SIGUSR1, stop)
    try:
        with a_store(tmp_path, aliases=patience) as store:
            sender = threading.Thread(target=send)
            sender.start()
            with pytest.raises(StopWaitingError):
                store.get_or_create_session(WHATSAPP)
            assert patience.given_up.wait(15)
            sender.join()
            assert store.has_any_sessions() is False
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_call_that_is_interrupted_before_it_is_known_to_have_begun_is_cancelled_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    patience = Patience()
    begin = BlockingPortal.start_task_soon

    def interrupted(portal: BlockingPortal, *work: object) -> object:
        begun = begin(portal, *work)  # type: ignore[arg-type]
        if not patience.given_up.is_set() and patience.asked.wait(0.2):
            monkeypatch.undo()
            raise StopWaitingError
        return begun

    with a_store(tmp_path, aliases=patience) as store:
        monkeypatch.setattr(BlockingPortal, "start_task_soon", interrupted)
        with pytest.raises(StopWaitingError):
            store.get_or_create_session(WHATSAPP)
        assert patience.given_up.wait(15)
        assert store.has_any_sessions() is False


class Noting:
    """Stands for an asynchronous object, and notes how it is called."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple, dict]] = []

    def __getattr__(self, name: str):
        def call(*args, **kwargs) -> Done:
            self.calls.append((name, args, kwargs))
            return Done()

        return call


class Done:
    """Can be awaited, and need not be."""

    def __await__(self):
        return iter(())


class Here(LoopThread):
    """Does the work where it is asked for."""

    def run_and_wait(self, work):
        return asyncio.run(finished(work))


async def finished(work) -> object:
    outcome = work()
    return await outcome if inspect.isawaitable(outcome) else outcome


def methods(kind: type) -> list[str]:
    return [
        name
        for name, member in vars(kind).items()
        if inspect.isfunction(member) and not name.startswith("_") and name != "export_all"
    ]


@pytest.mark.parametrize("kind", [getattr(blocking, name) for name in blocking.__all__])
def test_every_method_hands_on_every_argument(kind: type):
    target = Noting()
    part = kind(target, Here("test"))
    for name in methods(kind):
        method = getattr(part, name)
        args, kwargs = [], {}
        for parameter in inspect.signature(method).parameters.values():
            if parameter.kind is parameter.KEYWORD_ONLY:
                kwargs[parameter.name] = object()
            elif parameter.kind is parameter.VAR_KEYWORD:
                kwargs["anything_else"] = object()
            else:
                args.append(object())
        method(*args, **kwargs)
        assert target.calls.pop() == (name, tuple(args), kwargs)


# Turns


def hello(text: str = "hello", message_id: str | None = None) -> InboundMessage:
    return InboundMessage(source=dm_source(), text=text, message_id=message_id)


def test_a_program_without_a_loop_takes_turns_in_the_order_of_the_queue(tmp_path: Path):
    with a_store(tmp_path) as store:
        for text in ("one", "two", "three"):
            assert isinstance(store.enqueue(hello(text), solo=True), Accepted)
        said: list[str] = []
        while (turn := store.claim()) is not None:
            with turn:
                said.append(turn.messages[0].text)
                assert store.claim() is None  # the lane has one turn at a time
                assert turn.transcript()[-1]["content"] == said[-1]
                turn.append({"role": "assistant", "content": "let me see"})
                ended = turn.commit([{"role": "assistant", "content": f"that was {said[-1]}"}])
            assert (turn.ended, ended.waiting) == (True, 3 - len(said))
        assert said == ["one", "two", "three"]
        session_id = store.get_or_create_session(dm_source(), touch=False).session_id
        rows = [row["content"] for row in store.load_transcript(session_id)]
        assert rows == [text for one in said for text in (one, f"let me see\n\nthat was {one}")]


def test_a_turn_that_nothing_ends_is_given_back_and_one_that_fails_is_a_dead_letter(tmp_path: Path):
    with a_store(tmp_path) as store:
        store.enqueue(hello())
        with claimed(store) as turn:
            assert turn.attempt == 1
        with claimed(store) as turn, suppress(ZeroDivisionError):
            assert (turn.attempt, turn.seq, turn.session_key) == (1, 1, store.key_for(dm_source()))
        with suppress(ZeroDivisionError), claimed(store):
            raise ZeroDivisionError("a bug")
        assert store.claim() is None
        assert [one.problem for one in store.dead_letters()] == ["ZeroDivisionError: a bug"]


def test_a_turn_that_was_overtaken_can_write_nothing_more(tmp_path: Path):
    with a_store(tmp_path) as store:
        store.enqueue(hello())
        with claimed(store) as turn:
            assert store.stop_turn(turn.session_key).stopped == 1
            with pytest.raises(FencedError):
                turn.commit([{"role": "assistant", "content": "too late"}])


def claimed(store: BlockingSessionStore) -> BlockingTurn:
    turn = store.claim()
    assert turn is not None
    return turn
