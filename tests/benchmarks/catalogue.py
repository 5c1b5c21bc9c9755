"""Which benchmarks there are, who takes part, and what the design promises for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from tests.benchmarks import corpus
from tests.benchmarks.on_servers import queue
from tests.benchmarks.peers.environment import hermes_python
from tests.benchmarks.runner import Benchmark, Budget, Contender, Round, figure_of
from tests.benchmarks.searching import APPENDED, INDEXING

LANES: Final = (100, 1_000, 10_000, 100_000)
OURS, BARE, HERMES = "gateway_sessions", "bare sqlite3", "Hermes"
BARE_PROGRAM, OUR_PROGRAM, HERMES_PROGRAM = "contenders.bare", "contenders.ours", "peers.hermes_touch"
OUR_COMMAND_LINE = "contenders.our_command_line"
OUR_FAIRNESS = "contenders.our_fairness"
BARE_TURNS, OUR_TURNS = "contenders.bare_turns", "contenders.our_turns"
HAND_MADE, HAND_MADE_TURNS = "hand-made, aiosqlite", "contenders.hand_made_turns"
AGENTS: Final = {"working": f"{OURS}, working agents", "idle": f"{OURS}, an idle agent"}
TOGETHER: Final = 64
SESSIONS: Final = 1_000
PEER_TOUCHES: Final = 20
"""Lanes that the peer touches before its memory is looked at: a thousand would take it minutes."""
PACE: Final = 200
"""Turns a second that people ask for who do not wait for each other."""
TRANSCRIPTS: Final = {
    BARE: Contender(name=BARE, program="contenders.bare_transcripts", task={}),
    OURS: Contender(name=OURS, program="contenders.our_transcripts", task={}, against=BARE),
    HERMES: Contender(
        name=HERMES, program="peers.hermes_transcripts", task={}, against=BARE, python=hermes_python
    ),
}


def benchmarks(*, quick: bool) -> dict[str, Benchmark]:
    """Every benchmark by its name. A quick run does a fifth of the work."""
    scale = 0.2 if quick else 1.0
    every = (touch(scale), at_once(scale), opening(), memory(), stall(scale), imports(), command_line(scale))
    corpora = (2_000, 10_000) if quick else (100_000, 500_000)
    remembered = (append(scale), load(scale), search(*corpora), burst(scale))
    whole = (turns(scale), crowd(scale), calls(), fairness(scale), queue(scale), telegram(scale))
    return {one.name: one for one in (*every, *remembered, *whole)}


def of(name: str, lanes: int) -> str:
    return f"{name}, {lanes:,} lanes"


def ours(lanes: int, against: str, **task: Any) -> Contender:
    """Our store with that many lanes in it."""
    return Contender(
        name=of(OURS, lanes),
        program=OUR_PROGRAM,
        against=against,
        task={"lanes": lanes} | task,
        seed={"do": "seed", "lanes": lanes},
    )


def hermes(lanes: int, against: str, **task: Any) -> Contender:
    """The peer with that many lanes; it seeds itself, untimed."""
    return Contender(
        name=of(HERMES, lanes),
        program=HERMES_PROGRAM,
        against=against,
        task={"lanes": lanes} | task,
        python=hermes_python,
    )


def ratio(mine: str, other: str, figure: str) -> Callable[[Round], float]:
    return lambda measured: measured[mine][figure] / measured[other][figure]


def figure(contender: str, name: str) -> Callable[[Round], float]:
    return lambda measured: measured[contender][name]


def touch(scale: float) -> Benchmark:
    """One message at a time."""
    task = {"do": "touch", "operations": int(2_000 * scale)}
    contenders = [
        *(
            Contender(name=of(BARE, lanes), program=BARE_PROGRAM, task=task | {"lanes": lanes})
            for lanes in LANES
        ),
        *(ours(lanes, of(BARE, lanes), **task) for lanes in LANES),
        *(updating(lanes, of(BARE, lanes), task) for lanes in LANES),
        *(
            hermes(lanes, of(BARE, lanes), do="touch", operations=max(3, int(operations * scale)))
            for lanes, operations in ((100, 100), (1_000, 40), (10_000, 10))
        ),
    ]
    budgets = [
        Budget(
            text=f"p50 with {named(lanes)}, against one bare commit",
            unit="x",
            limit=limit,
            floor=0.6,
            measure=ratio(named(lanes), of(BARE, lanes), "p50 ms"),
        )
        for named, limit in ((partial(of, OURS), 1.5), (with_update, 2.5))
        for lanes in LANES
    ]
    budgets += [
        Budget(
            text=f"p50 with {named(LANES[-1])}, against {LANES[0]} lanes",
            unit="x",
            limit=1.2,
            measure=ratio(named(LANES[-1]), named(LANES[0]), "p50 ms"),
        )
        for named in (partial(of, OURS), with_update)
    ]
    return Benchmark(
        name="touch",
        title="look one of N lanes up and record its use durably, one at a time",
        contenders=contenders,
        budgets=budgets,
        compared="p50 ms",
    )


def updating(lanes: int, against: str, task: Mapping[str, Any]) -> Contender:
    """Our store where each touch is followed by the tokens of the turn."""
    return replace(ours(lanes, against, **task, updating=True), name=with_update(lanes))


def with_update(lanes: int) -> str:
    return f"{of(OURS, lanes)}, with update_session"


def telegram(scale: float) -> Benchmark:
    """A bot on a platform of this machine, alone and before a gateway."""
    program, bare = "contenders.telegram_bots", "bare aiogram"
    task = {"do": "measure", "messages": int(300 * scale)}
    doors = {"own": f"{OURS}, own client", "aiogram": f"{OURS}, aiogram"}
    contenders = [
        Contender(name=bare, program=program, task=task | {"door": None}),
        *(
            Contender(name=name, program=program, task=task | {"door": door}, against=bare)
            for door, name in doors.items()
        ),
    ]
    budgets = [
        Budget(
            text=f"from a person's words to the answer's call, beyond the bare client: {door}",
            unit="ms",
            limit=5.0,
            measure=lambda one, name=name: one[name]["p50 ms"] - one[bare]["p50 ms"],  # type: ignore[misc]
        )
        for door, name in doors.items()
    ]
    return Benchmark(
        name="telegram",
        title="answer one message after the other on a Telegram of this machine",
        contenders=contenders,
        budgets=budgets,
        compared="p50 ms",
    )


def at_once(scale: float) -> Benchmark:
    """Many people write at the same time."""
    lanes, bare = 10_000, "bare sqlite3, one loop"
    task = {"do": "at_once", "together": TOGETHER, "seconds": 3.0 * scale}
    contenders = [
        Contender(name=bare, program=BARE_PROGRAM, task=task | {"lanes": lanes}),
        ours(lanes, bare, **task),
        hermes(lanes, bare, do="at_once", together=TOGETHER, operations=max(8, int(32 * scale))),
    ]
    budget = Budget(
        text=f"touches per second from {TOGETHER} lanes, against the bare loop",
        unit="x",
        limit=5.0,
        aim=10.0,
        more_is_better=True,
        measure=ratio(of(OURS, lanes), bare, "per second"),
    )
    return Benchmark(
        name="at-once",
        title=f"touches from {TOGETHER} lanes at once; the bare loop commits each",
        contenders=contenders,
        budgets=[budget],
        compared="per second",
    )


def opening() -> Benchmark:
    """A gateway starts while messages wait."""
    most, bare = LANES[-1], of(BARE, LANES[-1])
    seed = {"do": "seed", "lanes": most}
    contenders = [
        Contender(name=bare, program=BARE_PROGRAM, task={"do": "opening"}, seed=seed),
        ours(LANES[0], bare, do="opening"),
        ours(most, bare, do="opening"),
        hermes(10_000, bare, do="opening"),
    ]
    budget = Budget(
        text="open with 100,000 lanes, to the first message",
        unit="ms",
        limit=200.0,
        measure=figure(of(OURS, most), "first ms"),
    )
    return Benchmark(
        name="open",
        title="open after a clean stop and serve the first message (imports are not counted)",
        contenders=contenders,
        budgets=[budget],
        compared="first ms",
    )


def memory() -> Benchmark:
    """What a gateway holds after it has served a thousand messages."""
    few, most, bare = 10_000, LANES[-1], "bare interpreter"
    contenders = [
        Contender(name=bare, program="contenders.interpreter", task={"do": "memory"}),
        *(ours(lanes, bare, do="memory", operations=1_000) for lanes in (few, most)),
        Contender(
            name=f"{of(HERMES, few)}, {PEER_TOUCHES} touched",
            program=HERMES_PROGRAM,
            against=bare,
            task={"do": "memory", "operations": PEER_TOUCHES},
            seed={"do": "seed", "lanes": few},
            python=hermes_python,
        ),
    ]

    def above(lanes: int) -> Callable[[Round], float]:
        return lambda one: one[of(OURS, lanes)]["resident MB"] - one[bare]["resident MB"]

    budgets = [
        Budget(text="above the interpreter, with 100,000 lanes", unit="MB", limit=60.0, measure=above(most)),
        Budget(
            text="the same, against 10,000 lanes",
            unit="x",
            limit=1.2,
            measure=lambda one: above(most)(one) / above(few)(one),
        ),
    ]
    return Benchmark(
        name="memory",
        title="resident memory after opening and touching 1,000 lanes",
        contenders=contenders,
        budgets=budgets,
        compared="resident MB",
    )


def stall(scale: float) -> Benchmark:
    """Everything else that lives on the same event loop."""
    idle, seconds = "idle loop", 5.0 * scale
    contenders = [
        Contender(name=idle, program=BARE_PROGRAM, task={"do": "stall", "seconds": seconds}),
        *(busy(lanes, together, idle, seconds) for lanes in (10_000, 100_000) for together in (1, TOGETHER)),
        hermes(10_000, idle, do="stall", seconds=seconds),
    ]
    budgets = [
        Budget(
            text=f"longest stall of all rounds, {one.name}",
            unit="ms",
            limit=20.0,
            over_rounds=max,
            measure=figure(one.name, "stall ms"),
        )
        for one in contenders
        if one.program == OUR_PROGRAM
    ]
    return Benchmark(
        name="stall",
        title="the loop's longest stall while lanes are touched and sessions.json is written",
        contenders=contenders,
        budgets=budgets,
        compared="stall ms",
    )


def busy(lanes: int, together: int, against: str, seconds: float) -> Contender:
    """Our store under touches from some lanes at once."""
    return Contender(
        name=f"{of(OURS, lanes)}, {together} at once",
        program=OUR_PROGRAM,
        against=against,
        task={"do": "stall", "lanes": lanes, "together": together, "seconds": seconds},
        seed={"do": "seed", "lanes": lanes},
    )


def imports() -> Benchmark:
    """Every command and every test run pays it."""
    bare = "import asyncio, sqlite3"
    used = "from gateway_sessions import SessionStore, Gateway"
    commands = {"gsess --help": 130.0, "gsess sessions list": 300.0}
    program = "contenders.imports"
    contenders = [
        Contender(name=bare, program=program, task={"do": "imported", "statement": bare}),
        Contender(name=used, program=program, task={"do": "imported", "statement": used}, against=bare),
        *(Contender(name=one, program=program, task={"do": "commanded", "command": one}) for one in commands),
    ]
    budgets = [
        Budget(text=name, unit="ms", limit=limit, measure=figure(name, "import ms"))
        for name, limit in ({used: 150.0} | commands).items()
    ]
    return Benchmark(
        name="import",
        title="import what a program uses in a fresh interpreter, or run a whole command",
        contenders=contenders,
        budgets=budgets,
        compared="import ms",
    )


def command_line(scale: float) -> Benchmark:
    """An operator looks for something while many are served."""
    few, most = 20, LANES[-1]
    names = {sessions: f"{OURS}, {sessions:,} sessions" for sessions in (few, most)}
    contenders = [
        Contender(
            name=name,
            program=OUR_COMMAND_LINE,
            task={"do": "look", "sessions": sessions, "times": int(20 * scale)},
            seed={"do": "seed", "sessions": sessions},
            in_place=True,
            against=None if sessions == few else names[few],
        )
        for sessions, name in names.items()
    ]
    typed = tuple(f"browse, typed {kind}" for kind in ("common", "rare", "none", "id"))
    budgets = [
        Budget(
            text=f"p50 with {most:,} sessions, {kind}",
            unit="ms",
            limit=100.0,
            measure=figure(names[most], figure_of(kind, "p50 ms")),
        )
        for kind in ("list", "list --find", "show", "stats", "browse", "browse, next page", *typed)
    ]
    return Benchmark(
        name="command-line",
        title="what an operator waits for, without imports; --help and whole: the processor's time with them",
        contenders=contenders,
        budgets=budgets,
        compared="p50 ms",
    )


def remembering(work: str, *, seed: Any = None, in_place: bool = False, **task: Any) -> Iterator[Contender]:
    """Everybody at the same work with messages."""
    for name, one in TRANSCRIPTS.items():
        against = one.against and f"{one.against}, {work}"
        yield replace(one, name=f"{name}, {work}", against=against, task=task, seed=seed, in_place=in_place)


def append(scale: float) -> Benchmark:
    """What is said must be on the disk before anybody answers."""
    alone, crowd = "one lane", f"{TOGETHER} lanes at once"
    many: dict[str, Any] = {"do": "append_at_once", "together": TOGETHER, "seconds": 3.0 * scale}
    ours_alone, bare_alone = f"{OURS}, {alone}", f"{BARE}, {alone}"
    ours_crowd, bare_crowd, hermes_crowd = (f"{name}, {crowd}" for name in (OURS, BARE, HERMES))
    contenders = [
        *remembering(alone, do="append", operations=int(2_000 * scale)),
        *remembering(crowd, **many),
    ]
    budgets = [
        Budget(
            text="p50 in one lane, against the same rows in one bare commit",
            unit="x",
            limit=2.0,
            aim=1.5,
            floor=0.6,
            measure=ratio(ours_alone, bare_alone, "p50 ms"),
        ),
        Budget(
            text=f"messages per second from {TOGETHER} lanes, against the bare loop",
            unit="x",
            limit=5.0,
            more_is_better=True,
            measure=ratio(ours_crowd, bare_crowd, "per second"),
        ),
        Budget(
            text="the same until a search finds them by the index, against Hermes",
            unit="x",
            limit=5.0,
            more_is_better=True,
            measure=ratio(ours_crowd, hermes_crowd, "findable per second"),
        ),
    ]
    return Benchmark(
        name="append",
        title="store messages of about 200 characters, each durably; bare sqlite3 keeps no index",
        contenders=contenders,
        budgets=budgets,
        compared="per second",
    )


def load(scale: float) -> Benchmark:
    """A conversation goes to a model whole."""
    contenders: list[Contender] = []
    budgets: list[Budget] = []
    for messages in (1_000, 10_000):
        work = f"{messages:,} messages"
        seed = {"do": "seed_load", "messages": messages}
        contenders += remembering(work, seed=seed, do="load", messages=messages, times=int(50 * scale))
        budgets += [
            Budget(
                text=f"{kind} of {messages:,} messages, against reading eight columns",
                unit="x",
                limit=1.8,
                measure=ratio(f"{OURS}, {work}", f"{BARE}, {work}", figure_of(kind, "p50 ms")),
            )
            for kind in ("conversation", "messages")
        ]
    return Benchmark(
        name="load",
        title="load a session as it goes to a model (conversation) and as it is stored (messages)",
        contenders=contenders,
        budgets=budgets,
        compared="p50 ms",
    )


def turns(scale: float) -> Benchmark:
    """A message is admitted, claimed, answered, committed and delivered."""
    task: dict[str, Any] = {"do": "one_lane", "operations": int(1_000 * scale)}
    contenders = [
        Contender(name=BARE, program=BARE_TURNS, task=task),
        Contender(name=HAND_MADE, program=HAND_MADE_TURNS, against=BARE, task=task),
        *(
            Contender(name=name, program=OUR_TURNS, against=BARE, task=task | {"agent": agent})
            for agent, name in AGENTS.items()
        ),
        hermes_turns(BARE, together=1, operations=max(10, int(100 * scale))),
    ]
    budgets = [
        Budget(
            text=f"p50 of a whole turn of {agent} agents, against the bare machine",
            unit="x",
            limit=limit,
            floor=0.6,
            measure=ratio(AGENTS[agent], BARE, "p50 ms"),
        )
        for agent, limit in (("working", 2.0), ("idle", 1.5))
    ]
    return Benchmark(
        name="turns",
        title="whole turns on one lane, one after another; the others queue nothing and send nothing",
        contenders=contenders,
        budgets=budgets,
        compared="p50 ms",
    )


def crowd(scale: float) -> Benchmark:
    """Many people talk to their agents at the same time."""
    task: dict[str, Any] = {
        "do": "at_once",
        "together": TOGETHER,
        "lanes": SESSIONS,
        "seconds": 5.0 * scale,
    }
    working = AGENTS["working"]
    steady = f"{working}, {PACE} a second"
    contenders = [
        Contender(name=BARE, program=BARE_TURNS, task=task),
        Contender(name=HAND_MADE, program=HAND_MADE_TURNS, against=BARE, task=task),
        *(
            Contender(name=name, program=OUR_TURNS, against=BARE, task=task | {"agent": agent})
            for agent, name in AGENTS.items()
        ),
        Contender(name=steady, program=OUR_TURNS, task=task | {"agent": "working", "pace": PACE}),
        hermes_turns(BARE, together=TOGETHER, operations=max(10, int(100 * scale))),
    ]
    budgets = [
        *(
            Budget(
                text=f"turns of {agent} agents from {TOGETHER} lanes until found, against the bare loop",
                unit="x",
                limit=limit,
                more_is_better=True,
                measure=ratio(AGENTS[agent], BARE, "per second"),
            )
            for agent, limit in (("working", 1.2), ("idle", 1.8))
        ),
        Budget(
            text="those of working agents, against Hermes",
            unit="x",
            limit=100.0,
            more_is_better=True,
            measure=ratio(working, HERMES, "per second"),
        ),
        Budget(
            text=f"the slowest hundredth of {PACE} turns a second from {TOGETHER} lanes",
            unit="ms",
            limit=20.0,
            measure=figure(steady, "p99 ms"),
        ),
        Budget(
            text="on disk for each turn of working agents",
            unit="bytes",
            limit=2_000.0,
            measure=figure(working, "bytes per turn"),
        ),
        *(
            Budget(
                text=f"longest stall of all rounds, {name}",
                unit="ms",
                limit=15.0,
                over_rounds=max,
                measure=figure(name, "stall ms"),
            )
            for name in (working, steady)
        ),
    ]
    return Benchmark(
        name="crowd",
        title=f"whole turns from {TOGETHER} lanes at once, in a store with {SESSIONS:,} sessions",
        contenders=contenders,
        budgets=budgets,
        compared="per second",
    )


def calls() -> Benchmark:
    """How much Python runs for one turn, whatever the machine is doing."""
    limits = {"idle": (350.0, 220.0), "working": (430.0, 280.0)}
    contenders = [
        Contender(name=name, program=OUR_TURNS, task={"do": "calls", "agent": agent})
        for agent, name in AGENTS.items()
    ]
    budgets = [
        Budget(
            text=f"calls of {kind} functions for a turn of {agent} agents",
            unit="calls",
            limit=limit,
            measure=figure(AGENTS[agent], kind),
        )
        for agent, both in limits.items()
        for kind, limit in zip(("Python", "built-in"), both, strict=True)
    ]
    return Benchmark(
        name="calls",
        title=f"functions called for each turn from {TOGETHER} lanes at once, in all threads",
        contenders=contenders,
        budgets=budgets,
        compared="Python",
    )


def hermes_turns(against: str, *, together: int, operations: int) -> Contender:
    """The peer's equivalent of a turn, with as many sessions."""
    return Contender(
        name=HERMES,
        program="peers.hermes_turns",
        against=against,
        task={"do": "turns", "together": together, "lanes": SESSIONS, "operations": operations},
        python=hermes_python,
    )


def search(few: int, most: int) -> Benchmark:
    """Everything that was ever said, in many sessions."""
    contenders: list[Contender] = []
    for messages in (few, most):
        seed = {"do": "seed_search", "messages": messages}
        for one in remembering(f"{messages:,} messages", seed=seed, in_place=True, do="search"):
            times = (
                5 if one.program == TRANSCRIPTS[OURS].program else 2
            )  # only ours has a budget for its slowest
            contenders.append(replace(one, task={**one.task, "times": times}))
    mine = {messages: f"{OURS}, {messages:,} messages" for messages in (few, most)}
    words = (corpus.COMMON, corpus.MID, corpus.RARE, corpus.PHRASE, corpus.TWO_WORDS)
    kinds = (*words, corpus.CHINESE, corpus.SUBSTRING, corpus.INSIDE)
    budgets = [
        Budget(
            text=f"p99 in {most:,} messages, {kind}",
            unit="ms",
            limit=50.0,
            aim=25.0,
            measure=figure(mine[most], figure_of(kind, "p99 ms")),
        )
        for kind in kinds
    ]
    size = figure(mine[most], "bytes each")
    growth = ratio(mine[most], mine[few], "resident MB")
    budgets += [
        Budget(text=f"on disk with {most:,} messages, each", unit="bytes", limit=800.0, measure=size),
        Budget(text=f"resident memory, against {few:,} messages", unit="x", limit=1.2, measure=growth),
    ]
    return Benchmark(
        name="search",
        title="the best 20 of many messages; found %: of what a look at every text finds",
        contenders=contenders,
        budgets=budgets,
        compared="p50 ms",
    )


def burst(scale: float) -> Benchmark:
    """Somebody looks for something while very many messages come in."""
    task = {"do": "beside", "messages": int(10_000 * scale), "together": TOGETHER}
    seed = {"do": "seed_search", "messages": 20_000}
    budgets = [
        Budget(
            text=f"the slowest search {phase}",
            unit="ms",
            limit=60.0,
            measure=figure(OURS, figure_of(phase, "slowest ms")),
        )
        for phase in (APPENDED, INDEXING)
    ]
    return Benchmark(
        name="burst",
        title=f"search beside {task['messages']:,} messages from {TOGETHER} sessions, behind 20,000 others",
        contenders=[Contender(name=OURS, program="contenders.our_burst", task=task, seed=seed)],
        budgets=budgets,
        compared="p50 ms",
    )


def fairness(scale: float) -> Benchmark:
    """Some write more than is taken, and come back after each refusal."""
    flooder, room, crowd = "one flooder", "200 people, room for all", "200 people, room for half"
    ahead = "200 people who write ahead"
    task = {"do": "beside", "crowd": 200, "seconds": 2.0 * scale, "rounds": 3, "pause": 0.0, "room": 300}
    crowds = {
        flooder: {"one": True, "pause": 0.01, "waits": False},
        room: {"one": False, "waits": True},
        crowd: {"one": False, "waits": True, "room": 100},
        ahead: {"one": False, "waits": False},
    }
    contenders = [
        Contender(name=name, program=OUR_FAIRNESS, task=task | changed) for name, changed in crowds.items()
    ]

    def budget(text: str, measure: Callable[[Round], float], limit: float, *, more: bool = True) -> Budget:
        return Budget(text=text, unit="x", limit=limit, more_is_better=more, measure=measure)

    budgets = [
        budget("turns of 20 others beside one flooder, against none", figure(flooder, "ordinary x"), 0.85),
        budget("the slowest hundredth of theirs", figure(flooder, "p99 x"), 3.0, more=False),
        budget("turns of all, room for all, against the 20 alone", figure(room, "all x"), 0.85),
        budget("turns of all, room for half, against room for all", ratio(crowd, room, "all x"), 0.85),
        *(
            budget(
                f"the worst off of the 20 against an equal share, {one}", figure(one, "least share x"), 0.8
            )
            for one in (room, crowd, ahead)
        ),
    ]
    return Benchmark(
        name="fairness",
        title="turns of 20 people who wait for their answers, beside 200 submits in flight",
        contenders=contenders,
        budgets=budgets,
        compared="ordinary x",
    )
