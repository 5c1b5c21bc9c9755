"""The heart notices what keeps the loop from going on, and nothing else."""

import asyncio
import os
import signal
import subprocess
import sys
import time

import pytest
from blockbuster import BlockBuster

from tests.crash.event_loop.heartbeat import LONGEST_GAP, TRIES, heartbeat

pytestmark = pytest.mark.alone

LONG = 3 * LONGEST_GAP
MANY = 10_000_000
BEATS = """
import asyncio, sys
from tests.crash.event_loop.heartbeat import heartbeat

async def beat():
    async with heartbeat() as heart:
        print("beats", flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            print(heart.largest, flush=True)
            heart.largest = 0.0

asyncio.run(beat())
"""


def counted() -> None:
    """Keep all other threads waiting, in the end for so long at one go: a sum lets nobody in."""
    many, took = MANY, 0.0
    while took < LONG:
        begun = time.thread_time()
        sum(range(many))
        took, many = time.thread_time() - begun, many * 2


async def test_a_call_that_waits_on_the_loop_is_noticed(blockbuster: BlockBuster):
    blockbuster.deactivate()
    async with heartbeat() as heart:
        await asyncio.sleep(LONGEST_GAP)
        time.sleep(LONG)  # noqa: ASYNC251 -- what must be noticed
        await asyncio.sleep(LONGEST_GAP)
    blockbuster.activate()
    assert heart.largest > LONGEST_GAP


async def test_a_call_that_computes_on_the_loop_is_noticed():
    async with heartbeat() as heart:
        await asyncio.sleep(LONGEST_GAP)
        counted()
        await asyncio.sleep(LONGEST_GAP)
    assert heart.largest > LONGEST_GAP


async def test_a_thread_that_lets_nobody_else_work_is_noticed():
    async with heartbeat() as heart:
        await asyncio.sleep(LONGEST_GAP)
        await asyncio.to_thread(counted)
        await asyncio.sleep(LONGEST_GAP)
    assert heart.largest > LONGEST_GAP


async def test_a_loop_that_does_nothing_has_no_gaps():
    async with heartbeat() as heart:
        await asyncio.sleep(LONG)
    assert heart.largest < LONGEST_GAP


def test_a_machine_that_does_not_let_the_program_run_is_not_held_against_it():
    """Nearly always it is stopped where it waits, as it has nothing else to do."""
    command = [sys.executable, "-c", BEATS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as beating:
        assert beating.stdin is not None
        assert beating.stdout is not None
        assert beating.stdout.readline() == "beats\n"
        gaps: list[float] = []
        for _ in range(TRIES):
            time.sleep(LONGEST_GAP)
            os.kill(beating.pid, signal.SIGSTOP)
            time.sleep(LONG)
            os.kill(beating.pid, signal.SIGCONT)
            beating.stdin.write("\n")
            beating.stdin.flush()
            gaps.append(float(beating.stdout.readline()))
    assert min(gaps) < LONGEST_GAP
